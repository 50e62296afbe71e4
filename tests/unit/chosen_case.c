/* chosen_case.c: linked with every unit test: CASE in the environment chooses test functions, those
 * whose name it is part of (make test NAMES=test_tape CASE=fork). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

__attribute__((constructor)) static void choose(void) {
    static char pattern[256]; /* cmocka keeps the pointer */
    const char *words = getenv("CASE");
    if (!words || !*words) return;
    snprintf(pattern, sizeof pattern, "*%s*", words);
    cmocka_set_test_filter(pattern);
}
