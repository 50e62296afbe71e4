/* test_gate_library.c: a linked library is read and passes the gate, but not with an instruction
 * that the linker wrote, of which the object has nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/elf.h"
#include "compile/gate.h"

static char dir[256], path[300];

static struct elf *read_elf(const char *name) {
    char message[512];
    bool malformed;
    struct elf *e;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    e = elf_read(path, &malformed, message, sizeof message);
    if (!e) fail_msg("%s", message);
    return e;
}

/* Assemble text beside code like a kernel's, and link it.  Returns the library, and its object. */
static struct elf *linked(const char *text, struct elf **object) {
    static const char code[] = "extern int atexit(void (*)(void));\n"
                               "static int calls; static const char *names[] = {\"a\", \"b\"};\n"
                               "static void f(void) { calls++; }\n"
                               "const char *launch(int i) { atexit(f); return names[i]; }\n";
    const char *cc = getenv("CC");
    char command[1024];
    FILE *f;
    snprintf(path, sizeof path, "%s/a.c", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "%s__asm__(\"%s\");\n", code, text);
    assert_int_equal(fclose(f), 0);
    if (!cc) cc = "cc";
    snprintf(command, sizeof command,
             "cd %s && %s -O1 -w -fPIC -c a.c -o a.o && %s -shared -o a.so a.o", dir, cc, cc);
    assert_int_equal(system(command), 0);
    *object = read_elf("a.o");
    return read_elf("a.so");
}

static void test_library(void **state) {
    char reason[512];
    struct elf *object, *library = linked("", &object);
    (void)state;
    if (!gate_library(library, reason, sizeof reason)) fail_msg("%s", reason);
    assert_string_equal(reason, "");
    assert_false(gate_library(object, reason, sizeof reason));
    assert_non_null(strstr(reason, "not a library"));
    assert_false(gate_object(library, NULL, 0, reason, sizeof reason));
    elf_free(object);
    elf_free(library);
}

/* The assembler leaves the distance of places in two sections to the linker, which puts the second
 * behind the first: 4, and what is added. */
static void test_written(void **state) {
    static const struct {
        unsigned machine;
        const char *number, *reason;
    } written[] = {{ELF_X86_64, "0x50f", "holds syscall"},
                   {ELF_AARCH64, "0xd4000001", "holds svc"}};
    char reason[512], text[256];
    struct elf *object, *library = linked("", &object);
    unsigned machine = library->machine;
    (void)state;
    elf_free(object);
    elf_free(library);
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        if (written[i].machine != machine) continue;
        snprintf(text, sizeof text,
                 ".section .text.y,\\\"ax\\\"\\n.long z - . - 4 + %s\\n"
                 ".section .text.z,\\\"ax\\\"\\nz: ret\\n.text",
                 written[i].number);
        library = linked(text, &object);
        assert_false(gate_object(object, NULL, 0, reason, sizeof reason));
        assert_null(strstr(reason, " holds "));
        assert_false(gate_library(library, reason, sizeof reason));
        assert_ptr_equal(strstr(reason, "library: .text+0x"), reason);
        assert_non_null(strstr(reason, written[i].reason));
        elf_free(object);
        elf_free(library);
    }
}

static int make_dir(void **state) {
    const char *tmp = getenv("TMPDIR");
    (void)state;
    snprintf(dir, sizeof dir, "%s/test_gate_library.XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state) {
    char command[300];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_library),
        cmocka_unit_test(test_written),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
