/* test_report.c: aggregates with known values, refused files, judgments.
 *
 * The cells are those of tests/unit/report/results, of a GPU that does not exist. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/json.h"
#include "record/compare.h"
#include "report/report.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HERE "tests/unit/report/results"

/* Of no GPU several boards are known. */
static const struct boards nothing;

/* Checks a number up to rounding. */
static void near(double x, double expected) {
    if (!(fabs(x - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.12g, expected %.12g", x, expected);
}

/* Loads the grid of the recorded cells. */
static void load(struct report *r) {
    report_load(r, HERE "/recorded", HERE "/tasks", NULL);
}

/* Keeps stderr out of the test's output: each refusal is a line there. */
static int mute(void) {
    int kept = dup(2), nothing = open("/dev/null", O_WRONLY);
    fflush(stderr);
    dup2(nothing, 2);
    close(nothing);
    return kept;
}

/* Ends what mute() began. */
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
    assert_int_equal(a.recorded, 4); /* one was never measured */
    assert_int_equal(a.correct, 3);
    assert_int_equal(a.left_out, 1);
    assert_int_equal(a.significant, 2);
    const int fast[FAST_P] = {3, 2, 2, 2, 2, 1}; /* more than p, so 0.5 and 2 do not count */
    for (int p = 0; p < FAST_P; p++) assert_int_equal(a.fast[p], fast[p]);
    near(a.over[OVER_BASELINE].over_all.geomean, pow(8, 0.2)); /* 0.5 * 2 * 8 * 1 * 1 */
    near(a.over[OVER_BASELINE].over_all.mean, 12.5 / 5);
    near(a.over[OVER_BASELINE].over_all.median, 1);
    near(a.over[OVER_BASELINE].over_all.q1, 1);
    near(a.over[OVER_BASELINE].over_all.q3, 2);
    near(a.over[OVER_BASELINE].over_all.max, 8);
    assert_int_equal(a.over[OVER_BASELINE].over_correct.n, 3);
    near(a.over[OVER_BASELINE].over_correct.geomean, 2);
    near(a.over[OVER_BASELINE].over_correct.mean, 3.5);
    near(a.over[OVER_BASELINE].over_correct.median, 2);
    near(a.over[OVER_BASELINE].over_correct.max, 8);
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
    assert_int_equal(a.significant, 0);
    assert_int_equal(a.fast[3], 0); /* 1.0 is not more than 1 */
    near(a.over[OVER_BASELINE].over_all.geomean, 1);
    a = report_aggregate(&r, &r.columns[0], NULL);
    assert_int_equal(a.all, 6);
    assert_int_equal(a.correct, 4);
    assert_int_equal(a.left_out, 2);
    near(a.over[OVER_BASELINE].over_all.geomean, pow(8, 1.0 / 6));
    a = report_aggregate(&r, &r.columns[0], "level9");
    assert_int_equal(a.all, 0);
    near(a.over[OVER_BASELINE].over_all.geomean, 0);
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
    report_load(&r, HERE "/broken", HERE "/tasks", NULL);
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
    report_load(&r, HERE "/recorded", HERE "/no such folder", NULL);
    assert_int_equal(r.nrows, 7); /* the rows are the tasks that have results */
    assert_int_equal(r.read, 7);
    struct aggregate a = report_aggregate(&r, &r.columns[0], "level2");
    assert_int_equal(a.left_out, 1); /* the cell says so itself */
    report_free(&r);
    report_load(&r, HERE "/no such folder", HERE "/no such folder", NULL);
    assert_int_equal(r.nrows + r.ncolumns + r.read + r.refused, 0);
    report_free(&r);
}

static void test_lines(void **state) {
    char *text = NULL;
    size_t size = 0;
    (void)state;
    FILE *out = open_memstream(&text, &size);
    struct report r = {0}; /* no tasks are known */
    assert_int_equal(report_failed(HERE "/build", &r, out), 2);
    load(&r);
    for (int i = 0; i < r.nrows; i++)
        if (*r.columns[0].cell[i].verdict) report_cell(&r.columns[0].cell[i], &nothing, out);
    fclose(out);
    assert_non_null(strstr(text, "testgpu/absent build: error: no such thing\n"));
    assert_non_null(strstr(text, "testgpu/mistaken wrong: out[3] is 0\n")); /* not timed, nor is: */
    assert_null(strstr(text, "checked"));
    assert_non_null(strstr(text, "testgpu/twice ok 2.00x +-1.0%\n"));
    assert_non_null(strstr(text, "testgpu/wrong wrong: out[7] is 3, expected 4\n"));
    assert_non_null(strstr(text, "testgpu/weak ok 10.00x +-1.0% [weak-baseline: no cuDNN]\n"));
    free(text);
    report_free(&r);
}

/* What is left in build/ of a task that is gone has not failed. */
static void test_task_gone(void **state) {
    char *text = NULL;
    size_t size = 0;
    (void)state;
    FILE *out = open_memstream(&text, &size);
    struct report r;
    load(&r);
    assert_int_equal(report_failed(HERE "/build", &r, out), 1);
    fclose(out);
    assert_string_equal(text, "testgpu/absent build: error: no such thing\n");
    free(text);
    report_free(&r);
}

static void test_judgments(void **state) {
    static const struct {
        const char *task;
        enum judgment expected;
        const char *why;
    } cases[] = {{"half", REPRODUCED, "0.505x, recorded 0.500x: +1.00 %, predicted +-1.02 %"},
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
        assert_int_equal(compare_results(&fresh, &recorded, &nothing, why, sizeof why),
                         cases[i].expected);
        if (!strstr(why, cases[i].why)) fail_msg("%s: %s", cases[i].task, why);
        /* every result reproduces itself */
        assert_int_equal(compare_results(&fresh, &fresh, &nothing, why, sizeof why), REPRODUCED);
        result_free(&fresh);
        result_free(&recorded);
    }
}

/* A result of a machine with one member as said, where that is one of those that are compared. */
static struct result on_machine(const char *key, const char *value) {
    static const char *const keys[] = {"gpu_name", "memory_bytes", "power_limit_w", "ecc",  "mig",
                                       "driver",   "cuda",         "cublas",        "cudnn"};
    struct result r = {.verdict = "ok", .against = "fp32", .ratio = 1, .low = 1, .high = 1};
    r.json = cJSON_CreateObject();
    cJSON *machine = cJSON_AddObjectToObject(r.json, "machine");
    for (int i = 0; i < 9; i++)
        if (strcmp(keys[i], key)) cJSON_AddStringToObject(machine, keys[i], "1");
    if (value) cJSON_AddStringToObject(machine, key, value);
    return r;
}

/* Times of another GPU, power limit or library are not compared; those of another board are. */
static void test_machines(void **state) {
    static const struct {
        const char *key, *value;
        enum judgment expected;
    } cases[] = {{"gpu_name", "2", NOT_COMPARABLE},      {"memory_bytes", "2", NOT_COMPARABLE},
                 {"power_limit_w", "2", NOT_COMPARABLE}, {"ecc", "2", NOT_COMPARABLE},
                 {"mig", "2", NOT_COMPARABLE},           {"driver", "2", NOT_COMPARABLE},
                 {"cuda", "2", NOT_COMPARABLE},          {"cublas", "2", NOT_COMPARABLE},
                 {"cudnn", "2", NOT_COMPARABLE},         {"cudnn", NULL, NOT_COMPARABLE},
                 {"uuid_hash", "2", REPRODUCED},         {"temperature_c", "2", REPRODUCED}};
    char why[600];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct result a = on_machine("", NULL), b = on_machine(cases[i].key, cases[i].value);
        enum judgment j = compare_results(&b, &a, &nothing, why, sizeof why);
        if (j != cases[i].expected) fail_msg("%s: %s: %s", cases[i].key, judgment_name[j], why);
        result_free(&b);
        b = on_machine("", NULL);
        strcpy(b.against, "tf32"); /* another baseline */
        assert_int_equal(compare_results(&b, &a, &nothing, why, sizeof why), NOT_COMPARABLE);
        result_free(&a);
        result_free(&b);
    }
}

/* A speedup outside its own interval is none. */
static void test_interval(void **state) {
    static const double bad[][3] = {{2, 2.1, 3}, {2, 1, 1.9}, {0, 0, 1}, {-1, -2, 1}};
    struct result r;
    char why[256];
    (void)state;
    for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
        const double *x = i ? bad[i - 1] : (const double[]){2, 2, 2};
        cJSON *json = cJSON_Parse("{\"schema\":1,\"task\":\"a\",\"gpu\":\"g\",\"verdict\":\"ok\","
                                  "\"time_us\":{\"candidate\":{\"midmean\":1}}}");
        cJSON *speedup = cJSON_AddObjectToObject(json, "speedup");
        cJSON_AddNumberToObject(speedup, "ratio", x[0]);
        cJSON_AddNumberToObject(speedup, "low", x[1]);
        cJSON_AddNumberToObject(speedup, "high", x[2]);
        if (result_take(json, "a.json", &r, why, sizeof why) != !i) fail_msg("case %zu", i);
        result_free(&r);
    }
}

/* A time or a speedup that can be none makes a result unusable. */
static void test_absurd(void **state) {
    static const struct {
        const char *us, *ratio, *why;
    } cases[] = {{"1", "2", ""},
                 {"1e-320", "2", "is ok but has no usable time_us.candidate.midmean"},
                 {"1e999", "2", "is ok but has no usable time_us.candidate.midmean"},
                 {"1", "1e999", "is ok but its speedup has no ratio inside low and high"},
                 {"1", "1e200", "is ok but its speedup has no ratio inside low and high"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct result r;
        char why[256] = "";
        char *text = text_format("{\"schema\":1,\"task\":\"a\",\"gpu\":\"g\",\"verdict\":\"ok\","
                                 "\"time_us\":{\"candidate\":{\"midmean\":%s}},\"speedup\":"
                                 "{\"ratio\":%s,\"low\":1,\"high\":1e999}}",
                                 cases[i].us, cases[i].ratio);
        assert_int_equal(result_take(cJSON_Parse(text), "a.json", &r, why, sizeof why), !i);
        assert_string_equal(why, cases[i].why);
        result_free(&r);
        free(text);
    }
}

/* A verdict of both that is not ok needs no numbers. */
static void test_no_numbers(void **state) {
    char why[600];
    (void)state;
    struct result none = {.verdict = "missing"};
    assert_int_equal(compare_results(&none, &none, &nothing, why, sizeof why), REPRODUCED);
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
    assert_int_equal(compare_results(&a, &a, &nothing, why, sizeof why), REPRODUCED);
    assert_int_equal(compare_results(&header, &a, &nothing, why, sizeof why), NOT_COMPARABLE);
    assert_string_equal(why, "the headers that the kernel includes differ");
    assert_int_equal(compare_results(&a, &none, &nothing, why, sizeof why), NOT_COMPARABLE);
    assert_string_equal(why, "the headers that the kernel includes differ");
    assert_int_equal(compare_results(&kernel, &a, &nothing, why, sizeof why), NOT_COMPARABLE);
    assert_string_equal(why, "the kernel differs");
    assert_int_equal(compare_results(&both, &a, &nothing, why, sizeof why), NOT_COMPARABLE);
    assert_string_equal(why, "the kernel and the headers that it includes differ");
}

/* Kernels from other sources are the same if only comments differ, or if what was compiled is the
 * same. */
static void test_same_code(void **state) {
    struct result a = {
        .verdict = "ok", .sha256 = "1", .headers = "2", .ratio = 1, .low = 1, .high = 1};
    struct result b = a;
    char why[600];
    (void)state;
    *b.sha256 = *b.headers = '3'; /* neither says what was compiled */
    assert_int_equal(compare_results(&a, &b, &nothing, why, sizeof why), NOT_COMPARABLE);
    strcpy(a.code, "4");
    assert_int_equal(compare_results(&a, &b, &nothing, why, sizeof why), NOT_COMPARABLE);
    strcpy(b.code, "5");
    assert_int_equal(compare_results(&a, &b, &nothing, why, sizeof why), NOT_COMPARABLE);
    strcpy(a.sources, "6"), strcpy(b.sources, "7");
    assert_int_equal(compare_results(&a, &b, &nothing, why, sizeof why), NOT_COMPARABLE);
    strcpy(b.sources, "6"); /* another host compiler made other code of them */
    assert_int_equal(compare_results(&a, &b, &nothing, why, sizeof why), REPRODUCED);
    strcpy(b.sources, "7");
    strcpy(b.code, "4");
    assert_int_equal(compare_results(&a, &b, &nothing, why, sizeof why), REPRODUCED);
    b.ratio = b.low = b.high = 2;
    assert_int_equal(compare_results(&b, &a, &nothing, why, sizeof why), FASTER);
    strcpy(b.code, "5"); /* the same source by another compiler */
    strcpy(b.sha256, a.sha256), strcpy(b.headers, a.headers);
    assert_int_equal(compare_results(&b, &a, &nothing, why, sizeof why), FASTER);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_level1),    cmocka_unit_test(test_level2_and_all),
        cmocka_unit_test(test_broken),    cmocka_unit_test(test_without_tasks),
        cmocka_unit_test(test_lines),     cmocka_unit_test(test_task_gone),
        cmocka_unit_test(test_judgments), cmocka_unit_test(test_no_numbers),
        cmocka_unit_test(test_kernels),   cmocka_unit_test(test_same_code),
        cmocka_unit_test(test_machines),  cmocka_unit_test(test_interval),
        cmocka_unit_test(test_absurd)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
