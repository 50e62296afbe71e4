/* elf.c: the part of harness/base/elf.h that a runner needs, for pretend cubins.  They are shared
 * objects of the host, with relocations of a kind that no cubin has and that the real reader
 * refuses.  Nobody hostile makes them: nothing is checked. */
#include "base/elf.h"
#include "base/error.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

struct elf *elf_parse(const void *bytes, size_t size, const char *path, char *message,
                      size_t message_size) {
    struct elf *e = calloc(1, sizeof *e);
    (void)path, (void)message, (void)message_size;
    if (!e || !(e->file = malloc(size))) die(KP_MACHINE, "out of memory");
    memcpy(e->file, bytes, size);
    return e;
}

void elf_free(struct elf *e) {
    free(e->file);
    free(e);
}

/* The objects of section .nv.global.init, by the symbol table. */
size_t elf_variables(const struct elf *e, struct elf_variable **out) {
    const Elf64_Ehdr *h = (const void *)e->file;
    const Elf64_Shdr *s = (const void *)(e->file + h->e_shoff);
    const char *names = (const char *)e->file + s[h->e_shstrndx].sh_offset;
    size_t n = 0;
    *out = NULL;
    for (unsigned i = 0; i < h->e_shnum; i++) {
        if (s[i].sh_type != SHT_SYMTAB) continue;
        const Elf64_Sym *symbol = (const void *)(e->file + s[i].sh_offset);
        const char *text = (const char *)e->file + s[s[i].sh_link].sh_offset;
        *out = calloc(s[i].sh_size / sizeof *symbol, sizeof **out);
        if (!*out) die(KP_MACHINE, "out of memory");
        for (const Elf64_Sym *x = symbol; x < symbol + s[i].sh_size / sizeof *symbol; x++)
            if (x->st_shndx < h->e_shnum && ELF64_ST_TYPE(x->st_info) == STT_OBJECT &&
                !strcmp(names + s[x->st_shndx].sh_name, ".nv.global.init"))
                (*out)[n++] = (struct elf_variable){.name = text + x->st_name, .size = x->st_size};
    }
    return n;
}
