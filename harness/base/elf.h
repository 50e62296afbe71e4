/* elf.h: a small strict reader of ELF64 files.
 *
 * A kernel is compiled to two files: the host object (x86-64 or aarch64), of which a library is
 * linked, and the cubin (machine 190).  They come from source that nobody has checked, so the
 * reader checks every offset, size and index once.  A struct elf that it returns can be walked
 * without further checks.  Names point into the file's bytes, which the struct owns. */
#ifndef KP_ELF_H
#define KP_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ELF_X86_64 = 62, ELF_AARCH64 = 183, ELF_CUDA = 190 }; /* e_machine */

struct elf_section {
    const char *name;
    uint32_t type;              /* SHT_* of <elf.h> */
    uint64_t flags;             /* SHF_* */
    uint64_t size;              /* bytes; those in memory if it is NOBITS */
    const unsigned char *bytes; /* size bytes; NULL for NOBITS and for the empty section 0 */
    uint32_t link, info;
};

struct elf_symbol {
    const char *name; /* "" for section symbols */
    uint64_t value, size;
    unsigned type;    /* STT_* */
    unsigned bind;    /* STB_* */
    unsigned other;   /* the whole st_other byte: visibility, and CUDA's flags */
    unsigned section; /* index, or SHN_UNDEF, SHN_ABS, SHN_COMMON */
};

struct elf_relocation {
    unsigned target; /* the section that is patched */
    uint32_t type;   /* R_* of the machine */
    uint32_t symbol; /* index into elf.symbols */
    int64_t addend;  /* 0 for REL */
};

struct elf {
    unsigned machine, type; /* ELF_*, ET_* */
    unsigned nsections;
    struct elf_section *sections;
    size_t nsymbols;
    struct elf_symbol *symbols;
    size_t nrelocations;
    struct elf_relocation *relocations; /* but for what a library leaves to the loader */
    unsigned char *file;
    size_t size;
};

/* Read a file, or a copy of `size` bytes.  NULL and a message ("PATH: what is wrong") if it cannot
 * be read or is malformed anywhere; *malformed says that it was read.  Ends the program if there is
 * no memory. */
struct elf *elf_read(const char *path, bool *malformed, char *message, size_t message_size);
struct elf *elf_parse(const void *bytes, size_t size, const char *path, char *message,
                      size_t message_size);
void elf_free(struct elf *e);

/* A variable of a cubin's module: it outlives a launch.  cuModuleGetGlobal finds each by this name,
 * also static ones, those of anonymous namespaces and string literals ("$str"): nvcc 13 makes local
 * symbols of all of them. */
struct elf_variable {
    const char *name;
    uint64_t size;
    bool constant; /* in __constant__ memory, which device code should not write */
};

/* The module variables of a cubin, in file order; the caller frees *out.
 * Returns how many there are; *out is NULL if none. */
size_t elf_variables(const struct elf *cubin, struct elf_variable **out);

/* Whether symbol `s` of a cubin is a kernel (a __global__ function). */
bool elf_is_kernel(const struct elf *cubin, const struct elf_symbol *s);

#ifdef __cplusplus
}
#endif
#endif
