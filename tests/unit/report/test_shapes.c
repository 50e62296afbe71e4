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
          "| 2^24 to 2^28 | 1 | 2.000 | 2.000 | 0 | 80 % | 3.000 | - | 2.000 | 4.000 | - | - |");
    holds(text, "| 2^36 and more | 1 | 2.000 |");
    holds(text, "| **all** | 12 | 1.767 | 2.000 | 1 | 80 % | 2.650 |");
    assert_null(strstr(text, "| 2^28 to 2^33 |"));
    holds(text, "| **below 2^33** | 11 | 1.747 | 2.000 | 1 |");
    holds(text, "| **2^33 and more** | 1 | 2.000 |");
    free(text);
}

/* Only shapes that carry the headline are in it, and ten are the fewest. */
static void test_which(void **state) {
    (void)state;
    fill();
    strcpy(cells[0].class, "other"); /* of a lesser class */
    cells[1].flags = calloc(1, sizeof *cells[1].flags);
    cells[1].flags[cells[1].nflags++] = "control-ratio";
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

/* With boards that are known, a mean has an interval. */
static void test_interval(void **state) {
    (void)state;
    struct boards_of of = {.gpu = "other", .shift = {2, 1, 1e-4}};
    fill();
    report.boards = (struct boards){1, &of};
    for (int i = 0; i < SHAPES; i++) cells[i].low = cells[i].high = 2;
    char *text = tables();
    holds(text, "| **all** | 12 | 2.000 (1.882 to 2.125) |"); /* t of two, 4.303, times 1.41 % */
    free(text);
    report.boards = (struct boards){0};
}

/* A curve over each call that has a time, then over the best, and those of sizes. */
static void test_curves(void **state) {
    (void)state;
    char *data = NULL, *titles = NULL, *counts = NULL;
    size_t size[3];
    fill();
    cells[3].ratio = 1;
    FILE *d = open_memstream(&data, &size[0]), *t = open_memstream(&titles, &size[1]),
         *c = open_memstream(&counts, &size[2]);
    assert_int_equal(curves_data(&report, d, t, c), 2);
    fclose(d), fclose(t), fclose(c);
    assert_string_equal(titles, "\"g1, fam: over each of the libraries' calls\", "
                                "\"g1, fam: over the fastest call, by M N K\"");
    assert_string_equal(counts, "4, 3");
    holds(data, "# g1 fam\ncublas_nn: 12 shapes, 2.832\tspeedup\n4.1667\t1.5\n12.5000\t3\n");
    holds(data, "\nlt_nn: 12 shapes, 1.888\tspeedup\n");
    assert_null(strstr(data, "lt_nn: 0"));
    assert_null(strstr(data, "cublas_tn"));
    holds(data, "\nthe fastest of them: 12 shapes, 1.888\tspeedup\n4.1667\t1\n12.5000\t2\n");
    holds(data, "\nbelow 2^24: 10 shapes, 1.866\tspeedup\n5.0000\t1\n15.0000\t2\n");
    holds(data, "\n2^36 and more: 1 shapes, 2.000\tspeedup\n50.0000\t2\n");
    assert_null(strstr(data, "**"));
    for (int i = 0; i < SHAPES; i++) result_free(&cells[i]);
    free(data), free(titles), free(counts);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_which),
                                       cmocka_unit_test(test_interval),
                                       cmocka_unit_test(test_curves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
