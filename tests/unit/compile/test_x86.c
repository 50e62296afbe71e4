/* test_x86.c: forbidden instructions of x86-64 are found, however they are written.  No machine of
 * that kind is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "compile/x86.h"

struct code {
    const char *bytes;
    size_t n;
    const char *what; /* NULL: nothing is forbidden */
    size_t at;
};
#define CODE(bytes) bytes, sizeof(bytes) - 1

/* Look through code.  The bytes have an allocation of their own, so that a sanitizer sees a read
 * beyond them. */
static const char *look(const char *bytes, size_t n, size_t *at) {
    unsigned char *copy = malloc(n ? n : 1);
    const char *what;
    assert_non_null(copy);
    memcpy(copy, bytes, n);
    what = x86_forbidden(copy, n, at);
    free(copy);
    return what;
}

static void check(const struct code *c, size_t n) {
    for (size_t i = 0; i < n; i++) {
        size_t at;
        const char *what = look(c[i].bytes, c[i].n, &at);
        if (!what != !c[i].what || (what && !strstr(what, c[i].what)))
            fail_msg("code %zu: %s instead of %s", i, what ? what : "nothing",
                     c[i].what ? c[i].what : "nothing");
        if (what) assert_int_equal(at, c[i].at);
    }
}

static void test_instructions(void **state) {
    static const struct code codes[] = {
        {CODE("\x90\x0f\x05"), "syscall", 1},
        {CODE("\xb8\x01\x0f\x34\x02"), "sysenter", 2},
        {CODE("\xcd\x80"), "int 0x80", 0},
        {CODE("\xf3\x0f\xae\xc0"), "rdfsbase", 0},
        {CODE("\xf3\x2e\x48\x0f\xae\xc8"), "rdfsbase", 0},
        {CODE("\x64\x48\x8b\x04\x25\0\0\0\0"), "%fs", 0},         /* mov %fs:0,%rax */
        {CODE("\x65\x8b\x04\x25\x28\0\0\0"), "%fs", 0},           /* mov %gs:0x28,%eax */
        {CODE("\x64\x0f\xb6\x04\x25\0\0\0\0"), "%fs", 0},         /* movzbl %fs:0,%eax */
        {CODE("\x64\x66\x0f\x38\x17\x04\x25\0\0\0\0"), "%fs", 0}, /* ptest %fs:0,%xmm0 */
        {CODE("\x48\xb8\x64\x0f\xb6\x04\x25\0\0\0\0"), "%fs", 2}, /* in a constant */
        {CODE("\x64\x48\x8b\x04\x25\x28\0\0\0\xc3"), NULL, 0},    /* the stack protector's word */
        {CODE("\x64\x48\x33\x14\x25\x28\0\0\0\xc3"), NULL, 0},
        {CODE("\x64\xc5\xf8\x10\x04\x25\0\0\0\0"), "%fs", 0},         /* vmovups %fs:0,%xmm0 */
        {CODE("\x64\xc4\xe2\x79\x17\x04\x25\0\0\0\0"), "%fs", 0},     /* vptest %fs:0,%xmm0 */
        {CODE("\x64\x62\xf1\x7c\x48\x10\x04\x25\0\0\0\0"), "%fs", 0}, /* vmovups %fs:0,%zmm0 */
        {CODE("\x0f"), NULL, 0},
        {CODE(""), NULL, 0},
    };
    (void)state;
    check(codes, sizeof codes / sizeof *codes);
}

/* Code that is cut anywhere, and code of any bytes: no read beyond it, and an end. */
static void test_any_bytes(void **state) {
    uint32_t seed = 1;
    (void)state;
    for (size_t n = 0; n < 3000; n++) {
        char bytes[64];
        size_t at, size = n % sizeof bytes;
        for (size_t i = 0; i < size; i++) {
            seed = seed * 1664525 + 1013904223;
            bytes[i] = (char)(seed >> 24);
        }
        look(bytes, size, &at);
        assert_true(at <= size);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instructions),
        cmocka_unit_test(test_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
