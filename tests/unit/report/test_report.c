/* test_report.c: aggregates with known values, tables, refused files, judgments.
 *
 * The cells are those of tests/unit/report/results, of a GPU that does not exist. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "report/compare.h"
#include "report/report.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HERE "tests/unit/report/results"

static void near(double x, double expected) {
    if (!(fabs(x - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.12g, expected %.12g", x, expected);
}

static void load(struct report *r) {
    report_load(r, HERE "/recorded", HERE "/tasks");
}

/* Refusals are one line each on stderr; keep them out of the test's output. */
static int mute(void) {
    int kept = dup(2), nothing = open("/dev/null", O_WRONLY);
    fflush(stderr);
    dup2(nothing, 2);
    close(nothing);
    return kept;
}

static void unmute(int kept) {
    fflush(stderr);
    dup2(kept, 2);
    close(kept);
}

/* level1 holds 0.5, 2, 8, a wrong cell, one never measured, and a degenerate one. */
static void test_level1(void **state) {
    struct report r;
    (void)state;
    load(&r);
    assert_int_equal(r.nrows, 8);
    assert_int_equal(r.ncolumns, 1);
    assert_int_equal(r.read, 7);
    assert_int_equal(r.refused, 0);
    assert_string_equal(r.columns[0].arch, "sm_90");
    struct aggregate a = report_aggregate(&r, &r.columns[0], "level1");
    assert_int_equal(a.all, 5);
    assert_int_equal(a.correct, 3);
    assert_int_equal(a.left_out, 1);
    assert_int_equal(a.wins, 2);
    const int fast[FAST_P] = {3, 2, 2, 2, 2, 1}; /* more than p, so 0.5 and 2 do not count */
    for (int p = 0; p < FAST_P; p++) assert_int_equal(a.fast[p], fast[p]);
    near(a.over_all.geomean, pow(8, 0.2)); /* 0.5 * 2 * 8 * 1 * 1 */
    near(a.over_all.mean, 12.5 / 5);
    near(a.over_all.median, 1);
    near(a.over_all.q1, 1);
    near(a.over_all.q3, 2);
    near(a.over_all.max, 8);
    assert_int_equal(a.over_correct.n, 3);
    near(a.over_correct.geomean, 2);
    near(a.over_correct.mean, 3.5);
    near(a.over_correct.median, 2);
    near(a.over_correct.max, 8);
    report_free(&r);
}

/* level2 holds 1.0 with an interval around 1, and a weak baseline's 10. */
static void test_level2_and_all(void **state) {
    struct report r;
    (void)state;
    load(&r);
    struct aggregate a = report_aggregate(&r, &r.columns[0], "level2");
    assert_int_equal(a.all, 1);
    assert_int_equal(a.correct, 1);
    assert_int_equal(a.left_out, 1);
    assert_int_equal(a.wins, 0);
    assert_int_equal(a.fast[3], 0); /* 1.0 is not more than 1 */
    near(a.over_all.geomean, 1);
    a = report_aggregate(&r, &r.columns[0], NULL);
    assert_int_equal(a.all, 6);
    assert_int_equal(a.correct, 4);
    assert_int_equal(a.left_out, 2);
    near(a.over_all.geomean, pow(8, 1.0 / 6));
    a = report_aggregate(&r, &r.columns[0], "level9");
    assert_int_equal(a.all, 0);
    near(a.over_all.geomean, 0);
    report_free(&r);
}

/* The generated part of the README, as a new string. */
static char *tables_of(const struct report *r) {
    struct table published = {0};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    report_tables(r, &published, out);
    fclose(out);
    return text;
}

static void holds(const char *text, const char *const *expected, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!strstr(text, expected[i])) fail_msg("not in the tables: %s\n%s", expected[i], text);
}

static void test_tables(void **state) {
    struct report r;
    (void)state;
    load(&r);
    char *text = tables_of(&r);
    static const char *const expected[] = {
        "| testgpu | level1 | 3 / 5 | 60 % | 40 % | 40 % | 40 % | 40 % | 20 % | 40 % | 1 |\n",
        "| testgpu | level1 | correct only | 3 | 2.000 | 2.000 | 3.500 | 1.250 to 5.000 | 8.00 |\n",
        "Fake Test GPU, driver 1.2.3, CUDA 13.0, cuBLAS 13.1, 700 W.\n",
        "| absent | not measured | - | - | - | - | - | - | - |  |\n",
        "| twice | ok | fp32 | 10.00 | 20.00 | **2.000** (1.980 to 2.020) | 50 % | 16.00 (graph)",
        "| wrong | wrong | - | - | - | - | - | - | - | out&#91;7&#93; is 3, expected 4 |\n",
        "| constant | ok | fp32 | 10.00 | 1000 | **100.000** (99.000 to 101.000) | 50 %",
        "| 50 % | - | - | left out |\n", "| 50 % | - | - | weak-baseline: no cuDNN |\n",
        "| half | ok | fp32 | 10.00 | 5.000 | **0.500** (0.495 to 0.505) | 50 % | 5.000 (eager) |",
        /* 20 over 16, 5 over 5, 10 over 20; no other cell has a time of PyTorch's */
        "\n| testgpu | 3 | 0.855 | 2 | 1 | twice fp32 1.25 |\n"};
    holds(text, expected, sizeof expected / sizeof *expected);
    free(text);
    report_free(&r);
}

/* twice and half have a doubtful time, and are in their rows alone; eight has flags that say
 * nothing of the sort. */
static void test_doubtful(void **state) {
    struct report r;
    (void)state;
    report_load(&r, HERE "/doubtful", HERE "/tasks");
    assert_int_equal(r.read, 3);
    struct aggregate a = report_aggregate(&r, &r.columns[0], "level1");
    assert_int_equal(a.left_out, 3); /* and the degenerate one */
    assert_int_equal(a.all, 3);
    assert_int_equal(a.correct, 1);
    near(a.over_correct.geomean, 8);
    char *text = tables_of(&r);
    static const char *const expected[] = {
        "decoy-ratio, clocks-disagree); they are in no other column.\n",
        "| twice | ok | fp32 | 10.00 | 20.00 | **2.000** (1.980 to 2.020) | 50 % | 16.00 (graph)",
        "| decoy-ratio |\n",
        "| latency-bound; clocks-disagree: the host waited longer |\n",
        "\n| testgpu | eager or graph | 1 | 1 | 2.000 | 2.000 |\n",
        "\n| testgpu | 1 | 4.000 | 0 | 0 | eight fp32 4.00 |\n"};
    holds(text, expected, sizeof expected / sizeof *expected);
    free(text);
    report_free(&r);
}

/* Every file below broken/ is refused, and says why. */
static void test_broken(void **state) {
    static const char *const broken[][2] = {{"half", "is not JSON from line"},
                                            {"twice", "othergpu/twice, not of the cell"},
                                            {"eight", "no ratio inside low and high"},
                                            {"even", "unknown verdict \"great\""},
                                            {"weak", "schema 2"},
                                            {"wrong", "is not JSON from line 1"},
                                            {"absent", "no JSON object"},
                                            {"nothing", "cannot be read"}};
    char path[256], why[256];
    struct result one;
    struct report r;
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        snprintf(path, sizeof path, HERE "/broken/testgpu/%s.json", broken[i][0]);
        assert_false(result_load(path, &one, why, sizeof why));
        if (!strstr(why, broken[i][1])) fail_msg("%s: %s", path, why);
    }
    int kept = mute();
    report_load(&r, HERE "/broken", HERE "/tasks");
    unmute(kept);
    assert_int_equal(r.read, 0);
    assert_int_equal(r.refused, 7);
    assert_int_equal(r.ncolumns, 0);
    assert_int_equal(r.nrows, 8);
    report_free(&r);
}

static void test_without_tasks(void **state) {
    struct report r;
    (void)state;
    report_load(&r, HERE "/recorded", HERE "/no such folder");
    assert_int_equal(r.nrows, 7); /* the rows are the tasks that have results */
    assert_int_equal(r.read, 7);
    struct aggregate a = report_aggregate(&r, &r.columns[0], "level2");
    assert_int_equal(a.left_out, 1); /* the cell says so itself */
    report_free(&r);
    report_load(&r, HERE "/no such folder", HERE "/no such folder");
    assert_int_equal(r.nrows + r.ncolumns + r.read + r.refused, 0);
    report_free(&r);
}

static void test_lines(void **state) {
    char *text = NULL;
    size_t size = 0;
    (void)state;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(report_failed(HERE "/build", out), 1); /* built, and not further */
    struct report r;
    load(&r);
    for (int i = 0; i < r.nrows; i++)
        if (*r.columns[0].cell[i].verdict) report_cell(&r.columns[0].cell[i], out);
    fclose(out);
    assert_non_null(strstr(text, "testgpu/absent build: error: no such thing\n"));
    assert_non_null(strstr(text, "testgpu/twice ok 2.00x +-1.0%\n"));
    assert_non_null(strstr(text, "testgpu/wrong wrong: out[7] is 3, expected 4\n"));
    assert_non_null(strstr(text, "testgpu/weak ok 10.00x +-1.0% [weak-baseline: no cuDNN]\n"));
    free(text);
    report_free(&r);
}

static void test_judgments(void **state) {
    static const struct {
        const char *task;
        enum judgment expected;
        const char *why;
    } cases[] = {{"half", REPRODUCED, "0.505x (0.504 to 0.506), recorded 0.500x"},
                 {"twice", FASTER, "2.500x"},
                 {"eight", SLOWER, "7.000x"},
                 {"wrong", VERDICT, "ok, recorded wrong"},
                 {"even", NOT_COMPARABLE, "another machine: ecc, driver"},
                 {"weak", NOT_COMPARABLE, "the kernel and the headers that it includes differ"},
                 {"constant", NOT_COMPARABLE, "class tf32 against fp32, recorded fp32"}};
    char path[256], why[600];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct result fresh, recorded;
        snprintf(path, sizeof path, HERE "/build/testgpu/%s.time.json", cases[i].task);
        if (!result_load(path, &fresh, why, sizeof why)) fail_msg("%s %s", path, why);
        snprintf(path, sizeof path, HERE "/recorded/testgpu/%s.json", cases[i].task);
        if (!result_load(path, &recorded, why, sizeof why)) fail_msg("%s %s", path, why);
        assert_int_equal(compare_results(&fresh, &recorded, why, sizeof why), cases[i].expected);
        if (!strstr(why, cases[i].why)) fail_msg("%s: %s", cases[i].task, why);
        /* every result reproduces itself */
        assert_int_equal(compare_results(&fresh, &fresh, why, sizeof why), REPRODUCED);
        result_free(&fresh);
        result_free(&recorded);
    }
}

/* Intervals apart, yet within 2 %: reproduced; just beyond it: not. */
static void test_margin(void **state) {
    struct result a = {.verdict = "ok", .ratio = 1, .low = 0.999, .high = 1.001}, b = a;
    char why[600];
    (void)state;
    b.ratio = 1.019, b.low = 1.018, b.high = 1.02;
    assert_int_equal(compare_results(&b, &a, why, sizeof why), REPRODUCED);
    b.ratio = 1.021;
    assert_int_equal(compare_results(&b, &a, why, sizeof why), FASTER);
    b.low = 1.001; /* a wide interval that reaches the other */
    assert_int_equal(compare_results(&b, &a, why, sizeof why), REPRODUCED);
    struct result none = {.verdict = "missing"};
    assert_int_equal(compare_results(&none, &none, why, sizeof why), REPRODUCED);
    assert_string_equal(why, "missing again");
}

/* The same kernel with other headers is another. */
static void test_kernels(void **state) {
    struct result a = {
        .verdict = "ok", .sha256 = "1", .headers = "2", .ratio = 1, .low = 1, .high = 1};
    struct result header = a, kernel = a, both = a, none = a;
    char why[600];
    (void)state;
    *header.headers = *both.headers = '3';
    *kernel.sha256 = *both.sha256 = '3';
    *none.headers = 0;
    assert_int_equal(compare_results(&a, &a, why, sizeof why), REPRODUCED);
    assert_int_equal(compare_results(&header, &a, why, sizeof why), NOT_COMPARABLE);
    assert_string_equal(why, "the headers that the kernel includes differ");
    assert_int_equal(compare_results(&a, &none, why, sizeof why), NOT_COMPARABLE);
    assert_string_equal(why, "the headers that the kernel includes differ");
    assert_int_equal(compare_results(&kernel, &a, why, sizeof why), NOT_COMPARABLE);
    assert_string_equal(why, "the kernel differs");
    assert_int_equal(compare_results(&both, &a, why, sizeof why), NOT_COMPARABLE);
    assert_string_equal(why, "the kernel and the headers that it includes differ");
}

static void test_torch(void **state) {
    struct table t;
    struct column h200 = {.name = "h200"}, a100 = {.name = "a100"};
    const char *how = "";
    (void)state;
    assert_true(table_load(&t, "results/published/torch_h200.csv"));
    assert_int_equal(t.nrows, 250);
    near(torch_time(&h200, &t, "l1_001_square_matmul", "fp32", &how), 2674.72);
    assert_string_equal(how, "published");
    near(torch_time(&h200, &t, "l1_001_square_matmul", "tf32", &how), 330.85);
    near(torch_time(&h200, &t, "l1_001_square_matmul", "f16", &how), 0);
    near(torch_time(&a100, &t, "l1_001_square_matmul", "fp32", &how), 0);
    near(torch_time(&h200, &t, "crfm_matmul", "fp32", &how), 0);
    near(torch_time(&h200, &t, "l1_1", "fp32", &how), 0);

    /* A table of its own takes the place of the published one, even where it is empty. */
    assert_true(table_load(&h200.torch, HERE "/recorded/pytorch/testgpu.csv"));
    near(torch_time(&h200, &t, "twice", "fp32", &how), 16);
    assert_string_equal(how, "graph");
    near(torch_time(&h200, &t, "twice", "tf32", &how), 12);
    assert_string_equal(how, "eager");
    near(torch_time(&h200, &t, "half", "exact", &how), 5);
    near(torch_time(&h200, &t, "twice", "f16", &how), 0);
    near(torch_time(&h200, &t, "twice", "bf16", &how), 0);
    near(torch_time(&h200, &t, "twice", "", &how), 0);
    near(torch_time(&h200, &t, "l1_001_square_matmul", "fp32", &how), 0);
    near(torch_compiled(&h200, "twice", "fp32"), 1);
    near(torch_compiled(&h200, "twice", "f16"), 0);
    near(torch_compiled(&h200, "half", "fp32"), 0);
    near(torch_compiled(&a100, "twice", "fp32"), 0);
    table_free(&h200.torch);
    table_free(&t);
    assert_false(table_load(&t, "results/published/nothing.csv"));
}

/* Without a table of PyTorch's for any GPU there is nothing to hold baselines against. */
static void test_no_torch(void **state) {
    struct report r;
    (void)state;
    load(&r);
    table_free(&r.columns[0].torch);
    char *text = tables_of(&r);
    assert_null(strstr(text, "Baselines against PyTorch"));
    assert_non_null(strstr(text, "(1.980 to 2.020) | 50 % | - | - |  |"));
    free(text);
    report_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_level1),        cmocka_unit_test(test_level2_and_all),
        cmocka_unit_test(test_tables),        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_without_tasks), cmocka_unit_test(test_lines),
        cmocka_unit_test(test_judgments),     cmocka_unit_test(test_margin),
        cmocka_unit_test(test_kernels),       cmocka_unit_test(test_torch),
        cmocka_unit_test(test_no_torch),      cmocka_unit_test(test_doubtful)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
