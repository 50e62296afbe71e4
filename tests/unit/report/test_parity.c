/* test_parity.c: our baselines over PyTorch: what makes a pair, of which class it is, and what is
 * said of pairs.  Tasks and results are made here, of a GPU that does not exist. */
#include "own_folder.h"
#include "report/report.h"

#define TORCH_HEAD                                                           \
    "task,board,date,versions,eager_default,graph_default,compiled_default," \
    "eager_fp32,graph_fp32,compiled_fp32,eager_tf32,graph_tf32,compiled_tf32\n"
#define DAY "2026-01-02"

/* Write a task of one op of two tensors [4,4]. */
static void task(const char *name, const char *dtype, const char *op) {
    char *path = text_format("tasks/s/%s.json", name);
    char *text =
        text_format("{\"schema\":1,\"task\":\"%s\",\"suite\":\"s\",\n\"inputs\":[\n"
                    "{\"name\":\"x\",\"shape\":[4,4],\"dtype\":\"%s\",\"fill\":\"normal(0,1)\"},\n"
                    "{\"name\":\"y\",\"shape\":[4,4],\"dtype\":\"%s\",\"fill\":\"normal(0,1)\"}],\n"
                    "\"graph\":[\n\"t1[4,4] = %s(x, y)\"],\n\"outputs\":[\"t1\"]}",
                    name, dtype, dtype, op);
    file_replace(path, text);
    free(path), free(text);
}

/* Write a result: its times as JSON members. */
static void cell(const char *name, const char *verdict, const char *times, const char *board,
                 const char *flag) {
    char *path = text_format("results/g1/%s.json", name);
    char *text = text_format(
        "{\"schema\":1,\"task\":\"%s\",\"suite\":\"s\",\"gpu\":\"g1\",\"verdict\":\"%s\","
        "\"reason\":\"none\",\"time_us\":{%s},\"machine\":{\"uuid_hash\":\"%s\"},"
        "\"speedup\":{\"against\":\"fp32\",\"ratio\":2,\"low\":2,\"high\":2},"
        "\"harness\":{\"date\":\"" DAY "T10:00:00Z\"},\"flags\":[%s]}",
        name, verdict, times, board, flag);
    file_replace(path, text);
    free(path), free(text);
}

/* Write a result without a kernel. */
static void missing(const char *name, const char *baselines, const char *board, const char *flag) {
    cell(name, "missing", baselines, board, flag);
}

/* The section of the page, as a new string; "" if there is none. */
static char *section(void) {
    struct report r;
    char *text = NULL;
    size_t size = 0;
    report_load(&r, "results", "tasks", NULL);
    assert_int_equal(r.refused, 0);
    FILE *out = open_memstream(&text, &size);
    report_parity(&r, &r.columns[0], out);
    fclose(out);
    report_free(&r);
    return text;
}

/* Each class has the fastest of it or a better one on both sides; compiled code is no pair. */
static void test_classes(void **state) {
    (void)state;
    task("a", "f32", "matmul");
    task("b", "f32", "matmul");
    task("c", "f32", "add");
    task("h", "f16", "matmul");
    missing("a", "\"fp32\":{\"midmean\":24},\"tf32\":{\"midmean\":26}", "b1", "");
    missing("b", "\"fp32\":{\"midmean\":50},\"tf32\":{\"midmean\":9}", "b1", "");
    missing("c", "\"fp32\":{\"midmean\":8}", "b1", "");
    missing("h", "\"f16\":{\"midmean\":6}", "b1", "");
    file_replace("results/pytorch/g1.csv",
                 TORCH_HEAD "a,b1," DAY ",torch 2,15,16,1,20,22,2,12,13,1\n"
                            "b,b1," DAY ",torch 2,45,44,1,50,40,2,20,18,1\n"
                            "c,b1," DAY ",torch 2,10,,1,10,,2,10,,1\n"
                            "h,b1," DAY ",torch 2,5,7,1,5,7,2,5,7,1\n");
    char *text = section();
    /* 24 over 20, 50 over 40, 8 over 10 */
    holds(text, "| fp32 | **all** | 3 | 1.063 | 1.200 | 1.245 | 1.250 | 2 | 0 |\n");
    holds(text, "| fp32 | elementwise | 1 | 0.800 | 0.800 | 0.800 | 0.800 | 0 | 0 |\n");
    holds(text, "| fp32 | products | 2 | 1.225 | 1.225 | 1.24");
    /* 24, of a better class, over 12; 9 over 18 */
    holds(text, "| tf32 | products | 2 | 1.000 | 1.250 | 1.925 | 2.000 | 1 | 1 |\n");
    holds(text, "| f16 | products | 1 | 1.200 |");
    assert_null(strstr(text, "| bf16 |"));
    assert_null(strstr(text, "compiled"));
    assert_null(strstr(text, "Not compared"));
    holds(text, "| fp32 | b | products | 50.00 | 40.00 (graph, fp32) | 1.250 |\n"
                "| fp32 | a | products | 24.00 | 20.00 (eager, fp32) | 1.200 |\n");
    holds(text, "| tf32 | a | products | 24.00 | 12.00 (eager, tf32) | 2.000 |\n");
    free(text);
}

/* Only times of the board and the day of the result make a pair; other tasks are named. */
static void test_pairs(void **state) {
    static const char *const name[] = {"a", "b", "c", "d", "e", "f"};
    (void)state;
    for (int i = 0; i < 6; i++) {
        task(name[i], "f32", "add");
        missing(name[i], "\"fp32\":{\"midmean\":20}", "b1", i == 4 ? "\"clocks-disagree\"" : "");
    }
    /* of a another board has a call, its own a replay; of f with other flags */
    file_replace("results/pytorch/g1.csv", TORCH_HEAD "a,b1," DAY ",torch 2,,10,,,10,,,10,\n"
                                                      "a,b2," DAY ",torch 2,5,,,5,,,5,,\n"
                                                      "b,b2," DAY ",torch 2,5,5,,5,5,,5,5,\n"
                                                      "c,b1,2026-01-01,torch 2,5,5,,5,5,,5,5,\n"
                                                      "e,b1," DAY ",torch 2,5,5,,5,5,,5,5,\n"
                                                      "f,b1," DAY ",torch 2,,,,,10,,,,\n"
                                                      "f,b2," DAY ",torch 2,,5,,,,,,,\n");
    char *text = section();
    holds(text, "| fp32 | **all** | 2 | 2.000 |");
    holds(text, "| fp32 | a | elementwise | 20.00 | 10.00 (graph, fp32) | 2.000 |\n");
    holds(text, "| fp32 | f | elementwise | 20.00 | 10.00 (graph, fp32) | 2.000 |\n");
    holds(text, "\nNot compared, as PyTorch's time is of another board or day: b, c.\n");
    holds(text, "\nNot compared, as PyTorch's time is not measured: d.\n");
    free(text);
}

/* A baseline that was timed beside a kernel makes a pair, too, unless the kernel is impossible; a
 * time without a day makes none. */
static void test_verdicts(void **state) {
    static const char times[] = "\"candidate\":{\"midmean\":1},\"fp32\":{\"midmean\":26}";
    static const char *const name[] = {"a", "b", "c"}, *const verdict[] = {"ok", "impossible",
                                                                           "ok"};
    (void)state;
    for (int i = 0; i < 3; i++)
        task(name[i], "f32", "add"), cell(name[i], verdict[i], times, "b1", "");
    file_replace("results/pytorch/g1.csv", TORCH_HEAD "a,b1," DAY ",torch 2,20,,,20,,,20,,\n"
                                                      "b,b1," DAY ",torch 2,20,,,20,,,20,,\n"
                                                      "c,b1,,torch 2,20,,,20,,,20,,\n");
    char *text = section();
    holds(text, "| fp32 | **all** | 1 | 1.300 | 1.300 | 1.300 | 1.300 | 1 | 1 |\n");
    holds(text, "| fp32 | a | elementwise | 26.00 | 20.00 (eager, fp32) | 1.300 |\n");
    holds(text, "\nNot compared, as PyTorch's time is of another board or day: c.\n");
    assert_null(strstr(text, "not measured"));
    free(text);
}

/* Write n tasks a, b, ... whose baselines take `us`, and PyTorch 100. */
static void many(char first, int n, int us, char *csv) {
    char *times = text_format("\"fp32\":{\"midmean\":%d}", us);
    for (int i = 0; i < n; i++) {
        char name[] = {(char)(first + i), 0};
        task(name, "f32", "add");
        missing(name, times, "b1", "");
        char *row = text_format("%s,b1," DAY ",torch 2,100,,,100,,,100,,\n", name);
        strcat(csv, row);
        free(row);
    }
    file_replace("results/pytorch/g1.csv", csv);
    free(times);
}

/* The worst ten are listed, and whatever is above 1.10. */
static void test_worst(void **state) {
    char csv[4096] = TORCH_HEAD;
    (void)state;
    many('a', 12, 90, csv);
    char *text = section();
    holds(text, "| fp32 | j | elementwise |");
    assert_null(strstr(text, "| fp32 | k |"));
    free(text);
    many('m', 12, 115, csv);
    text = section();
    holds(text, "| 1.150 | 12 | 0 |\n");
    holds(text, "| fp32 | x | elementwise |");
    assert_null(strstr(text, "| fp32 | a |"));
    free(text);
}

/* Makes a folder of its own for each test, and enters it. */
static int enter(void **state) {
    (void)state;
    strcpy(folder, "/tmp/kernelproof-XXXXXX");
    return enter_with("mkdir -p tasks/s results/g1 results/pytorch");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_classes, enter, leave),
                                       cmocka_unit_test_setup_teardown(test_pairs, enter, leave),
                                       cmocka_unit_test_setup_teardown(test_verdicts, enter, leave),
                                       cmocka_unit_test_setup_teardown(test_worst, enter, leave)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
