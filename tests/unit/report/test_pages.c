/* test_pages.c: README has one row a GPU, each GPU a page, and big suites do not fill it. */
#include "ends.h"
#include "base/error.h"
#include "base/json.h"
#include "report/markdown.h"
#include "report/report.h"
#include "record/table.h"

#include <stdlib.h>
#include <sys/stat.h>

#define HERE "tests/unit/report/results"

static char folder[] = "/tmp/kernelproof-XXXXXX";

/* Checks that a text has a part. */
static void holds(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("not there: %s\nin: %s", part, text);
}

/* Checks that it does not. */
static void lacks(const char *text, const char *part) {
    if (strstr(text, part)) fail_msg("there: %s\nin: %s", part, text);
}

/* How often a part occurs in a text. */
static int count(const char *text, const char *part) {
    int n = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) n++;
    return n;
}

/* Checks that a text has three parts, in this order. */
static void in_order(const char *text, const char *a, const char *b, const char *c) {
    const char *x = strstr(text, a), *y = x ? strstr(x, b) : NULL;
    if (!y || !strstr(y, c)) fail_msg("not in order: %s, %s, %s\nin: %s", a, b, c, text);
}

/* The page of a column, as a new string. */
static char *page_of(const struct report *r, int column) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    report_page(r, &r->columns[column], out);
    fclose(out);
    return text;
}

/* The table of README, as a new string. */
static char *summary_of(const struct report *r) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    report_summary(r, "results", out);
    fclose(out);
    return text;
}

/* A grid of GPUs and one suite, all cells ok: the speedup of row i is 1 + i / 1000.  Names are
 * big_0000 and so on. */
static struct report grid(int rows, int columns) {
    struct report r = {.nrows = rows, .ncolumns = columns};
    r.rows = calloc((size_t)rows, sizeof *r.rows);
    r.columns = calloc((size_t)columns, sizeof *r.columns);
    for (int i = 0; i < rows; i++) {
        snprintf(r.rows[i].task, sizeof r.rows[i].task, "big_%04d", i);
        strcpy(r.rows[i].suite, "big");
        r.rows[i].twin = i;
    }
    for (int c = 0; c < columns; c++) {
        snprintf(r.columns[c].name, sizeof r.columns[c].name, "gpu%d", c);
        strcpy(r.columns[c].whole_name, "Maker's Test GPU 80GB");
        r.columns[c].cell = calloc((size_t)rows, sizeof(struct result));
        for (int i = 0; i < rows; i++) {
            struct result *cell = &r.columns[c].cell[i];
            double x = 1 + i / 1000.0;
            *cell = (struct result){.verdict = "ok", .class = "fp32", .candidate_us = 10};
            strcpy(cell->task, r.rows[i].task);
            cell->ratio = x, cell->low = x, cell->high = x, cell->against_us = 10 * x;
        }
    }
    return r;
}

static void test_summary(void **state) {
    struct report r;
    (void)state;
    report_load(&r, HERE "/recorded", HERE "/tasks", NULL);
    char *text = summary_of(&r);
    /* 0.5, 1, 2, 8 are correct, one is wrong, one missing, two are left out */
    holds(text, "| testgpu (Fake Test GPU) | 1.170 (1.099) | 3 of 6, 3 on another board, 2 without "
                "torch.compile | 0.917 (0.957) | 1.682 (1.414) | 4 / 6 | 33 % | 33 % | 2 | "
                "[testgpu](results/testgpu/README.md) |\n");
    lacks(text, "twice");
    lacks(text, "level1");
    lacks(text, "search");
    free(text);
    report_free(&r);
    struct report none = {0};
    text = summary_of(&none);
    holds(text, "No results are recorded yet");
    free(text);
}

/* README stays small however many cells there are. */
static void test_summary_size(void **state) {
    struct report few = grid(1, 10), many = grid(1300, 10);
    (void)state;
    char *a = summary_of(&few), *b = summary_of(&many);
    assert_int_equal(count(b, "\n| gpu"), 10);
    /* all but the first are faster than 1 */
    holds(b, "| gpu0 (Maker's Test GPU 80GB) | - | 0 of 1300 | - | 1.605 (1.605) | 1300 / 1300 |");
    assert_true(strlen(b) < strlen(a) + 200);
    assert_true(strlen(b) < 3000);
    free(a), free(b);
    report_free(&few), report_free(&many);
}

/* With boards that scatter by a variance of v, four of them, of a GPU. */
static void scattered(struct report *r, const char *gpu, double v) {
    struct boards_of *of = calloc(1, sizeof *of);
    snprintf(of->gpu, sizeof of->gpu, "%s", gpu);
    of->table = calloc(1, sizeof *of->table);
    for (int k = 0; k < BOUNDS; k++) of->between[k] = (struct scatter){3, 6, v};
    boards_free(&r->boards);
    r->boards = (struct boards){1, of};
}

/* The interval is a prediction, and says whose boards it is by; being faster is judged by it. */
static void test_predicted(void **state) {
    struct report r;
    (void)state;
    report_load(&r, HERE "/recorded", HERE "/tasks", NULL);
    scattered(&r, "other", 1e-4);
    char *text = page_of(&r, 0);
    /* own part: log(0.505/0.495)/2/1.96 = 0.005102; 3.1824 * sqrt(2 * 0.005102^2 + 2e-4) = 0.05052
     */
    holds(text, "| **0.500** (0.475 to 0.526, boards of other) |");
    assert_int_equal(report_aggregate(&r, &r.columns[0], NULL).slower, 1);
    holds(text, "| level1 | 3 / 5 | 60 % | 40 % | 40 % | 40 % | 40 % | 20 % | 40 % | 0 | 1 |\n");
    free(text);
    scattered(&r, "testgpu", 0.05); /* +-1: 2 may be less than 1, and 8 may not */
    text = page_of(&r, 0);
    holds(text, "| **2.000** (0.731 to 5.473) |");
    assert_int_equal(report_aggregate(&r, &r.columns[0], NULL).slower, 0);
    holds(text, "| level1 | 3 / 5 | 60 % | 40 % | 40 % | 40 % | 40 % | 20 % | 20 % | 0 | 1 |\n");
    free(text);
    text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; i < r.nrows; i++)
        if (!strcmp(r.rows[i].task, "twice")) report_cell(&r.columns[0].cell[i], &r.boards, out);
    fclose(out);
    holds(text, "testgpu/twice ok 2.00x +-118.5%\n");
    free(text);
    report_free(&r);
}

static void test_page(void **state) {
    static const char *const expected[] = {
        "# Results on testgpu, sm_90\n",
        "Fake Test GPU, driver 1.2.3, CUDA 13.0, cuBLAS 13.1, 700 W.\n",
        "| level1 | 3 / 5 | 60 % | 40 % | 40 % | 40 % | 40 % | 20 % | 40 % | 0 | 1 |\n",
        "| **all** | 4 / 6 |",
        "| level1 | correct only | 3 / 5 | 3 | 2.000 | 2.000 | 3.500 | 1.250 to 5.000 | 8.00 |\n",
        "\n### level1\n\n| task | verdict |",
        "Not measured: absent.\n",
        "| twice | ok | fp32 | 10.00 | 20.00 | **2.000** (1.980 to 2.020, one board) |",
        "one board) | 50 % | 16.00 (graph) | "
        "1.600\\* | 1.200\\* |",
        "| wrong | wrong | - | - | - | - | - | 1.000 (eager) | - | - | out&#91;7&#93; is 3, "
        "expected 4 |\n",
        "| constant | ok | fp32 | 10.00 | 1000 | **100.000** (99.000 to 101.000, one board) | 50 %",
        "| 50 % | - | - | - | left out |\n",
        "| 50 % | - | - | - | weak-baseline: no cuDNN |\n",
        "| half | ok | fp32 | 10.00 | 5.000 | **0.500** (0.495 to 0.505, one board) | 50 % | 5.000 "
        "(eager) |",
        "below-floor). No other column counts them. The shapes of a\nfamily are in its row, and "
        "not "
        "in that of all.\n",
        "## What vanishes\n",
        "## Baselines against PyTorch\n",
        "\nNot compared: no time of PyTorch is of the board and the day of a result.\n"};
    struct report r;
    (void)state;
    report_load(&r, HERE "/recorded", HERE "/tasks", NULL);
    char *text = page_of(&r, 0);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) holds(text, expected[i]);
    lacks(text, "| class | kind of op |"); /* nor a table of nothing */
    lacks(text, "surely");
    lacks(text, "mid-mean");
    free(text);
    free(r.columns[0].torch); /* without PyTorch's times there is nothing to compare with */
    r.columns[0].torch = NULL;
    text = page_of(&r, 0);
    lacks(text, "against PyTorch");
    holds(text, "(1.980 to 2.020, one board) | 50 % | - | - | - |  |");
    free(text);
    report_free(&r);
}

/* A cell without a kernel shows what its most accurate baseline takes; why it has no kernel is
 * plain. */
static void test_missing(void **state) {
    struct report r = grid(2, 1);
    (void)state;
    struct result *cell = r.columns[0].cell;
    *cell = (struct result){.verdict = "missing", .reason = "no kernel"};
    cell->json = cJSON_Parse("{\"time_us\":{\"fp32\":{\"midmean\":30},\"tf32\":{\"midmean\":12}}}");
    char *text = page_of(&r, 0);
    holds(text, "| big_0000 | missing | - | - | 30.00 | - | - | - | - | - |  |\n");
    holds(text, "| big_0001 | ok | fp32 | 10.00 | 10.01 |");
    free(text);
    report_free(&r);
}

/* A library's fp32 may be less accurate than fp32: that is said, and of which class it is if known.
 */
static void test_lesser_baseline(void **state) {
    struct report r = grid(4, 1);
    static const char *const json[] = {"{\"baseline_class\":{\"fp32\":\"fp32-normwise\"}}",
                                       "{\"baseline_class\":{}}",
                                       "{\"baseline_class\":{\"fp32\":\"fp32\"}}", "{}"};
    static const char *const expected[] = {"the baseline is of fp32-normwise |\n",
                                           "the baseline is of a lesser class |\n"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct result *cell = &r.columns[0].cell[i];
        strcpy(cell->against, "fp32");
        cell->json = cJSON_Parse(json[i]);
    }
    char *text = page_of(&r, 0);
    for (int i = 0; i < 2; i++) holds(text, expected[i]);
    assert_int_equal(count(text, "the baseline is of"), 2);
    free(text);
    report_free(&r);
}

/* twice and half have a doubtful time, and are in their rows alone.  eight has flags that do not
 * matter. */
static void test_doubtful(void **state) {
    static const char *const expected[] = {
        "| twice | ok | fp32 | 10.00 | 20.00 | **2.000** (1.980 to 2.020, one board) |",
        "one board) | 50 % | 25.00 (eager)",
        "| decoy-ratio |\n",
        "| latency-bound; clocks-disagree: the host waited longer |\n",
        "\n| **all** | 1 / 5 | 1 | 8.000 | 2.000 | - | 1 of 1 | 0 | 0 |\n",
        "\nNot compared: no time of PyTorch is of the board and the day of a result.\n"};
    struct report r;
    (void)state;
    report_load(&r, HERE "/doubtful", HERE "/tasks", NULL);
    assert_int_equal(r.read, 3);
    struct aggregate a = report_aggregate(&r, &r.columns[0], "level1");
    assert_int_equal(a.left_out, 3); /* with the degenerate one */
    assert_int_equal(a.all, 3);
    assert_int_equal(a.correct, 1);
    char *text = page_of(&r, 0);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) holds(text, expected[i]);
    free(text);
    report_free(&r);
}

/* Of more than 100 cells the page lists the fastest, the slowest, and those that are not ok or are
 * left out; it says where the others are. */
static void test_big_suite(void **state) {
    struct report r = grid(1000, 1);
    (void)state;
    strcpy(r.columns[0].cell[500].verdict, "wrong");
    strcpy(r.columns[0].cell[500].reason, "out[7] is 3");
    struct result *last = &r.columns[0].cell[999];
    last->flags = calloc(1, sizeof *last->flags);
    last->flags[last->nflags++] = "decoy-ratio";
    char *text = page_of(&r, 0);
    holds(text, "| big | 998 / 999 |");
    holds(text, "Of 1000 recorded cells, 22 are listed here: the 10 fastest, the 10 slowest, and "
                "those that are not\nok, left out, or of another class.");
    holds(text, "speedup.tsv");
    assert_int_equal(count(text, "\n| big_"), 22);
    for (int i = 0; i < 10; i++) {
        char row[64];
        snprintf(row, sizeof row, "\n| big_%04d | ok |", i);
        holds(text, row);
        snprintf(row, sizeof row, "\n| big_%04d | ok |", 989 + i);
        holds(text, row);
    }
    in_order(text, "The 10 fastest", "\n| big_0998", "\n| big_0997");
    in_order(text, "\n| big_0989", "The 10 slowest", "\n| big_0000");
    in_order(text, "\n| big_0000", "\n| big_0001", "Not ok, left out");
    in_order(text, "Not ok, left out", "\n| big_0500 | wrong |", "\n| big_0999 | ok |");
    lacks(text, "big_0700");
    free(text);

    for (int i = 200; i < 900; i++) strcpy(r.columns[0].cell[i].verdict, "wrong");
    text = page_of(&r, 0);
    assert_int_equal(count(text, "\n| big_"), 120);
    holds(text, "And 601 more of these.");
    free(text);
    report_free(&r);
}

/* Up to 100 cells all are listed; of those that were not measured 20 are named. */
static void test_small_suite(void **state) {
    struct report r = grid(100, 1), sparse = grid(1000, 1);
    (void)state;
    char *text = page_of(&r, 0);
    assert_int_equal(count(text, "\n| big_"), 100);
    lacks(text, "fastest:");
    lacks(text, "Not measured");
    free(text);
    report_free(&r);
    r = grid(101, 1);
    text = page_of(&r, 0);
    assert_int_equal(count(text, "\n| big_"), 20);
    free(text);
    report_free(&r);
    for (int i = 3; i < 1000; i++) *sparse.columns[0].cell[i].verdict = 0;
    text = page_of(&sparse, 0);
    assert_int_equal(count(text, "\n| big_"), 3);
    holds(text, "Not measured: big_0003, big_0004,");
    holds(text, "big_0022 and 977 more.\n");
    lacks(text, "big_0023");
    free(text);
    report_free(&sparse);
}

/* The number of a file, which a new one that replaces it does not have. */
static ino_t number_of(const char *path) {
    struct stat st;
    if (stat(path, &st)) fail_msg("%s is not there", path);
    return st.st_ino;
}

/* Pages say what generates them, and are replaced only if they change. */
static void test_written(void **state) {
    struct report r = grid(3, 2);
    char *page = text_format("%s/gpu0/README.md", folder);
    char *other = text_format("%s/gpu1/README.md", folder);
    char *readme = text_format("%s/README.md", folder);
    (void)state;
    report_pages(&r, folder);
    char *text = file_read(page, NULL);
    holds(text, "# Results on gpu0\n");
    assert_ptr_equal(strstr(text, "<!-- `make report` generates this page"), text);
    free(text);
    file_replace(readme, "mine\n<!-- results:begin -->\nold\n<!-- results:end -->\nmine, too\n");
    report_readme(&r, "results", readme);
    text = file_read(readme, NULL);
    assert_ptr_equal(strstr(text, "mine\n<!-- results:begin -->\n\n| GPU |"), text);
    holds(text, "\n<!-- results:end -->\nmine, too\n");
    lacks(text, "old");
    free(text);

    ino_t before[] = {number_of(page), number_of(other), number_of(readme)};
    report_pages(&r, folder);
    report_readme(&r, "results", readme);
    assert_int_equal(number_of(page), before[0]);
    assert_int_equal(number_of(other), before[1]);
    assert_int_equal(number_of(readme), before[2]);

    r.columns[1].cell[0].ratio = 0.25;
    report_pages(&r, folder);
    report_readme(&r, "results", readme);
    assert_int_equal(number_of(page), before[0]);
    assert_int_not_equal(number_of(other), before[1]);
    assert_int_not_equal(number_of(readme), before[2]);
    free(page), free(other), free(readme);
    report_free(&r);
}

/* Draw the figures of a grid in the folder of the test, by a gnuplot that only notes its calls. */
static int drawn(const struct report *r) {
    char *plots = text_format("%s/plots", folder), *calls = text_format("%s/calls", folder);
    file_replace(calls, "");
    assert_int_equal(report_plots(r, plots, "no such folder"), KP_OK);
    char *text = file_read(calls, NULL);
    int n = count(text, "\n");
    free(text), free(calls), free(plots);
    return n;
}

/* A figure is drawn again only if its data, its titles or its script changed, or it is gone. */
static void test_figures(void **state) {
    struct report r = grid(300, 3);
    (void)state;
    char *gnuplot = text_format("%s/gnuplot", folder), *path = getenv("PATH");
    char *script =
        text_format("#!/bin/sh\n[ \"$1\" != --version ] || exit 0\necho \"$3\" >> %s/calls\n"
                    "> \"$(printf %%s \"$2\" | sed \"s/.*out='//; s/'.*//\")\"\n",
                    folder);
    char *with = text_format("%s:%s", folder, path), *before = text_format("%s", path);
    char *floor = text_format("%s/plots/floor.gp", folder);
    char *png = text_format("%s/plots/speedup.png", folder);
    char *data = text_format("%s/plots/data/speedup.tsv", folder);
    struct torch *torch = r.columns[0].torch = calloc((size_t)r.nrows, sizeof *torch);
    torch[0].us[TORCH_DEFAULT][TORCH_GRAPH] = 30, torch[1].us[TORCH_DEFAULT][TORCH_EAGER] = 5;
    file_replace(gnuplot, script);
    assert_int_equal(chmod(gnuplot, 0755), 0);
    setenv("PATH", with, 1);
    assert_int_equal(drawn(&r), 8); /* speedup, fast_p, floor, published */
    assert_int_equal(drawn(&r), 0);
    r.columns[0].cell[0].floor_us = 5; /* alters one figure */
    assert_int_equal(drawn(&r), 2);
    file_replace(floor, "another script");
    assert_int_equal(drawn(&r), 2);
    assert_int_equal(unlink(png), 0);
    assert_int_equal(drawn(&r), 2);
    assert_int_equal(drawn(&r), 0);
    strcpy(r.columns[0].name, "other"); /* alters titles and data of all but one */
    assert_int_equal(drawn(&r), 6);
    setenv("PATH", before, 1);

    /* All cells are in the data; at most 200 of a suite are drawn, the ends among them. */
    char *text = file_read(data, NULL);
    assert_int_equal(count(text, "\tbig_") + count(text, "\tfaster\t") + count(text, "\teven\t"),
                     6 * 300);
    assert_int_equal(count(text, "\t1\tNaN\t") + 2, 3 * 200);
    /* With their speedups over PyTorch, if there are any, which are sorted by themselves. */
    holds(text, "\n1\tbig_0000\t1\t1\t1\teven\t0.05150\t1\t3\t0.72500\t1\n");
    holds(text, "\n2\tbig_0001\t1.001\t1.001\t1.001\tfaster\t0.05450\t1\t0.5\t0.27500\t1\n");
    holds(text, "\n300\tbig_0299\t1.299\t1.299\t1.299\tfaster\t0.94850\t1\tNaN\tNaN\t0\n");
    free(text), free(gnuplot), free(script), free(with), free(before), free(floor), free(png);
    free(data);
    report_free(&r);
}

/* For ends(): put the table into a README whose markers are in the wrong order. */
static void without_marks(void) {
    struct report r = {0};
    char *readme = text_format("%s/README.md", folder);
    file_replace(readme, "<!-- results:end --> comes before <!-- results:begin -->\n");
    report_readme(&r, "results", readme);
}

static void test_marks(void **state) {
    (void)state;
    ends(without_marks, KP_INPUT, "expected a line <!-- results:begin -->");
}

/* Text from results means nothing in Markdown, and is never cut inside a character. */
static void test_plain(void **state) {
    char *text = NULL;
    size_t size = 0;
    (void)state;
    FILE *out = open_memstream(&text, &size);
    put_plain("a|b<c>\n[d](e)`*", 100, out);
    fputc(' ', out);
    put_plain("1234\xc3\xa9"
              "5678",
              5, out);
    fclose(out);
    assert_string_equal(text, "a&#124;b&#60;c&#62; &#91;d&#93;(e)&#96;&#42; 1234\xc3\xa9...");
    free(text);
}

/* Makes the folders of two GPUs and of the figures. */
static int enter(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    char *made = text_format("mkdir %s/gpu0 %s/gpu1 %s/plots", folder, folder, folder);
    int failed = system(made);
    free(made);
    return failed;
}

/* Removes them. */
static int leave(void **state) {
    (void)state;
    char *gone = text_format("rm -r %s", folder);
    int failed = system(gone);
    free(gone);
    return failed;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_summary),        cmocka_unit_test(test_summary_size),
        cmocka_unit_test(test_page),           cmocka_unit_test(test_predicted),
        cmocka_unit_test(test_doubtful),       cmocka_unit_test(test_big_suite),
        cmocka_unit_test(test_small_suite),    cmocka_unit_test(test_written),
        cmocka_unit_test(test_figures),        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_plain),          cmocka_unit_test(test_missing),
        cmocka_unit_test(test_lesser_baseline)};
    return cmocka_run_group_tests(tests, enter, leave);
}
