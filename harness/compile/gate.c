/* gate.c: see gate.h. */
#include "compile/gate.h"

#include "compile/x86.h"

#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
    DATA_LIMIT = 64 << 10, /* bytes of host .rodata and .data: room for strings, not for answers */
    FATBIN_LIMIT = 64 << 20, /* bytes of device code in the object: far more than kernels have */
    STO_CUDA_MANAGED = 0x4
};

/* What host code may call, and why.  A name that ends in '*' is a prefix. */
static const struct {
    const char *name, *why;
} allowed[] = {
    /* Written by nvcc into every object; the names of CUDA 12 and of 13. */
    {"__cudaRegisterFatBinary", "registration"},
    {"__cudaRegisterFatBinaryEnd", "registration"},
    {"__cudaUnregisterFatBinary", "registration"},
    {"__cudaRegisterFunction", "registration"},
    {"__cudaRegisterVar", "registration"},
    {"__cudaInitModule", "registration"},
    {"atexit", "registration"},
    {"exit", "the host body that nvcc gives a __device__ function"},
    {"__cudaPushCallConfiguration", "<<<>>>"},
    {"__cudaPopCallConfiguration", "<<<>>>"},
    {"cudaLaunchKernel", "<<<>>>, CUDA 12"},
    {"__cudaLaunchKernel", "<<<>>>, CUDA 13"},
    {"__cudaGetKernel", "<<<>>>, CUDA 13"},
    /* Launches and their configuration. */
    {"cudaLaunchKernelExC", "clusters, programmatic launch"},
    {"cudaLaunchCooperativeKernel", "grid-wide synchronisation"},
    {"cudaFuncSetAttribute", "shared memory over 48 KiB"},
    {"cudaFuncGetAttributes", "shared memory over 48 KiB"},
    {"cudaOccupancy*", "grid size"},
    {"cudaDeviceGetAttribute", "grid size"},
    {"cudaGetDevice", "grid size"},
    {"cuTensorMapEncodeTiled", "tensor maps; the recorder has it"},
    {"cudaGetDriverEntryPoint", "tensor maps; the recorder offers that function alone"},
    {"cudaGetDriverEntryPointByVersion", "tensor maps; the recorder offers that function alone"},
    /* What else a tape can carry. */
    {"cudaMemsetAsync", "clearing scratch"},
    {"cudaMemset2DAsync", "clearing scratch"},
    {"cudaMemcpyAsync", "copies on the device"},
    /* Streams forked from the given one and joined to it. */
    {"cudaStreamCreate", "fork and join"},
    {"cudaStreamCreateWithFlags", "fork and join"},
    {"cudaStreamCreateWithPriority", "fork and join"},
    {"cudaStreamWaitEvent", "fork and join"},
    {"cudaStreamDestroy", "fork and join"},
    {"cudaEventCreate", "fork and join"},
    {"cudaEventCreateWithFlags", "fork and join"},
    {"cudaEventRecord", "fork and join"},
    {"cudaEventDestroy", "fork and join"},
    {"cudaGetLastError", "reading an error"},
    {"cudaPeekAtLastError", "reading an error"},
    {"cudaGetErrorString", "reading an error"},
    {"cudaGetErrorName", "reading an error"},
    /* What compilers emit, or plain computation needs. */
    {"_GLOBAL_OFFSET_TABLE_", "position-independent code"},
    {"__stack_chk_fail", "stack protector"},
    {"__cxa_guard_acquire", "static variable in a function"},
    {"__cxa_guard_release", "static variable in a function"},
    {"__cxa_guard_abort", "static variable in a function"},
    {"_Unwind_Resume", "C++ exceptions"},
    {"__gxx_personality_v0", "C++ exceptions"},
    {"__cxa_begin_catch", "C++ exceptions"},
    {"_ZSt9terminatev", "C++ exceptions"},
    {"_ZSt*__throw_*", "C++ containers"},
    {"_ZNSt7__cxx1112basic_string*", "C++ strings"},
    {"_ZNKSt7__cxx1112basic_string*", "C++ strings"},
    {"_Znwm", "operator new"},
    {"_Znam", "operator new[]"},
    {"_ZdlPv*", "operator delete"},
    {"_ZdaPv*", "operator delete[]"},
    {"__udivti3", "plain computation, of 128 bits"},
    {"__umodti3", "plain computation, of 128 bits"},
    {"memcpy", "plain computation"},
    {"memmove", "plain computation"},
    {"memset", "plain computation"},
    {"memcmp", "plain computation"},
    {"strlen", "plain computation"},
    {"__mem*_chk", "plain computation, as some distributions compile it"},
    {"abort", "a failed check"},
    {"__assert_fail", "a failed check"},
    {"ceil*", "plain computation"},
    {"floor*", "plain computation"},
    {"sqrt", "plain computation"},
    {"sqrtf", "plain computation"},
    {"exp*", "plain computation"},
    {"log*", "plain computation"},
    {"pow", "plain computation"},
    {"powf", "plain computation"},
    {"tanh", "plain computation"},
    {"tanhf", "plain computation"},
};

/* Names that authors of kernels do use, and what to do instead.  '*' as above. */
static const struct {
    const char *name, *advice;
} advice[] = {
    {"vprintf", "remove printf from device code"},
    {"cublas*", "no vendor library may be called, write the kernel"},
    {"cudnn*", "no vendor library may be called, write the kernel"},
    {"cufft*", "no vendor library may be called, write the kernel"},
    {"cusparse*", "no vendor library may be called, write the kernel"},
    {"cusolver*", "no vendor library may be called, write the kernel"},
    {"curand*", "no vendor library may be called, write the kernel"},
    {"cudaMalloc*", "declare scratch_bytes() and use the scratch that launch is given"},
    {"cudaFree*", "declare scratch_bytes() and use the scratch that launch is given"},
    {"cudaHostAlloc", "declare scratch_bytes() and use the scratch that launch is given"},
    {"cudaMemcpyToSymbol*", "initialise the variable where it is defined, or use scratch"},
    {"cudaMemcpyFromSymbol*", "launch cannot read results, decide on the device"},
    {"cudaGetSymbolAddress", "use scratch"},
    {"cudaMemcpy", "use cudaMemcpyAsync on the given stream"},
    {"cudaMemset", "use cudaMemsetAsync on the given stream"},
    {"cudaDeviceSynchronize", "launch only enqueues, remove it"},
    {"cudaStreamSynchronize", "launch only enqueues, remove it"},
    {"cudaEventSynchronize", "launch only enqueues, remove it"},
    {"cudaGetDeviceProperties*", "use cudaDeviceGetAttribute"},
    {"*printf*", "launch prints nothing, remove it"},
    {"stderr", "launch prints nothing, remove it"},
    {"_ZSt4cout", "launch prints nothing, remove it"},
    {"_ZSt4cerr", "launch prints nothing, remove it"},
    {"cudaLaunchHostFunc", "all work is done on the device"},
    {"cudaStreamAddCallback", "all work is done on the device"},
    {"cudaGraph*", "launch is recorded as it is, call the kernels directly"},
    {"cudaStreamBeginCapture*", "launch is recorded as it is, call the kernels directly"},
    {"cuTensorMap*", "only cuTensorMapEncodeTiled is offered"},
    {"__cudaRegisterManagedVar", "managed variables are not allowed, use scratch"},
    {"__cudaRegisterLinkedBinary*", "relocatable device code is not allowed, drop -rdc"},
    {"malloc", "remove malloc and new from device code, use scratch"},
    {"free", "remove free and delete from device code, use scratch"},
    {"__assertfail", "remove assert from device code"},
    {"*CDP*", "remove launches from device code"},
    {"cudaLaunchDevice*", "remove launches from device code"},
    {"cnp*", "remove launches from device code"},
};

/* Whether `name` matches `pattern`, in which '*' stands for any text. */
static bool matches(const char *pattern, const char *name) {
    for (; *pattern && *pattern != '*'; pattern++, name++)
        if (*pattern != *name) return false;
    if (!*pattern) return !*name;
    for (pattern++;; name++) {
        if (matches(pattern, name)) return true;
        if (!*name) return false;
    }
}

static const char *advice_for(const char *name, const char *otherwise) {
    for (size_t i = 0; i < sizeof advice / sizeof *advice; i++)
        if (matches(advice[i].name, name)) return advice[i].advice;
    return otherwise;
}

static bool is_allowed(const char *name) {
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (matches(allowed[i].name, name)) return true;
    return false;
}

/* Where the reasons of a refusal go: a list, as each costs the author of a kernel another try. */
struct verdict {
    char *reason;
    size_t size;
    int found, hidden; /* hidden: those that had no room */
};

enum { ROOM_FOR_COUNT = 24 }; /* bytes kept for "; and N more" */

/* Add a reason to the list, which stays one line: '?' replaces what cannot be printed.  The first
 * is cut if it is too long; a later one is only counted. */
__attribute__((format(printf, 2, 3))) static void refuse(struct verdict *v, const char *format,
                                                         ...) {
    size_t used = strlen(v->reason), kept = used ? 2 + ROOM_FOR_COUNT : 0;
    size_t room = v->size - used > kept ? v->size - used - kept : 0;
    char *to = v->reason + used;
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(used ? to + 2 : to, room, format, ap);
    va_end(ap);
    v->found++;
    if (used && (n < 0 || (size_t)n >= room)) {
        *to = 0;
        v->hidden++;
        return;
    }
    if (used) memcpy(to, "; ", 2);
    for (char *p = to; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e) *p = '?';
}

/* Say how many reasons had no room.  Returns whether there is none at all. */
static bool conclude(struct verdict *v) {
    size_t used = strlen(v->reason);
    if (v->hidden) snprintf(v->reason + used, v->size - used, "; and %d more", v->hidden);
    return !v->found;
}

static bool starts(const char *s, const char *prefix) {
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Whether `name` is `base`, or `base` followed by a dot (".text.startup"). */
static bool section_is(const char *name, const char *base) {
    size_t n = strlen(base);
    return strncmp(name, base, n) == 0 && (name[n] == 0 || name[n] == '.');
}

/* Of sections that end up in memory only those that g++ and nvcc write are allowed, because the
 * linker and the loader act on others by name (.init, .ctors, .tdata). */
static void check_section(const struct elf_section *s, struct verdict *v) {
    static const char *const known[] = {
        ".text",     ".rodata",     ".data",         ".bss", ".note", ".gcc_except_table",
        ".eh_frame", ".init_array", "__nv_module_id" /* without -O */
    };
    bool found = starts(s->name, ".nv"); /* .nv_fatbin, .nvFatBinSegment */
    if (!(s->flags & SHF_ALLOC)) return;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        found |= section_is(s->name, known[i]);
    if (s->flags & SHF_TLS)
        refuse(v, "object: section %s: thread-local variables are not allowed", s->name);
    else if (!found || s->type == SHT_PREINIT_ARRAY || s->type == SHT_FINI_ARRAY)
        refuse(v,
               "object: section %s is not one that nvcc writes: no code that runs outside "
               "launch, no sections of your own",
               s->name);
    if ((s->flags & SHF_WRITE) && (s->flags & SHF_EXECINSTR))
        refuse(v, "object: section %s is both writable and executable", s->name);
    if ((s->flags & SHF_EXECINSTR) && !section_is(s->name, ".text"))
        refuse(v, "object: section %s holds code, which belongs in .text", s->name);
}

/* Check all sections, and the totals of data and of device code. */
static void check_sections(const struct elf *o, struct verdict *v) {
    uint64_t data = 0, fatbin = 0;
    for (unsigned i = 0; i < o->nsections; i++) {
        const struct elf_section *s = &o->sections[i];
        check_section(s, v);
        if (!(s->flags & SHF_ALLOC) || s->type == SHT_NOBITS || (s->flags & SHF_EXECINSTR))
            continue;
        if (starts(s->name, ".nv"))
            fatbin += s->size;
        else if (!section_is(s->name, ".eh_frame") && !section_is(s->name, ".note"))
            data += s->size;
    }
    if (data > DATA_LIMIT)
        refuse(v,
               "object: %llu bytes of constant data in host code, over %d: compute tables "
               "on the device",
               (unsigned long long)data, DATA_LIMIT);
    if (fatbin > FATBIN_LIMIT)
        refuse(v, "object: %llu bytes of device code, over %d: instantiate fewer templates",
               (unsigned long long)fatbin, FATBIN_LIMIT);
}

/* The name of the function at an offset of a section, or "". */
static const char *function_at(const struct elf *o, unsigned section, uint64_t offset) {
    for (size_t i = 0; i < o->nsymbols; i++) {
        const struct elf_symbol *s = &o->symbols[i];
        if (s->type == STT_FUNC && s->section == section && s->value == offset) return s->name;
    }
    return "";
}

/* Check that exactly one function runs when the object is loaded: nvcc's registration.  To name one
 * takes a look at all symbols: of many functions only some are named. */
static void check_constructors(const struct elf *o, struct verdict *v) {
    enum { MOST_NAMED = 16 };
    uint64_t bytes = 0;
    int named = 0;
    for (unsigned i = 0; i < o->nsections; i++)
        if (o->sections[i].type == SHT_INIT_ARRAY || section_is(o->sections[i].name, ".init_array"))
            bytes += o->sections[i].size;
    for (size_t i = 0; i < o->nrelocations; i++) {
        const struct elf_relocation *r = &o->relocations[i];
        const struct elf_symbol *s = &o->symbols[r->symbol];
        const char *name;
        if (!section_is(o->sections[r->target].name, ".init_array")) continue;
        if (named++ == MOST_NAMED) {
            refuse(v, "object: more than %d functions run when it is loaded", MOST_NAMED);
            break;
        }
        name = function_at(o, s->section, s->value + (uint64_t)r->addend);
        if (!strstr(name, "__sti____cudaRegisterAll"))
            refuse(v,
                   "object: %s runs when the object is loaded: no constructors, and no "
                   "global objects that need one",
                   *name ? name : "a function");
    }
    if (bytes == 0)
        refuse(v, "object: no kernel is registered: define a __global__ function");
    else if (bytes != 8)
        refuse(v, "object: more than one function runs when it is loaded");
}

/* Whether a cubin has a kernel called `name`. */
static bool is_kernel_name(struct elf *const *cubins, size_t n, const char *name) {
    for (size_t c = 0; c < n; c++)
        for (size_t i = 0; i < cubins[c]->nsymbols; i++)
            if (elf_is_kernel(cubins[c], &cubins[c]->symbols[i]) &&
                strcmp(cubins[c]->symbols[i].name, name) == 0)
                return true;
    return false;
}

/* Whether host code may define the global `s`.  It may define the entry points, kernels, and C++
 * functions of its own, but not what a library defines, nor operator new. */
static bool may_define(const struct elf_symbol *s, struct elf *const *cubins, size_t ncubins) {
    const char *n = s->name;
    if (strcmp(n, "launch") == 0 || strcmp(n, "scratch_bytes") == 0) return s->type == STT_FUNC;
    if (is_kernel_name(cubins, ncubins, n)) return true;
    if (!starts(n, "_Z") || strchr(n, '@')) return false;
    if (starts(n, "_Zn") || starts(n, "_Zd")) return false;
    if (starts(n, "_ZSt") || starts(n, "_ZNSt") || starts(n, "_ZNKSt")) return s->bind == STB_WEAK;
    return true;
}

static void check_symbol(const struct elf_symbol *s, struct elf *const *cubins, size_t ncubins,
                         struct verdict *v) {
    if (s->type == STT_GNU_IFUNC)
        refuse(v, "object: %s is an indirect function, which runs when it is loaded", s->name);
    else if (s->type == STT_TLS)
        refuse(v, "object: %s is thread-local: not allowed", s->name);
    else if (s->section == SHN_UNDEF && *s->name && !is_allowed(s->name))
        refuse(v, "object: %s is called: %s", s->name,
               advice_for(s->name, "not among the functions that launch may call"));
    else if (s->section != SHN_UNDEF && s->bind != STB_LOCAL && !may_define(s, cubins, ncubins))
        refuse(v, "object: %s is defined: make it static", s->name);
}

/* Check all symbols, and that launch is among them. */
static void check_symbols(const struct elf *o, struct elf *const *cubins, size_t ncubins,
                          struct verdict *v) {
    bool launch = false;
    for (size_t i = 0; i < o->nsymbols; i++) {
        const struct elf_symbol *s = &o->symbols[i];
        check_symbol(s, cubins, ncubins, v);
        launch |=
            s->section != SHN_UNDEF && s->bind == STB_GLOBAL && strcmp(s->name, "launch") == 0;
    }
    if (!launch) refuse(v, "object: launch is not defined: extern \"C\" void launch(...)");
}

/* Whether relocation `type` reaches thread-local storage or runs a resolver. */
static bool is_foreign(unsigned machine, uint32_t type) {
    if (machine == ELF_AARCH64) return (type >= 512 && type <= 573) || type >= 1024;
    return (type >= 16 && type <= 23) || (type >= 34 && type <= 37);
}

/* Check that no relocation reaches thread-local storage, which leads to the C library. */
static void check_relocations(const struct elf *o, struct verdict *v) {
    for (size_t i = 0; i < o->nrelocations; i++) {
        const struct elf_relocation *r = &o->relocations[i];
        if (is_foreign(o->machine, r->type))
            refuse(v, "object: %s has relocation %u against %s: not allowed",
                   o->sections[r->target].name, r->type, o->symbols[r->symbol].name);
    }
}

/* The name of the instruction of aarch64 in n bytes of code that host code may not have, and *at,
 * where it is, or NULL. */
static const char *aarch64_forbidden(const unsigned char *code, size_t n, size_t *at) {
    for (*at = 0; *at + 4 <= n; *at += 4) {
        const unsigned char *p = code + *at;
        uint32_t w = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        if ((w & 0xffe0001f) == 0xd4000001) return "svc";
        if ((w & 0xffffffe0) == 0xd53bd040) return "mrs tpidr_el0";
    }
    return NULL;
}

/* Check the code: one instruction is named, as a constant may look like many. */
static void check_code(const struct elf *o, struct verdict *v) {
    for (unsigned i = 0; i < o->nsections; i++) {
        const struct elf_section *s = &o->sections[i];
        const char *what;
        size_t at;
        if (!(s->flags & SHF_EXECINSTR) || !s->bytes) continue;
        what = o->machine == ELF_AARCH64 ? aarch64_forbidden(s->bytes, s->size, &at)
                                         : x86_forbidden(s->bytes, s->size, &at);
        if (!what) continue;
        refuse(v,
               "%s: %s+0x%zx holds %s (or a constant that looks like it: change the "
               "constant)",
               o->type == ET_REL ? "object" : "library", s->name, at, what);
        return;
    }
}

/* Whether it is the host's code, in a file of this type (ET_*). */
static bool is_host(const struct elf *e, unsigned type) {
    return e->type == type && (e->machine == ELF_X86_64 || e->machine == ELF_AARCH64);
}

bool gate_object(const struct elf *object, struct elf *const *cubins, size_t ncubins, char *reason,
                 size_t size) {
    struct verdict v = {reason, size, 0, 0};
    *reason = 0;
    if (!is_host(object, ET_REL)) refuse(&v, "object: not an object file of x86-64 or aarch64");
    if (v.found) return false;
    check_sections(object, &v);
    check_symbols(object, cubins, ncubins, &v);
    check_constructors(object, &v);
    check_relocations(object, &v);
    check_code(object, &v);
    return conclude(&v);
}

bool gate_library(const struct elf *library, char *reason, size_t size) {
    struct verdict v = {reason, size, 0, 0};
    *reason = 0;
    if (!is_host(library, ET_DYN))
        refuse(&v, "library: not a library of x86-64 or aarch64");
    else
        check_code(library, &v);
    return conclude(&v);
}

bool gate_cubin(const struct elf *cubin, char *reason, size_t size) {
    struct verdict v = {reason, size, 0, 0};
    bool kernel = false;
    *reason = 0;
    if (cubin->machine != ELF_CUDA) {
        refuse(&v, "cubin: not a cubin");
        return false;
    }
    for (size_t i = 0; i < cubin->nsymbols; i++) {
        const struct elf_symbol *s = &cubin->symbols[i];
        if (s->section == SHN_UNDEF && *s->name && s->bind != STB_WEAK)
            refuse(&v, "cubin: %s is referenced: %s", s->name,
                   advice_for(s->name, "it is not defined in this file"));
        if (s->type == STT_OBJECT && (s->other & STO_CUDA_MANAGED))
            refuse(&v, "cubin: %s is managed memory: use scratch", s->name);
        kernel |= elf_is_kernel(cubin, s);
    }
    if (cubin->type != ET_EXEC) refuse(&v, "cubin: relocatable device code: compile without -rdc");
    if (!kernel) refuse(&v, "cubin: no kernel in it: define a __global__ function");
    return conclude(&v);
}
