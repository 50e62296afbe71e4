/* test_curves.c: what the figures are drawn of: which cells, and shares of how many; and the page
 * of reruns. */
#include "own_folder.h"
#include "ends.h"
#include "base/error.h"
#include "report/report.h"

#include <stdlib.h>
#include <sys/stat.h>

enum { CELLS = 6 };

static struct row rows[CELLS];
static struct result cells[CELLS];
static struct column column = {.name = "g1", .cell = cells};
/* Boards scatter: a speedup may be larger or smaller by a factor of e. */
static struct boards_of of = {.gpu = "g1", .between = {{3, 6, 0.05}, {3, 6, 0.05}, {3, 6, 0.05}}};
static struct report report = {
    .nrows = CELLS, .rows = rows, .ncolumns = 1, .columns = &column, .boards = {1, &of}};

/* How often a part occurs in a text. */
static int count(const char *text, const char *part) {
    int n = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) n++;
    return n;
}

/* Curves are shares of all cells, of which a wrong one is a part and one that is left out is not; a
 * family is in no curve of all.  What is faster is so by the prediction. */
static void test_curves(void **state) {
    static const double ratio[CELLS] = {0.5, 2, 3, 0, 5, 40};
    (void)state;
    for (int i = 0; i < CELLS; i++) {
        snprintf(rows[i].task, sizeof rows[i].task, "t%d", i);
        strcpy(rows[i].suite, i == 4 ? "fam" : i < 4 ? "one" : "two");
        rows[i].family = i == 4, rows[i].twin = i;
        cells[i] = (struct result){.verdict = "ok", .gpu = "g1", .class = "fp32"};
        strcpy(cells[i].task, rows[i].task);
        cells[i].ratio = cells[i].low = cells[i].high = ratio[i], cells[i].candidate_us = 100;
    }
    cells[2].flags = (const char *[]){"control-ratio"}, cells[2].nflags = 1;
    strcpy(cells[3].verdict, "wrong");
    assert_int_equal(report_plots(&report, "plots", "no such folder"), 0);
    char *text = file_read("plots/data/fast_p.tsv", NULL);
    holds(text, "# g1 all\n# p\tshare_percent\n0\t75\n0.5\t50\n2\t25\n40\t0\n1000\t0\n");
    holds(text, "# g1 one\n# p\tshare_percent\n0\t66.6667\n0.5\t33.3333\n2\t0\n1000\t0\n");
    holds(text, "# g1 fam\n# p\tshare_percent\n0\t100\n5\t0\n1000\t0\n");
    free(text);
    text = file_read("plots/data/speedup.tsv", NULL);
    holds(text, "\n2\tt1\t2\t0.73");
    assert_int_equal(count(text, "\teven\t"), 2);   /* 0.5 and 2 */
    assert_int_equal(count(text, "\tfaster\t"), 2); /* 5 and 40 */
    assert_int_equal(count(text, "\tout\t"), 1);
    free(text);
}

/* What others left without a score counts as 1. */
static void test_published(void **state) {
    char *text[3];
    size_t size[3];
    FILE *out[3];
    (void)state;
    file_replace("cuda_l1.csv", "gpu,arch,task,eager\nx,sm_1,a,4\nx,sm_1,b,\n");
    for (int i = 0; i < 3; i++) out[i] = open_memstream(&text[i], &size[i]);
    assert_int_equal(published_data(".", out[0], out[1], out[2]), 1);
    for (int i = 0; i < 3; i++) fclose(out[i]);
    holds(text[1], "sm_1, x: 1 of 2 scored\\nmean 2.50, median 2.50, geomean 2.00");
    for (int i = 0; i < 3; i++) free(text[i]);
}

/* For ends(): the speedup that is a number is scored alone. */
static void scored(void) {
    char *text[3];
    size_t size[3];
    FILE *out[3];
    for (int i = 0; i < 3; i++) out[i] = open_memstream(&text[i], &size[i]);
    published_data(".", out[0], out[1], out[2]);
    for (int i = 0; i < 3; i++) fclose(out[i]);
    if (!strstr(text[1], "x: 1 of 2 scored\\nmean 2.50")) die(KP_BUG, "%s", text[1]);
}

/* What can be no speedup is left out, and its line is named. */
static void test_published_absurd(void **state) {
    (void)state;
    file_replace("cuda_l1.csv", "gpu,arch,task,eager\nx,sm_1,a,4\nx,sm_1,b,inf\n");
    ends(scored, 0,
         "cuda_l1.csv:3: eager: expected a number from 1e-12 to 1e12, found \"inf\"; it is left "
         "out");
}

/* The page of reruns has the scatter as a standard deviation, in per cent: of two boards, and of a
 * rerun on one. */
static void test_reruns(void **state) {
    struct report r = {0};
    (void)state;
    file_replace("results/reruns/g1.csv",
                 "task,setup,board,run,commit,ratio,low,high,candidate_us,floor_bytes_us,"
                 "floor_flops_us,wall_s\na,s,A,1,c,1,1,1,50,9,1,1\n"
                 "a,s,B,2,c,1.1,1.1,1.1,50,9,1,1\na,s,B,3,c,1.21,1.21,1.21,50,9,1,1\n");
    boards_load(&r.boards, "results");
    report_reruns(&r, "results");
    char *text = file_read("results/reruns/README.md", NULL);
    /* log 1.1 is 9.53 %: sqrt((1 + 4) / 2 / 2) and sqrt(1 / 2) times that */
    holds(text, "| g1 | memory | 2 | 2 | 10.66 % | 12.71 | 0 | - | - |\n");
    holds(text, "| g1 | memory | 1 | 1 | 6.74 % | 12.71 | 0 | - | - |\n");
    free(text);
    boards_free(&r.boards);
}

/* Makes a folder with a gnuplot that draws nothing, and enters it. */
static int enter(void **state) {
    (void)state;
    if (enter_with("mkdir -p plots results/reruns")) return 1;
    file_replace("gnuplot", "#!/bin/sh\n[ \"$1\" = --version ] || > \"$(printf %s \"$2\" | sed "
                            "\"s/.*out='//; s/'.*//\")\"\n");
    char *path = text_format("%s:%s", folder, getenv("PATH"));
    int failed = chmod("gnuplot", 0755) || setenv("PATH", path, 1);
    free(path);
    return failed;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_curves), cmocka_unit_test(test_published),
        cmocka_unit_test(test_published_absurd), cmocka_unit_test(test_reruns)};
    return cmocka_run_group_tests(tests, enter, leave);
}
