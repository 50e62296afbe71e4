/* test_gate.c: the gate accepts objects like nvcc's, refuses and names each forbidden thing by
 * itself, and refuses damaged files without a crash.  The C compiler makes the host objects, so
 * most tests need no nvcc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/elf.h"
#include "compile/gate.h"

static char dir[256];

/* Run a shell command in the scratch folder; return its exit status. */
__attribute__((format(printf, 1, 2))) static int run(const char *format, ...) {
    char command[2048], line[2560];
    va_list ap;
    int status;
    va_start(ap, format);
    vsnprintf(command, sizeof command, format, ap);
    va_end(ap);
    snprintf(line, sizeof line, "cd %s && { %s; } > log 2>&1", dir, command);
    status = system(line);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static char *path_of(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void write_file(const char *name, const char *a, const char *b) {
    FILE *f = fopen(path_of(name), "w");
    assert_non_null(f);
    fputs(a, f);
    fputs(b, f);
    assert_int_equal(fclose(f), 0);
}

static struct elf *read_elf(const char *name) {
    char message[512];
    bool malformed;
    struct elf *e = elf_read(path_of(name), &malformed, message, sizeof message);
    if (!e) fail_msg("%s", message);
    assert_false(malformed);
    return e;
}

/* Compile C text after `prelude`. */
static struct elf *compile(const char *prelude, const char *text) {
    const char *cc = getenv("CC");
    write_file("a.c", prelude, text);
    if (run("%s -O1 -w -fPIC -fno-stack-protector -fcf-protection=none -c a.c -o a.o 2>&1 ||"
            " %s -O1 -w -fPIC -c a.c -o a.o",
            cc ? cc : "cc", cc ? cc : "cc"))
        fail_msg("does not compile: %s", text);
    return read_elf("a.o");
}

/* The parts that nvcc adds to each object, then a launch; a test's own code follows. */
static const char nvcc_like[] =
    "extern int atexit(void (*)(void));\n"
    "extern void **__cudaRegisterFatBinary(const void *);\n"
    "extern void __cudaUnregisterFatBinary(void **);\n"
    "extern int cudaLaunchKernel(const void *), cudaMemsetAsync(void *, int, unsigned long);\n"
    "static void **handle;\n"
    "static const int image[4] __attribute__((section(\".nv_fatbin\"), used)) = {1};\n"
    "static void unregister(void) { __cudaUnregisterFatBinary(handle); }\n";
static const char registration[] =
    "__attribute__((constructor)) static void r(void) "
    "__asm__(\"_ZL24__sti____cudaRegisterAllv\");\n"
    "static void r(void) { handle = __cudaRegisterFatBinary(image); atexit(unregister); }\n";
static const char launch[] = "void launch(void) { cudaLaunchKernel(image); }\n";

/* A cubin with kernel `relu` and one variable of each kind, assembled as host code and then
 * marked as a cubin. */
static struct elf *make_cubin(void) {
    struct elf *e = compile(
        "",
        "__asm__(\".section .text.relu,\\\"ax\\\",%progbits\\n .globl relu\\n .type "
        "relu,%function\\n\""
        "\"relu: .zero 16\\n .size relu,16\\n\""
        "\".section .nv.global,\\\"aw\\\",%nobits\\n .type counter,%object\\n\""
        "\"counter: .zero 8\\n .size counter,8\\n\""
        "\".section .nv.global.init,\\\"aw\\\",%progbits\\n .type start,%object\\n\""
        "\"start: .long 5\\n .size start,4\\n\""
        "\".section .nv.constant3,\\\"a\\\",%progbits\\n .globl table\\n .type table,%object\\n\""
        "\"table: .long 1,2,3\\n .size table,12\\n .text\\n\");\n");
    e->machine = ELF_CUDA;
    e->type = ET_EXEC;
    for (size_t i = 0; i < e->nsymbols; i++)
        if (!strcmp(e->symbols[i].name, "relu")) e->symbols[i].other |= 0x10;
    return e;
}

/* Judge an object of nvcc's parts and `extra`; returns "" or the reason. */
static const char *judge(const char *extra, bool with_cubin) {
    static char reason[512];
    char text[8192];
    struct elf *cubin = make_cubin(), *object;
    snprintf(text, sizeof text, "%s%s%s", registration, launch, extra);
    object = compile(nvcc_like, text);
    reason[0] = 0;
    if (gate_object(object, &cubin, with_cubin, reason, sizeof reason)) reason[0] = 0;
    elf_free(object);
    elf_free(cubin);
    return reason;
}

static void test_good_objects(void **state) {
    static const char *const good[] = {
        "",
        "unsigned long scratch_bytes(void) { return 1; }",
        "int user(int x) __asm__(\"_Z4useri\"); int user(int x) { return x + 1; }",
        "static int calls; void user(void) __asm__(\"_Z4userv\"); extern void *_Znwm(unsigned "
        "long);"
        "void user(void) { calls++; cudaMemsetAsync(_Znwm(9), 0, 9); }",
        "static const char *text[] = {\"dlopen\", \"syscall\"};"
        "const char *user(int i) __asm__(\"_Z4useri\"); const char *user(int i) { return text[i]; "
        "}",
        "int cudaOccupancyMaxActiveClusters(void), __cudaLaunchKernel(void), __cudaGetKernel(void);"
        "void user(void) __asm__(\"_Z4userv\"); void user(void) {"
        "cudaOccupancyMaxActiveClusters(); __cudaLaunchKernel(); __cudaGetKernel(); }",
        "int __udivti3(void); void grow(void) "
        "__asm__(\"_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_appendEPKcm\");"
        "void user(void) __asm__(\"_Z4userv\"); void user(void) { __udivti3(); grow(); }",
        "int cuTensorMapEncodeTiled(void), cudaGetDriverEntryPoint(void);"
        "int cudaGetDriverEntryPointByVersion(void);"
        "void user(void) __asm__(\"_Z4userv\"); void user(void) {"
        "cuTensorMapEncodeTiled(); cudaGetDriverEntryPoint(); cudaGetDriverEntryPointByVersion(); "
        "}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_string_equal(judge(good[i], 1), "");
    assert_string_equal(judge("void relu(void) {}", 1), ""); /* the stub of an extern "C" kernel */
    assert_non_null(strstr(judge("void relu(void) {}", 0), "relu is defined"));
}

/* Of the driver's maps one function is offered. */
static void test_maps(void **state) {
    static const char text[] =
        "int cuTensorMapEncodeIm2col(void); void user(void) __asm__(\"_Z4userv\");"
        "void user(void) { cuTensorMapEncodeIm2col(); }";
    (void)state;
    assert_non_null(strstr(judge(text, 1), "only cuTensorMapEncodeTiled is offered"));
}

#define BODY(x) "void user(void) __asm__(\"_Z4userv\"); void user(void) { " x " }"

static void test_bad_objects(void **state) {
    static const struct {
        const char *text, *reason;
    } bad[] = {
        {"void *dlsym(void *, const char *);" BODY("dlsym(0, 0);"), "dlsym is called"},
        {"int fork(void);" BODY("fork();"), "fork is called"},
        {"int cublasCreate_v2(void);" BODY("cublasCreate_v2();"), "no vendor library"},
        {"int cudaMalloc(void);" BODY("cudaMalloc();"), "scratch_bytes"},
        {"int cudaMemsetAsyncX(void);" BODY("cudaMemsetAsyncX();"), "cudaMemsetAsyncX is called"},
        {"__attribute__((weak)) int dlopen(void);" BODY("if (dlopen) dlopen();"),
         "dlopen is called"},
        {"int memcmp(const void *a, const void *b, unsigned long n) { return 0; }",
         "memcmp is defined"},
        {"int counter = 3;", "counter is defined"},
        {"void op(void) __asm__(\"_ZdlPv\"); void op(void) {}", "_ZdlPv is defined"},
        {"void op(void) __asm__(\"_ZNSt6vectorE\"); void op(void) {}", "_ZNSt6vectorE is defined"},
        {"static __thread volatile int t;" BODY("t++;"), "thread-local"},
        {"extern __thread volatile int t;" BODY("t++;"), "not"},
        {"static int a(void) { return 1; } static void *pick(void) { return a; }"
         "int fast(void) __attribute__((ifunc(\"pick\")));",
         "indirect function"},
        {"__attribute__((constructor)) static void early(void) { unregister(); }",
         "early runs when"},
        {"__attribute__((constructor(101))) static void early(void) { unregister(); }",
         "early runs"},
        {"__attribute__((destructor)) static void late(void) { handle = 0; }", ".fini_array"},
        {"static void f(void) { handle = 0; }"
         "__attribute__((section(\".preinit_array\"), used)) static void *p = f;",
         ".preinit_array"},
        {"static void f(void) { handle = 0; }"
         "__attribute__((section(\".ctors\"), used)) static void *p = f;",
         ".ctors"},
        {"__asm__(\".section .init,\\\"ax\\\",%progbits\\n .zero 4\\n .text\");", ".init"},
        {"__asm__(\".section .text.x,\\\"awx\\\",%progbits\\n .zero 4\\n .text\");",
         "writable and exec"},
        {"__asm__(\".section .rodata.x,\\\"ax\\\",%progbits\\n .zero 4\\n .text\");", "holds code"},
        {"static const volatile char t[70000] = {1};" BODY("handle = (void *)(long)t[5];"),
         "constant data"},
#ifdef __x86_64__
        {BODY("long r; __asm__ volatile(\"syscall\" : \"=a\"(r) : \"a\"(39));"), "holds syscall"},
        {BODY("__asm__ volatile(\"int $0x80\");"), "holds int 0x80"},
        {BODY("__asm__ volatile(\"sysenter\");"), "holds sysenter"},
        {BODY("long r; __asm__ volatile(\"rdfsbase %0\" : \"=r\"(r));"), "holds rdfsbase"},
        {BODY("long r; __asm__ volatile(\"mov %%fs:0, %0\" : \"=r\"(r));"), "through %fs"},
#else
        {BODY("__asm__ volatile(\"svc 0\");"), "holds svc"},
        {BODY("long r; __asm__ volatile(\"mrs %0, tpidr_el0\" : \"=r\"(r));"), "holds mrs"},
#endif
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *reason = judge(bad[i].text, 1);
        if (!strstr(reason, bad[i].reason)) fail_msg("\"%s\" for: %s", reason, bad[i].text);
        assert_null(strchr(reason, '\n'));
    }
#ifdef __x86_64__ /* a stack protector's canary is not a secret */
    assert_string_equal(
        judge(BODY("long r; __asm__ volatile(\"mov %%fs:0x28, %0\" : \"=r\"(r));"), 1), "");
#endif
}

/* Every reason is named, in one line; those that have no room are counted. */
static void test_all_reasons(void **state) {
    char text[4096] = "";
    (void)state;
    const char *reason = judge("int fork(void), cudaMalloc(void); int counter = 3;"
                               "static __thread volatile int t;" BODY("fork(); cudaMalloc(); t++;"),
                               1);
    static const char *const all[] = {"thread-local", "fork is called", "cudaMalloc is called",
                                      "counter is defined"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strstr(reason, all[i])) fail_msg("no %s in %s", all[i], reason);
    assert_null(strchr(reason, '\n'));
    for (int i = 10; i < 60; i++)
        sprintf(text + strlen(text), "int a_long_name_of_a_global_variable_%d = 3;", i);
    reason = judge(text, 1);
    assert_non_null(strstr(reason, " is defined: make it static; object: "));
    if (!strstr(reason, "; and 4")) fail_msg("%s", reason); /* 40 and some more */
    assert_true(strlen(reason) < 512);
    reason = judge("__asm__(\".section .init_array,\\\"aw\\\"\\n .rept 20\\n"
                   ".quad _ZL24__sti____cudaRegisterAllv\\n .endr\\n .text\");",
                   1);
    assert_non_null(strstr(reason, "more than 16 functions run"));
}

static void test_missing_parts(void **state) {
    char reason[512];
    struct elf *e = compile(nvcc_like, registration);
    (void)state;
    assert_false(gate_object(e, NULL, 0, reason, sizeof reason));
    assert_non_null(strstr(reason, "launch is not defined"));
    elf_free(e);
    e = compile(nvcc_like, launch);
    assert_false(gate_object(e, NULL, 0, reason, sizeof reason));
    assert_non_null(strstr(reason, "no kernel is registered"));
    assert_false(gate_cubin(e, reason, sizeof reason));
    assert_non_null(strstr(reason, "not a cubin"));
    elf_free(e);
    e = make_cubin();
    assert_false(gate_object(e, NULL, 0, reason, sizeof reason));
    elf_free(e);
}

/* The existing symbol called `name`. */
static struct elf_symbol *symbol(struct elf *e, const char *name) {
    for (size_t i = 0; i < e->nsymbols; i++)
        if (!strcmp(e->symbols[i].name, name)) return &e->symbols[i];
    fail_msg("no symbol %s", name);
    return NULL;
}

static void test_cubins(void **state) {
    static const struct {
        const char *name, *reason;
    } undefined[] = {{"vprintf", "remove printf"},
                     {"malloc", "remove malloc"},
                     {"free", "remove free"},
                     {"__assertfail", "remove assert"},
                     {"__cudaCDP2LaunchDeviceV2", "remove launches"},
                     {"cudaLaunchDeviceV2", "remove launches"},
                     {"elsewhere", "not defined in this file"}};
    char reason[512];
    struct elf *e = make_cubin();
    struct elf_symbol *s = symbol(e, "counter");
    (void)state;
    assert_true(gate_cubin(e, reason, sizeof reason));
    s->other = 4;
    assert_false(gate_cubin(e, reason, sizeof reason));
    assert_non_null(strstr(reason, "counter is managed"));
    *s = (struct elf_symbol){.type = STT_FUNC, .bind = STB_GLOBAL, .section = SHN_UNDEF};
    for (size_t i = 0; i < sizeof undefined / sizeof *undefined; i++) {
        s->name = undefined[i].name;
        assert_false(gate_cubin(e, reason, sizeof reason));
        assert_non_null(strstr(reason, undefined[i].name));
        assert_non_null(strstr(reason, undefined[i].reason));
    }
    s->name = "__nv_reservedSMEM_offset_0_alias";
    s->bind = STB_WEAK;
    assert_true(gate_cubin(e, reason, sizeof reason));
    e->type = ET_REL;
    assert_false(gate_cubin(e, reason, sizeof reason));
    assert_non_null(strstr(reason, "-rdc"));
    e->type = ET_EXEC;
    symbol(e, "relu")->other = 0;
    assert_false(gate_cubin(e, reason, sizeof reason));
    assert_non_null(strstr(reason, "no kernel"));
    elf_free(e);
}

static void test_variables(void **state) {
    struct elf_variable *v;
    struct elf *e = make_cubin();
    size_t n = elf_variables(e, &v);
    (void)state;
    assert_int_equal(n, 3);
    for (size_t i = 0; i < n; i++) {
        bool counter = !strcmp(v[i].name, "counter"), table = !strcmp(v[i].name, "table");
        assert_int_equal(v[i].size, counter ? 8 : table ? 12 : 4);
        assert_int_equal(v[i].constant, table);
    }
    free(v);
    elf_free(e);
    e = compile("int nothing;", "");
    assert_int_equal(elf_variables(e, &v), 0);
    assert_null(v);
    elf_free(e);
}

/* Parse damaged bytes, and judge those that still parse: any result but a crash passes. */
static int survive(const unsigned char *bytes, size_t size) {
    char message[512];
    struct elf_variable *v;
    struct elf *e = elf_parse(bytes, size, "damaged", message, sizeof message);
    if (!e) {
        assert_non_null(strstr(message, "damaged: "));
        return 0;
    }
    gate_object(e, &e, 1, message, sizeof message);
    e->machine = ELF_CUDA;
    gate_cubin(e, message, sizeof message);
    elf_variables(e, &v);
    free(v);
    elf_free(e);
    return 1;
}

static uint32_t draw(uint32_t *seed) {
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

static void test_damage(void **state) {
    char text[4096];
    struct elf *e;
    unsigned char *copy;
    uint32_t seed = 1;
    int parsed = 0;
    (void)state;
    snprintf(text, sizeof text, "%s%s", registration, launch);
    e = compile(nvcc_like, text);
    copy = malloc(e->size);
    assert_non_null(copy);
    for (size_t n = 0; n < e->size; n += n < 128 ? 1 : 37) assert_int_equal(survive(e->file, n), 0);
    for (int i = 0; i < 3000; i++) {
        size_t table = e->nsections * sizeof(Elf64_Shdr);
        memcpy(copy, e->file, e->size);
        for (int k = draw(&seed) % 6; k >= 0; k--) { /* anywhere, in the file header, in the
                                                      * section headers */
            size_t where = i % 3 == 0   ? draw(&seed) % e->size
                           : i % 3 == 1 ? draw(&seed) % 64
                                        : e->size - 1 - draw(&seed) % table;
            copy[where] = draw(&seed) % 4 ? (unsigned char)draw(&seed) : 0xff;
        }
        parsed += survive(copy, e->size);
    }
    assert_true(parsed > 100 && parsed < 2900);
    free(copy);
    elf_free(e);
}

/* What the assembler makes of a kernel's text and the reader refuses is malformed; what cannot be
 * read is not. */
static void test_malformed(void **state) {
    static const struct {
        const char *text, *reason;
    } bad[] = {{".globl f\nf:\n.section .x,\"\",%0x2\n.quad 0\n", "two symbol tables"},
               {".globl f\nf:\n.section .x,\"\",%0x12\n.quad 0\n", "extended section numbers"},
               {".altmacro\n.macro one n\n.section s&n\n.endm\n.set i, 0\n"
                ".rept 65300\none %i\n.set i, i + 1\n.endr\n",
                "more than 65280 sections"}};
    const char *cc = getenv("CC");
    char message[512];
    bool malformed;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file("m.s", bad[i].text, "");
        assert_int_equal(run("%s -c m.s -o m.o", cc ? cc : "cc"), 0);
        assert_null(elf_read(path_of("m.o"), &malformed, message, sizeof message));
        assert_true(malformed);
        if (!strstr(message, bad[i].reason)) fail_msg("%s", message);
    }
    assert_null(elf_read(path_of("nosuch"), &malformed, message, sizeof message));
    assert_false(malformed);
    assert_null(elf_read(dir, &malformed, message, sizeof message));
    assert_false(malformed);
}

/* With nvcc: a real object and its cubin pass, and all variables are found. */
static void test_nvcc(void **state) {
    static const char *const expected[] = {"s_dev",       "g_dev",  "g_init",
                                           "in_function", "hidden", "table"};
    static const char source[] =
        "static __device__ int s_dev; __device__ int g_dev, g_init = 5; __constant__ int table[2] "
        "= {1, 2};\n"
        "namespace { __device__ int hidden; }\n"
        "extern \"C\" __global__ void plain(int *p) { static __device__ int in_function;\n"
        "  *p = s_dev++ + g_dev++ + g_init++ + hidden++ + in_function++ + table[*p & 1]; }\n"
        "template <int N> __global__ void many(int *p) { *p = N; }\n"
        "extern \"C\" void launch(int *p, cudaStream_t s) {\n"
        "  plain<<<1, 1, 0, s>>>(p); many<3><<<1, 1, 0, s>>>(p); }\n";
    char reason[512];
    struct elf *object, *cubin;
    struct elf_variable *v;
    unsigned found = 0;
    size_t n;
    (void)state;
    write_file("a.cu", source, "");
    if (run("PATH=$PATH:/usr/local/cuda/bin; nvcc --version")) skip();
    assert_int_equal(run("PATH=$PATH:/usr/local/cuda/bin; nvcc -O3 -Xcompiler -fPIC,-fno-exceptions"
                         " -c a.cu -o a.o --keep"),
                     0);
    assert_int_equal(run("mv a*.cubin a.cubin || mv a*.sm_*.cubin a.cubin || ls a.cubin"), 0);
    object = read_elf("a.o");
    cubin = read_elf("a.cubin");
    if (!gate_cubin(cubin, reason, sizeof reason)) fail_msg("%s", reason);
    if (!gate_object(object, &cubin, 1, reason, sizeof reason)) fail_msg("%s", reason);
    n = elf_variables(cubin, &v);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 6; k++)
            if (strstr(v[i].name, expected[k])) found |= 1u << k;
    assert_int_equal(n, 6);
    assert_int_equal(found, 0x3f);
    free(v);
    elf_free(object);
    elf_free(cubin);
}

/* The confined command sees what it was given, and nothing else. */
static void test_confine(void **state) {
    char confine[600], status[64] = "";
    ssize_t n = readlink("/proc/self/exe", confine, 500);
    FILE *f;
    (void)state;
    assert_true(n > 0);
    confine[n] = 0;
    for (int up = 0; up < 2 && strrchr(confine, '/'); up++) *strrchr(confine, '/') = 0;
    strcat(confine, "/confine"); /* this program is build/tests/test_gate */
    if (access(confine, X_OK) != 0) skip();
#define CONFINE "%s -s status -r /usr /lib /lib64 /bin /etc/ld.so.cache nosuch in -w out -- "
    assert_int_equal(run("mkdir in out; echo a > in/a; echo b > b"), 0);
    assert_int_equal(run(CONFINE "cat in/a", confine), 0);
    assert_int_equal(run(CONFINE "sh -c 'cat in/a > out/a; exit 9'", confine), 9);
    assert_int_equal(run("cmp in/a out/a"), 0);
    assert_int_equal(run(CONFINE "./nosuch", confine), 127);
    assert_int_equal(run("%s -r /usr", confine), 2);
    f = fopen(path_of("status"), "r");
    assert_non_null(f);
    assert_non_null(fgets(status, sizeof status, f));
    fclose(f);
    if (strncmp(status, "landlock ", 9)) skip();
    assert_int_not_equal(run(CONFINE "cat b", confine), 0);
    assert_int_not_equal(run(CONFINE "cat in/../b", confine), 0);
    assert_int_not_equal(run(CONFINE "sh -c 'echo c > in/a'", confine), 0);
    assert_int_not_equal(run(CONFINE "sh -c 'echo c > c'", confine), 0);
    assert_int_equal(run(CONFINE "sh -c 'echo c > /dev/null'", confine), 0);
}

static int make_dir(void **state) {
    const char *tmp = getenv("TMPDIR");
    (void)state;
    snprintf(dir, sizeof dir, "%s/test_gate.XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state) {
    (void)state;
    return run("rm -rf *") || rmdir(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_objects),  cmocka_unit_test(test_maps),
        cmocka_unit_test(test_bad_objects),   cmocka_unit_test(test_all_reasons),
        cmocka_unit_test(test_missing_parts), cmocka_unit_test(test_cubins),
        cmocka_unit_test(test_variables),     cmocka_unit_test(test_damage),
        cmocka_unit_test(test_malformed),     cmocka_unit_test(test_nvcc),
        cmocka_unit_test(test_confine),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
