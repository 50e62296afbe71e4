/* test_shapes.c: the table of a family of products: which shapes it is of, by size, and over which
 * of the libraries' calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/json.h"
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

enum { SHAPES = 12 };

static struct row rows[SHAPES];
static struct result cells[SHAPES];
static struct column column = {.name = "g1", .cell = cells};
static struct report report = {.nrows = SHAPES, .rows = rows, .ncolumns = 1, .columns = &column};

/* Twelve shapes whose speedup is 2: ten are small, one is of 2^24, and one of 2^36.  The best call
 * takes 10 us, and another 15. */
static void fill(void) {
    memset(rows, 0, sizeof rows);
    memset(cells, 0, sizeof cells);
    for (int i = 0; i < SHAPES; i++) {
        int m = i == 10 ? 256 : i == 11 ? 4096 : 64 + i;
        strcpy(rows[i].suite, "fam");
        strcpy(rows[i].class, "f16");
        snprintf(rows[i].task, sizeof rows[i].task, "fam_%d_%d_%d", m, i < 10 ? 64 : m,
                 i < 10 ? 64 : m);
        rows[i].family = true, rows[i].twin = i;
        cells[i] = (struct result){
            .verdict = "ok", .class = "f16", .ratio = 2, .candidate_us = 5, .floor_us = 4};
        cells[i].json = cJSON_Parse("{\"vendor_us\":{\"cublas_nn\":15,\"lt_nn\":10,\"lt_tn\":20}}");
    }
}

/* The tables, as a new string; the results are released. */
static char *tables(void) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    shapes_tables(&report, &column, out);
    fclose(out);
    for (int i = 0; i < SHAPES; i++) result_free(&cells[i]);
    return text;
}

/* Checks that a text has a part. */
static void holds(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("not there: %s\nin: %s", part, text);
}

/* By M N K; over each call, what was timed times what the search says of the two; what is slower
 * than the best call is counted. */
static void test_table(void **state) {
    (void)state;
    fill();
    cells[0].ratio = 0.94, cells[1].ratio = 0.96;
    char *text = tables();
    holds(text,
          "| below 2^24 | 10 | 1.723 | 2.000 | 1 | 80 % | 2.585 | - | 1.723 | 3.447 | - | - |");
    holds(text,
          "| below 2^28 | 1 | 2.000 | 2.000 | 0 | 80 % | 3.000 | - | 2.000 | 4.000 | - | - |");
    holds(text, "| 2^36 and more | 1 | 2.000 |");
    holds(text, "| **all** | 12 | 1.767 | 2.000 | 1 | 80 % | 2.650 |");
    assert_null(strstr(text, "| below 2^33 |"));
    free(text);
}

/* Only shapes that carry the headline are in it, and ten are the fewest. */
static void test_which(void **state) {
    (void)state;
    fill();
    strcpy(cells[0].class, "other"); /* of a lesser class */
    strcpy(cells[1].flags[cells[1].nflags++], "control-ratio");
    char *text = tables();
    holds(text, "| **all** | 10 | 2.000 |");
    free(text);
    fill();
    for (int i = 0; i < 3; i++) strcpy(cells[i].verdict, "wrong");
    assert_false(shapes_shown(&report, &column));
    text = tables();
    assert_string_equal(text, "");
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_which)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
