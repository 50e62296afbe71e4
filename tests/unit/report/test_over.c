/* test_over.c: three opponents, each named; the same problem counts once; the headline is of the
 * task's own class.  Tasks and results are made here, of a GPU that does not exist. */
#include "own_folder.h"
#include "ends.h"
#include "base/error.h"
#include "report/report.h"

#include <math.h>

#define TORCH_HEAD                                                                        \
    "# made here\ntask,board,date,versions,eager_default,graph_default,compiled_default," \
    "eager_fp32,graph_fp32,compiled_fp32,eager_tf32,graph_tf32,compiled_tf32\n"

/* Checks a number up to rounding. */
static void near(double x, double expected) {
    if (!(fabs(x - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.12g, expected %.12g", x, expected);
}

/* Write a task of one op of [4,4] tensors x and y, named as said. */
static void task(const char *name, const char *x, const char *dtype, const char *op) {
    char *path = text_format("tasks/s/%s.json", name);
    char *text = text_format(
        "{\"schema\":1,\"task\":\"%s\",\"suite\":\"s\",\n\"inputs\":[\n"
        "{\"name\":\"%s\",\"shape\":[4,4],\"dtype\":\"%s\",\"fill\":\"normal(0,1)\"},\n"
        "{\"name\":\"y\",\"shape\":[4,4],\"dtype\":\"%s\",\"fill\":\"uniform(0,%zu)\"}],\n"
        "\"graph\":[\n\"t1[4,4] = %s(%s, y)\"],\n\"outputs\":[\"t1\"]}",
        name, x, dtype, dtype, strlen(name), op, x);
    file_replace(path, text);
    free(path), free(text);
}

/* Write the result of a task: a kernel of 10 us. */
static void cell(const char *name, const char *class, double ratio, const char *board,
                 const char *flag) {
    char *path = text_format("results/g1/%s.json", name);
    char *text = text_format(
        "{\"schema\":1,\"task\":\"%s\",\"suite\":\"s\",\"gpu\":\"g1\",\"verdict\":\"ok\","
        "\"class\":\"%s\",\"time_us\":{\"candidate\":{\"midmean\":10},\"fp32\":{\"midmean\":%g}},"
        "\"speedup\":{\"against\":\"fp32\",\"ratio\":%g,\"low\":%g,\"high\":%g},"
        "\"machine\":{\"uuid_hash\":\"%s\"},\"flags\":[%s]}",
        name, class, 10 * ratio, ratio, ratio, ratio, board, flag);
    file_replace(path, text);
    free(path), free(text);
}

/* Load the grid; the caller frees it. */
static struct report loaded(void) {
    struct report r;
    report_load(&r, "results", "tasks", NULL);
    assert_int_equal(r.refused, 0);
    return r;
}

/* The row of a task. */
static int row_of(const struct report *r, const char *name) {
    for (int i = 0; i < r->nrows; i++)
        if (!strcmp(r->rows[i].task, name)) return i;
    fail_msg("no row %s", name);
    return -1;
}

/* What report_page() or report_summary() writes, as a new string. */
static char *page_of(const struct report *r) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    report_page(r, &r->columns[0], out);
    report_summary(r, "results", out);
    fclose(out);
    return text;
}

/* Two names of one product, another product, a sum; the last in halves. */
static void five_tasks(void) {
    task("a", "x", "f32", "matmul");
    task("bb", "left", "f32", "matmul");
    task("c", "x", "f32", "add");
    task("d", "x", "f32", "sub");
    task("h", "x", "f16", "matmul");
}

/* The fastest way counts; the mean is over the cells that have a time, and says of how many. */
static void test_opponents(void **state) {
    struct report r;
    const char *how = "";
    (void)state;
    five_tasks();
    cell("a", "fp32", 2, "b1", "");
    cell("c", "fp32", 4, "b1", "");
    cell("d", "fp32", 1, "b2", "");
    file_replace("results/pytorch/g1.csv",
                 TORCH_HEAD "a,b1,2026-01-01,torch 2,30,25,40,35,36,30,,,5\n"
                            "a,b2,2026-01-01,torch 2,31,,,,,,,,\n" /* not the fastest way */
                            "d,b1,2026-01-02,torch 2,,8,,8,8,8,8,8,\n"
                            "gone,b1,2025-01-01,torch 1,1,1,1,1,1,1,1,1,1\n");
    r = loaded();
    const struct column *c = &r.columns[0];
    int a = row_of(&r, "a"), d = row_of(&r, "d"), sum = row_of(&r, "c");
    near(torch_time(c, a, TORCH_DEFAULT, &how), 25);
    assert_string_equal(how, "graph");
    near(torch_time(c, a, TORCH_FP32, &how), 30);
    assert_string_equal(how, "compiled");
    near(torch_time(c, sum, TORCH_DEFAULT, &how), 0);
    near(report_ratio(c, a, OVER_BASELINE), 2);
    near(report_ratio(c, a, OVER_TORCH), 2.5);
    near(report_ratio(c, a, OVER_TF32), 0.5);
    near(report_ratio(c, d, OVER_TORCH), 0.8);
    near(report_ratio(c, row_of(&r, "bb"), OVER_TORCH), 0); /* it has no kernel */
    assert_true(torch_same_board(c, a, TORCH_DEFAULT));
    assert_false(torch_same_board(c, d, TORCH_DEFAULT)); /* the result is of another board */
    struct aggregate g = report_aggregate(&r, c, NULL);
    assert_int_equal(g.all, 5);
    assert_int_equal(g.over[OVER_BASELINE].cells, 3);
    assert_int_equal(g.over[OVER_TORCH].cells, 2);
    assert_int_equal(g.over[OVER_TORCH].same_board, 1);
    assert_int_equal(g.over[OVER_TORCH].compiled, 1);
    assert_int_equal(g.over[OVER_TORCH].faster, 1);
    near(g.over[OVER_TORCH].over_correct.geomean, sqrt(2.5 * 0.8));
    /* a and bb are one problem: sqrt(2.5 * 1); d: 0.8; h: 1.  c has no time of PyTorch's. */
    near(g.over[OVER_TORCH].over_all.geomean, cbrt(sqrt(2.5) * 0.8));
    char *text = page_of(&r);
    holds(text, "**2.000** (2.000 to 2.000, one board) | - | 25.00 (graph) | 2.500 | 0.500 |");
    holds(text, "| 8.000 (graph) | 0.800\\* | 0.800\\* |");
    holds(text, "| **4.000** (4.000 to 4.000, one board) | - | - | - | - |");
    holds(text, "PyTorch's times: torch 2, 2026-01-01; torch 2, 2026-01-02.");
    /* one of two has torch.compile's time, one is of the same board */
    holds(text, "| **all** | 3 / 5 | 3 | 2.000 | 1.414 | 0.632 | 1 of 2 | 1 | 1 |\n");
    holds(text, "| g1 | 1.414 (1.081) | 2 of 5, 1 on another board, 1 without torch.compile | "
                "0.632 (0.827) |");
    free(text);
    report_free(&r);
}

/* Without a table of PyTorch's there is no ratio over it, and its coverage is nought. */
static void test_without_torch(void **state) {
    (void)state;
    five_tasks();
    cell("a", "fp32", 2, "b1", "");
    struct report r = loaded();
    assert_null(r.columns[0].torch);
    near(report_ratio(&r.columns[0], row_of(&r, "a"), OVER_TORCH), 0);
    char *text = page_of(&r);
    holds(text, "| g1 | - | 0 of 5 | - | 2.000 (1.091) | 1 / 5 |");
    holds(text, "Nothing was measured with PyTorch.");
    assert_null(strstr(text, "Baselines against"));
    free(text);
    report_free(&r);
}

/* For ends(): the only time of PyTorch's that counts is 20, of `a`. */
static void only_twenty(void) {
    struct report r;
    const char *how;
    report_load(&r, "results", "tasks", NULL);
    const struct column *c = &r.columns[0];
    if (torch_time(c, row_of(&r, "a"), TORCH_DEFAULT, &how) != 20 ||
        torch_time(c, row_of(&r, "a"), TORCH_FP32, &how) != 0)
        die(KP_BUG, "another time counts");
    struct aggregate g = report_aggregate(&r, c, NULL);
    if (g.over[OVER_TORCH].over_correct.geomean != 2) die(KP_BUG, "another ratio counts");
    report_free(&r);
}

/* What can be no time is left out, and its line is named. */
static void test_absurd_times(void **state) {
    static const char *const absurd[] = {"inf", "1e999", "nan", "-5", "1e-320", "1e13", "12 us"};
    (void)state;
    five_tasks();
    cell("a", "fp32", 2, "b1", "");
    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++) {
        char *csv = text_format(TORCH_HEAD "a,b1,2026-01-01,torch 2,,20,,,,%s,,,\n", absurd[i]);
        char *words = text_format("results/pytorch/g1.csv:3: compiled_fp32: expected a number from "
                                  "1e-12 to 1e12, found \"%s\"; it is left out\n",
                                  absurd[i]);
        file_replace("results/pytorch/g1.csv", csv);
        ends(only_twenty, 0, words);
        free(csv), free(words);
    }
}

/* Tasks that mean the same count once, by the geometric mean of their ratios. */
static void test_twins(void **state) {
    (void)state;
    five_tasks();
    cell("a", "fp32", 2, "b1", "");
    cell("bb", "fp32", 8, "b1", "");
    cell("c", "fp32", 1, "b1", "");
    struct report r = loaded();
    int a = row_of(&r, "a"), b = row_of(&r, "bb"), c = row_of(&r, "c"), h = row_of(&r, "h");
    assert_int_equal(r.rows[b].twin, a);
    assert_int_equal(r.rows[a].twin, a);
    assert_int_equal(r.rows[c].twin, c);
    assert_int_equal(r.rows[h].twin, h); /* other types */
    struct aggregate g = report_aggregate(&r, &r.columns[0], NULL);
    const struct mean *m = &g.over[OVER_BASELINE];
    assert_int_equal(g.correct, 3);
    assert_int_equal(m->cells, 3);
    assert_int_equal(m->over_correct.n, 2);
    near(m->over_correct.geomean, 2); /* sqrt(2 * 8) and 1 */
    near(m->over_correct.max, 4);
    assert_int_equal(m->over_all.n, 4);
    near(m->over_all.geomean, sqrt(2)); /* d and h count as 1 */
    char *text = page_of(&r);
    holds(text, "\nThe same problem: a = bb.\n");
    holds(text, "\n| products | 2 / 2 | 1 | 4.000 | - | - | 0 of 0 | 0 | 0 |\n");
    holds(text, "\n| elementwise | 1 / 2 | 1 | 1.000 |");
    free(text);
    /* one of them left out: the other stands alone */
    cell("bb", "fp32", 8, "b1", "\"control-ratio\"");
    report_free(&r);
    r = loaded();
    g = report_aggregate(&r, &r.columns[0], NULL);
    near(g.over[OVER_BASELINE].over_correct.max, 2);
    report_free(&r);
}

/* A kernel of another class counts as missing, and its class has a row of its own. */
static void test_classes(void **state) {
    (void)state;
    five_tasks();
    cell("a", "fp32", 2, "b1", "");
    cell("c", "tf32", 8, "b1", "");
    cell("d", "fp32-normwise", 4, "b1", "");
    cell("h", "f16", 3, "b1", "");
    struct report r = loaded();
    assert_string_equal(r.rows[row_of(&r, "h")].class, "f16");
    assert_true(report_counts(&r, &r.columns[0], row_of(&r, "h")));
    assert_false(report_counts(&r, &r.columns[0], row_of(&r, "c")));
    assert_false(report_counts(&r, &r.columns[0], row_of(&r, "d")));
    struct aggregate g = report_aggregate(&r, &r.columns[0], NULL);
    assert_int_equal(g.all, 5);
    assert_int_equal(g.correct, 2);
    assert_int_equal(g.other_class, 2);
    assert_int_equal(g.left_out, 0);
    near(g.over[OVER_BASELINE].over_correct.geomean, sqrt(6));
    /* a and bb are one: sqrt(2 * 1); c and d count as 1; h is 3 */
    near(g.over[OVER_BASELINE].over_all.geomean, pow(sqrt(2) * 3, 0.25));
    char *text = page_of(&r);
    holds(text, "| 2 | 0 |\n\nfast_p");
    holds(text, "\n| **all** | tf32 | 1 / 5 | 1 | 8.000 | 8.000 |");
    holds(text, "\n| **all** | fp32-normwise | 1 / 5 | 1 | 4.000 |");
    assert_null(strstr(text, "\n| **all** | f16 |")); /* that of h is its own */
    holds(text, "\n| products, f16 | 1 / 1 | 1 | 3.000 |");
    holds(text, "\n| c | ok | tf32 | 10.00 |");
    free(text);
    report_free(&r);
    /* better than its task asks for is its own class, too */
    cell("h", "fp32", 3, "b1", "");
    r = loaded();
    assert_true(report_counts(&r, &r.columns[0], row_of(&r, "h")));
    report_free(&r);
}

/* A result may have any number of flags.  Each counts; a page lists a dozen, and of those after
 * them what is new by its name. */
static void test_many_flags(void **state) {
#define SIX(flag) flag "," flag "," flag "," flag "," flag "," flag ","
#define NOISY     "\"noisy: 1\""
    (void)state;
    five_tasks();
    cell("c", "fp32", 2, "b1", SIX(NOISY) SIX(NOISY) SIX(NOISY) "\"noisy: 2\"");
    struct report r = loaded();
    assert_false(report_left_out(&r, &r.columns[0], row_of(&r, "c")));
    report_free(&r);
    cell("c", "fp32", 2, "b1",
         SIX(NOISY) SIX(NOISY) "\"noisy: 2\",\"slow-quarter: 5 %\",\"noisy: 3\",\"no\"");
    r = loaded();
    assert_true(report_left_out(&r, &r.columns[0], row_of(&r, "c")));
    char *text = page_of(&r);
    holds(text, "| noisy: 1; noisy: 1;");
    holds(text, "; noisy: 1; slow-quarter: 5 %; no |\n");
    assert_null(strstr(text, "noisy: 2"));
    free(text);
    report_free(&r);
}

struct flag_case {
    const char *flag;
    int left_out;
};

/* Flags that take a cell out of every aggregate, by the words of earlier and later results,
 * whatever else is flagged. */
static void test_flags(void **state) {
    static const struct flag_case cases[] = {
        {"\"below-floor\"", 1},   {"\"decoy-ratio\"", 1},
        {"\"control-ratio\"", 1}, {"\"slow-quarter: 5 %\"", 1},
        {"\"cannot-tell\"", 1},   {"\"clocks-disagree\"", 1},
        {"\"degenerate\"", 1},    {"\"no-influence: x\"", 1},
        {"\"weak-baseline\"", 1}, {"\"noisy\",\"latency-bound\",\"below-floor\"", 1},
        {"\"noisy\"", 0},         {"\"latency-bound\"", 0},
        {"\"few-controls\"", 0},  {"\"nondeterministic\"", 0},
        {"\"slow-quarters\"", 0}, {"\"throttled: thermal\"", 1}};
    (void)state;
    five_tasks();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cell("c", "fp32", 2, "b1", cases[i].flag);
        struct report r = loaded();
        struct aggregate g = report_aggregate(&r, &r.columns[0], NULL);
        int out = cases[i].left_out;
        if (g.left_out != out) fail_msg("%s: %d", cases[i].flag, g.left_out);
        assert_int_equal(g.all, 5 - out);
        assert_int_equal(g.correct, !out);
        assert_int_equal(g.fast[0], !out);
        assert_int_equal(report_counts(&r, &r.columns[0], row_of(&r, "c")), !out);
        assert_int_equal(g.over[OVER_BASELINE].over_correct.n, !out);
        assert_int_equal(g.over[OVER_BASELINE].over_all.n, 4 - out); /* a and bb are one */
        near(g.over[OVER_BASELINE].over_all.geomean, out ? 1 : pow(2, 0.25));
        report_free(&r);
    }
}

/* A doubtful time earns no reward; one that is not sure enough only leaves the means. */
static void test_kinds(void **state) {
    (void)state;
    assert_int_equal(flag_kind("control-ratio"), FLAG_DOUBT);
    assert_int_equal(flag_kind("decoy-ratio"), FLAG_DOUBT);
    assert_int_equal(flag_kind("clocks-disagree: the host waited longer"), FLAG_DOUBT);
    assert_int_equal(flag_kind("degenerate"), FLAG_VOID);
    assert_int_equal(flag_kind("no-influence"), FLAG_VOID);
    assert_int_equal(flag_kind("weak-baseline"), FLAG_WEAK);
    assert_int_equal(flag_kind("below-floor"), FLAG_WEAK);
    assert_int_equal(flag_kind("slow-quarter: 4 %"), FLAG_WEAK);
    assert_int_equal(flag_kind("cannot-tell: tf32"), FLAG_WEAK);
    assert_int_equal(flag_kind("control-ratios"), FLAG_REMARK);
}

/* Tasks of a family are problems like others, but in rows of their own: in none of all. */
static void test_family(void **state) {
    (void)state;
    task("a", "x", "f32", "matmul");
    file_replace("tasks/fam/shapes", "4 8");
    file_replace("tasks/fam/template.json",
                 "{\"schema\":1,\"task\":\"fam_{N}\",\"suite\":\"fam\",\"shape\":[\"N\"],\n"
                 "\"inputs\":[\n{\"name\":\"p\",\"shape\":[\"{N}\",\"{N}\"],\"dtype\":\"f32\","
                 "\"fill\":\"normal(0,1)\"},\n{\"name\":\"q\",\"shape\":[\"{N}\",\"{N}\"],"
                 "\"dtype\":\"f32\",\"fill\":\"normal(0,1)\"}],\n"
                 "\"graph\":[\n\"t[{N},{N}] = matmul(p, q)\"],\n\"outputs\":[\"t\"]}");
    struct report r = loaded();
    int a = row_of(&r, "a"), four = row_of(&r, "fam_4"), eight = row_of(&r, "fam_8");
    assert_true(four < a); /* fam comes before s */
    assert_int_equal(r.rows[a].twin, four);
    assert_int_equal(r.rows[eight].twin, eight);
    assert_int_equal(r.rows[eight].kind, KP_KIND_PRODUCT);
    report_free(&r);
    cell("fam_4", "fp32", 3, "b1", "");
    cell("fam_8", "fp32", 3, "b1", "");
    r = loaded();
    assert_int_equal(report_aggregate(&r, &r.columns[0], NULL).all, 1);
    assert_int_equal(report_aggregate(&r, &r.columns[0], "fam").correct, 2);
    char *text = page_of(&r);
    assert_non_null(strstr(text, "\n| g1, fam | - | 0 of 2 | - | 3.000 (3.000) | 2 / 2 |"));
    assert_null(strstr(text, "\n| g1 |")); /* nothing of it was measured */
    free(text);
    report_free(&r);
    cell("a", "fp32", 2, "b1", "");
    r = loaded();
    text = page_of(&r);
    assert_non_null(strstr(text, "\n| g1 | - | 0 of 1 | - | 2.000 (2.000) | 1 / 1 |"));
    free(text);
    report_free(&r);
}

/* Makes a folder of its own for each test, and enters it. */
static int enter(void **state) {
    (void)state;
    strcpy(folder, "/tmp/kernelproof-XXXXXX");
    return enter_with("mkdir -p tasks/s tasks/fam results/g1 results/pytorch");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_opponents, enter, leave),
        cmocka_unit_test_setup_teardown(test_without_torch, enter, leave),
        cmocka_unit_test_setup_teardown(test_absurd_times, enter, leave),
        cmocka_unit_test_setup_teardown(test_twins, enter, leave),
        cmocka_unit_test_setup_teardown(test_classes, enter, leave),
        cmocka_unit_test_setup_teardown(test_flags, enter, leave),
        cmocka_unit_test_setup_teardown(test_many_flags, enter, leave),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test_setup_teardown(test_family, enter, leave)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
