/* elf.c: see elf.h.  Everything is copied out of the file by memcpy after a bounds check, so
 * alignment and hostile offsets do no harm. */
#include "base/elf.h"

#include "base/error.h"

#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_LIMIT = 1 << 30, SECTION_LIMIT = 0xff00, STO_CUDA_ENTRY = 0x10 };

struct reader {
    struct elf *e;
    const char *path;
    char *message;
    size_t message_size;
};

/* Store the message; returns false, so that callers can return it. */
__attribute__((format(printf, 2, 3))) static bool bad(struct reader *r, const char *format, ...) {
    va_list ap;
    int n = snprintf(r->message, r->message_size, "%s: ", r->path);
    if (n < 0 || (size_t)n >= r->message_size) return false;
    va_start(ap, format);
    vsnprintf(r->message + n, r->message_size - (size_t)n, format, ap);
    va_end(ap);
    return false;
}

/* Whether [offset, offset+size) lies inside the file. */
static bool inside(const struct elf *e, uint64_t offset, uint64_t size) {
    return offset <= e->size && size <= e->size - offset;
}

/* The string at `offset` of string table `table`; NULL if there is none, or it does not end inside
 * the table. */
static const char *string_at(const struct elf *e, unsigned table, uint64_t offset) {
    const struct elf_section *s;
    if (table >= e->nsections) return NULL;
    s = &e->sections[table];
    if (s->type != SHT_STRTAB || offset >= s->size) return NULL;
    if (!memchr(s->bytes + offset, 0, s->size - offset)) return NULL;
    return (const char *)s->bytes + offset;
}

/* Check the file header and read the section table without names. */
static bool read_sections(struct reader *r, Elf64_Ehdr *h) {
    struct elf *e = r->e;
    if (e->size < sizeof *h) return bad(r, "too short for an ELF file");
    memcpy(h, e->file, sizeof *h);
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0) return bad(r, "not an ELF file");
    if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
        return bad(r, "not a 64-bit little-endian ELF file");
    if (h->e_shentsize != sizeof(Elf64_Shdr)) return bad(r, "odd section header size");
    if (h->e_shnum == 0 || h->e_shnum >= SECTION_LIMIT)
        return bad(r, "no section table, or more than %d sections", SECTION_LIMIT);
    if (!inside(e, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr)))
        return bad(r, "section table lies outside the file");
    e->machine = h->e_machine;
    e->type = h->e_type;
    e->nsections = h->e_shnum;
    e->sections = calloc(e->nsections, sizeof *e->sections);
    if (!e->sections) die(KP_MACHINE, "out of memory");
    for (unsigned i = 0; i < e->nsections; i++) {
        struct elf_section *s = &e->sections[i];
        Elf64_Shdr d;
        memcpy(&d, e->file + h->e_shoff + i * sizeof d, sizeof d);
        s->name = "";
        s->type = d.sh_type;
        s->flags = d.sh_flags;
        s->size = d.sh_size;
        s->link = d.sh_link;
        s->info = d.sh_info;
        if (d.sh_type == SHT_NULL) s->size = 0;
        if (d.sh_type == SHT_NULL || d.sh_type == SHT_NOBITS) continue;
        if (!inside(e, d.sh_offset, d.sh_size))
            return bad(r, "section %u lies outside the file", i);
        s->bytes = e->file + d.sh_offset;
    }
    return true;
}

static bool name_sections(struct reader *r, const Elf64_Ehdr *h) {
    struct elf *e = r->e;
    for (unsigned i = 0; i < e->nsections; i++) {
        Elf64_Shdr d;
        memcpy(&d, e->file + h->e_shoff + i * sizeof d, sizeof d);
        e->sections[i].name = string_at(e, h->e_shstrndx, d.sh_name);
        if (!e->sections[i].name) return bad(r, "section %u has no valid name", i);
    }
    return true;
}

/* Read the symbol table.  There is at most one. */
static bool read_symbols(struct reader *r) {
    struct elf *e = r->e;
    const struct elf_section *table = NULL;
    for (unsigned i = 0; i < e->nsections; i++) {
        if (e->sections[i].type == SHT_SYMTAB_SHNDX) return bad(r, "extended section numbers");
        if (e->sections[i].type != SHT_SYMTAB) continue;
        if (table) return bad(r, "two symbol tables");
        table = &e->sections[i];
    }
    if (!table) return true;
    if (table->size % sizeof(Elf64_Sym)) return bad(r, "symbol table of odd size");
    e->nsymbols = table->size / sizeof(Elf64_Sym);
    e->symbols = calloc(e->nsymbols + 1, sizeof *e->symbols);
    if (!e->symbols) die(KP_MACHINE, "out of memory");
    for (size_t i = 0; i < e->nsymbols; i++) {
        struct elf_symbol *s = &e->symbols[i];
        Elf64_Sym d;
        memcpy(&d, table->bytes + i * sizeof d, sizeof d);
        s->name = string_at(e, table->link, d.st_name);
        if (!s->name) return bad(r, "symbol %zu has no valid name", i);
        s->value = d.st_value;
        s->size = d.st_size;
        s->type = ELF64_ST_TYPE(d.st_info);
        s->bind = ELF64_ST_BIND(d.st_info);
        s->other = d.st_other;
        s->section = d.st_shndx;
        if (s->section >= e->nsections && s->section != SHN_ABS && s->section != SHN_COMMON)
            return bad(r, "symbol %zu is in a section that does not exist", i);
    }
    return true;
}

/* Append the relocations of section `i`, a REL or RELA table. */
static bool append_relocations(struct reader *r, unsigned i) {
    struct elf *e = r->e;
    const struct elf_section *s = &e->sections[i];
    bool rela = s->type == SHT_RELA;
    size_t each = rela ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel), n = s->size / each;
    struct elf_relocation *grown;
    if (s->size % each) return bad(r, "relocation table %s of odd size", s->name);
    if (n == 0) return true;
    if (s->info >= e->nsections) return bad(r, "%s patches no section", s->name);
    grown = realloc(e->relocations, (e->nrelocations + n) * sizeof *grown);
    if (!grown) die(KP_MACHINE, "out of memory");
    e->relocations = grown;
    for (size_t k = 0; k < n; k++) {
        Elf64_Rela d = {0};
        memcpy(&d, s->bytes + k * each, each);
        if (ELF64_R_SYM(d.r_info) >= e->nsymbols)
            return bad(r, "%s names a symbol that does not exist", s->name);
        if (d.r_offset >= e->sections[s->info].size)
            return bad(r, "%s patches beyond its section", s->name);
        grown[e->nrelocations++] = (struct elf_relocation){
            .target = s->info,
            .type = (uint32_t)ELF64_R_TYPE(d.r_info),
            .symbol = (uint32_t)ELF64_R_SYM(d.r_info),
            .addend = d.r_addend,
        };
    }
    return true;
}

/* Read all relocations, but for those of a linked library that are left to the loader: their
 * symbols are others, and their offsets are addresses. */
static bool read_relocations(struct reader *r) {
    const struct elf *e = r->e;
    for (unsigned i = 0; i < e->nsections; i++) {
        const struct elf_section *s = &e->sections[i];
        if (s->type != SHT_REL && s->type != SHT_RELA) continue;
        if (e->type == ET_DYN && (s->flags & SHF_ALLOC)) continue;
        if (!append_relocations(r, i)) return false;
    }
    return true;
}

struct elf *elf_parse(const void *bytes, size_t size, const char *path, char *message,
                      size_t message_size) {
    struct elf *e = calloc(1, sizeof *e);
    struct reader r = {e, path, message, message_size};
    Elf64_Ehdr h;
    if (!e || !(e->file = malloc(size ? size : 1))) die(KP_MACHINE, "out of memory");
    if (size) memcpy(e->file, bytes, size);
    e->size = size;
    if (read_sections(&r, &h) && name_sections(&r, &h) && read_symbols(&r) && read_relocations(&r))
        return e;
    elf_free(e);
    return NULL;
}

struct elf *elf_read(const char *path, bool *malformed, char *message, size_t message_size) {
    struct reader r = {NULL, path, message, message_size};
    struct elf *e = NULL;
    unsigned char *bytes = NULL;
    size_t size = 0, room = 0, n = 0;
    FILE *f = fopen(path, "rb");
    *malformed = false;
    if (!f) {
        bad(&r, "%s", strerror(errno));
        return NULL;
    }
    do {
        if (size == room) {
            unsigned char *grown = realloc(bytes, room = room ? 2 * room : 1 << 16);
            if (!grown) die(KP_MACHINE, "out of memory");
            bytes = grown;
        }
        n = fread(bytes + size, 1, room - size, f);
        size += n;
    } while (n > 0 && size < FILE_LIMIT);
    if (ferror(f)) {
        bad(&r, "cannot be read whole");
    } else {
        if (n != 0)
            bad(&r, "over %d bytes", FILE_LIMIT);
        else
            e = elf_parse(bytes, size, path, message, message_size);
        *malformed = !e;
    }
    fclose(f);
    free(bytes);
    return e;
}

void elf_free(struct elf *e) {
    if (!e) return;
    free(e->sections);
    free(e->symbols);
    free(e->relocations);
    free(e->file);
    free(e);
}

/* Whether `s` is a variable of the module; *constant: whether it is in constant memory. */
static bool is_variable(const struct elf *e, const struct elf_symbol *s, bool *constant) {
    const char *section;
    if (s->section == SHN_UNDEF || s->section >= e->nsections) return false;
    if (s->type == STT_SECTION || s->type == STT_FUNC || s->size == 0) return false;
    section = e->sections[s->section].name;
    *constant = strcmp(section, ".nv.constant3") == 0;
    return *constant || strcmp(section, ".nv.global") == 0 ||
           strcmp(section, ".nv.global.init") == 0;
}

size_t elf_variables(const struct elf *cubin, struct elf_variable **out) {
    size_t n = 0;
    bool constant;
    *out = calloc(cubin->nsymbols + 1, sizeof **out);
    if (!*out) die(KP_MACHINE, "out of memory");
    for (size_t i = 0; i < cubin->nsymbols; i++) {
        const struct elf_symbol *s = &cubin->symbols[i];
        if (!is_variable(cubin, s, &constant)) continue;
        (*out)[n++] = (struct elf_variable){
            .name = s->name,
            .size = s->size,
            .constant = constant,
        };
    }
    if (n == 0) {
        free(*out);
        *out = NULL;
    }
    return n;
}

bool elf_is_kernel(const struct elf *cubin, const struct elf_symbol *s) {
    return s->type == STT_FUNC && (s->other & STO_CUDA_ENTRY) && s->section != SHN_UNDEF &&
           s->section < cubin->nsections;
}
