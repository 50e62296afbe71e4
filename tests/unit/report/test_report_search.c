/* test_report_search.c: the results of searches, from calls with known outcomes; malformed files;
 * no output if there are no searches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ends.h"
#include "base/error.h"
#include "base/json.h"
#include "report/report.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/kernelproof-XXXXXX";

/* Makes the folders of two GPUs and enters theirs. */
static int enter(void **state) {
    (void)state;
    if (!mkdtemp(folder) || chdir(folder)) return -1;
    return mkdir("search", 0777) || mkdir("search/h200", 0777) || mkdir("search/a100", 0777);
}

/* Removes what the tests wrote. */
static int leave(void **state) {
    (void)state;
    unlink("search/h200/relu.csv");
    unlink("search/h200/softmax.csv");
    unlink("search/a100/relu.csv");
    unlink("search/README.md");
    rmdir("search/h200");
    rmdir("search/a100");
    rmdir("search");
    return chdir("/") || rmdir(folder);
}

#define NAMES                                                                          \
    "gpu,task,mode,round,index,attempt,model,outcome,verdict,class,ratio,low,high,us," \
    "input_tokens,output_tokens,cost_usd,seconds,same_as,date,code_sha256\n"
#define END ",10,same,2026-11-21T10:00:00Z,ab\n"

/* Two GPUs, three modes.  Branching: relu finds 2 (third call, 0.6 USD) and 8 (fourth, 1.0 USD);
 * softmax only what is slower, after two failures. */
static void write_files(void) {
    file_replace("search/h200/relu.csv", NAMES
                 "h200,relu,branching,1,0,branching.r1a0,m,ideas,,,,,,,100,10,0.25" END
                 "h200,relu,branching,1,1,branching.r1a1,m,no-code,,,,,,,100,10,0.25" END
                 "h200,relu,branching,1,2,branching.r1a2,m,code,ok,fp32,2,1.9,2.1,5,100,10,0.1" END
                 "h200,relu,branching,2,1,branching.r2a1,m,code,ok,tf32,8,7.9,8.1,5,100,10,0.4" END
                 "h200,relu,one_shot,1,1,one_shot.r1a1,m,code,build,,,,,,,," END);
    file_replace(
        "search/h200/softmax.csv", NAMES
        "h200,softmax,branching,1,2,branching.r1a2,m,code,wrong,,0,0,0,0,100,10,0.5" END
        "h200,softmax,branching,1,1,branching.r1a1,m,code,gate,,0,0,0,0,100,10,0.5" END
        "h200,softmax,branching,2,1,branching.r2a1,m,code,ok,fp32,0.5,0.4,0.6,5,100,10,0.5" END
        "h200,softmax,branching,2,2,branching.r2a2,m,duplicate,duplicate,,,,,,100,10,0.5" END
        "h200,softmax,branching,2,3,branching.r2a3,m,code,,,,,,,100,10,0.5" END);
    file_replace("search/a100/relu.csv",
                 NAMES "a100,relu,repair,1,1,repair.r1a1,m,cut,,,,,,,7,8,0" END);
}

/* Writes the files and reads them. */
static struct search_calls *loaded(void) {
    write_files();
    struct search_calls *s = search_load(".");
    assert_non_null(s);
    return s;
}

/* Everything that is written of searches. */
struct texts {
    char *table, *data, *titles, *tried;
    int panels;
};

/* Writes all texts of a search. */
static struct texts texts_of(const struct search_calls *s) {
    struct texts t = {0};
    size_t size[4];
    FILE *a = open_memstream(&t.table, &size[0]), *b = open_memstream(&t.data, &size[1]);
    FILE *c = open_memstream(&t.titles, &size[2]), *d = open_memstream(&t.tried, &size[3]);
    search_table(s, a);
    t.panels = search_data(s, b, c, d);
    fclose(a), fclose(b), fclose(c), fclose(d);
    return t;
}

/* Releases them. */
static void texts_free(struct texts *t) {
    free(t->table), free(t->data), free(t->titles), free(t->tried);
}

/* Checks that a text has a part. */
static void holds(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("not there: %s\nin: %s", part, text);
}

static void test_none(void **state) {
    (void)state;
    assert_null(search_load("no such folder"));
    assert_null(search_load(".")); /* folders, and no file in them */
    struct texts t = texts_of(NULL);
    assert_int_equal(t.panels, 0);
    assert_string_equal(t.table, "");
    assert_string_equal(t.data, "");
    texts_free(&t);
    search_free(NULL);
    file_replace("search/a100/relu.csv", NAMES); /* names, and no call */
    assert_null(search_load("."));
}

static void test_table(void **state) {
    (void)state;
    struct search_calls *s = loaded();
    struct texts t = texts_of(s);
    holds(t.table, "| a100 | m | repair | 1 | 1 | 0 % | 1.000 | 7 | 8 | 0.00 | 0.00 | - |\n");
    /* prices that are not known are not 0; a task without a right kernel counts 1 */
    holds(t.table,
          "| h200 | m | one_shot | 1 | 1 | 0 % | 1.000 | 0 | 0 | unknown | unknown | - |\n");
    /* best 8, and 0.5, for which the baseline stands; 3 right of 7 measured; 3.5 USD, two tasks,
     * one verified speedup */
    holds(t.table,
          "| h200 | m | branching | 2 | 8 | 43 % | 2.828 | 900 | 90 | 3.50 | 1.75 | 3.50 |\n");
    texts_free(&t);
    search_free(s);
}

static void test_some_prices(void **state) {
    (void)state;
    write_files();
    file_replace("search/a100/relu.csv",
                 NAMES "a100,relu,repair,1,1,repair.r1a1,m,cut,,,,,,,7,8,0.5" END
                       "a100,relu,repair,2,1,repair.r2a1,m,cut,,,,,,,7,8," END);
    struct search_calls *s = search_load(".");
    struct texts t = texts_of(s);
    holds(t.table, "| 14 | 16 | over 0.50 | over 0.50 | - |\n");
    holds(t.titles, "\"a100, m: 2 attempts, 0.50 USD, 1 calls of unknown price\", ");
    texts_free(&t);
    search_free(s);
}

static void test_figure(void **state) {
    (void)state;
    struct search_calls *s = loaded();
    struct texts t = texts_of(s);
    assert_int_equal(t.panels, 2);
    assert_string_equal(t.titles, "\"a100, m: 1 attempts, 0.00 USD\", "
                                  "\"h200, m: 9 attempts (1 not measured), 3.50 USD, 1 calls of "
                                  "unknown price\"");
    /* repair is bit 2, one_shot 1, branching 4; money of repair and of branching is known */
    assert_string_equal(t.tried, "132, 530");
    /* by attempts: relu 1 1 2 8, softmax 1; calls for ideas are none */
    holds(t.data, "# h200 m branching\n# attempts_of_a_task\tbest\n0\t1\n1\t1\n2\t1.41421\n"
                  "3\t2.82843\n4\t2.82843\n5\t2.82843\n\n\n");
    /* by money: relu spends .25 .5 .6 1, softmax .5 1 1.5 2 2.5 */
    holds(t.data, "# h200 m branching\n# usd_of_a_task\tbest\n0\t1\n0.25\t1\n0.5\t1\n0.6\t1.41421\n"
                  "1\t2.82843\n1.5\t2.82843\n2\t2.82843\n2.5\t2.82843\n\n\n");
    holds(t.data, "# one_shot: prices are not known\nNaN\tNaN\n\n\n");
    holds(t.data, "# contrastive: not tried\nNaN\tNaN\n\n\n");
    /* bars: round 1 of branching has 4 attempts, round 2 has 3 that were measured */
    holds(t.data, "\tno_code\n1\t1\t1\t0\t0\t0\t0\t100\t0\t0\n3\t1\t4\t25\t0\t25\t25\t0\t0\t25\n"
                  "4\t2\t3\t33.3333\t33.3333\t0\t0\t0\t33.3333\t0\n\n\n");
    holds(t.data, "# middle\tmode\n1\tone_shot\n3.5\tbranching\n\n\n");
    int blocks = 0;
    for (const char *p = t.data; (p = strstr(p, "\n\n\n")); p++) blocks++;
    assert_int_equal(blocks, 24); /* twelve a panel */
    texts_free(&t);
    search_free(s);
}

/* Two models on a GPU: a row, a panel and its blocks each, and no curve of both.  The same attempt
 * of two models is no attempt twice. */
static void test_models(void **state) {
    (void)state;
    write_files();
    file_replace("search/h200/relu.csv",
                 NAMES "h200,relu,repair,1,1,repair.r1a1,n,code,ok,fp32,8,7.9,8.1,5,100,10,0" END
                       "h200,relu,repair,1,1,repair.r1a1,m,code,ok,fp32,2,1.9,2.1,5,100,10,1" END
                       "h200,relu,one_shot,1,1,one_shot.r1a1,n,cut,,,,,,,,,0" END);
    unlink("search/h200/softmax.csv");
    struct search_calls *s = search_load(".");
    struct texts t = texts_of(s);
    assert_int_equal(t.panels, 3);
    assert_string_equal(t.titles, "\"a100, m: 1 attempts, 0.00 USD\", "
                                  "\"h200, m: 1 attempts, 1.00 USD\", "
                                  "\"h200, n: 2 attempts, 0.00 USD\"");
    assert_string_equal(t.tried, "132, 132, 198");
    holds(t.table,
          "| h200 | m | repair | 1 | 1 | 100 % | 2.000 | 100 | 10 | 1.00 | 1.00 | 1.00 |\n"
          "| h200 | n | one_shot | 1 | 1 | 0 % | 1.000 | 0 | 0 | 0.00 | 0.00 | - |\n"
          "| h200 | n | repair | 1 | 1 | 100 % | 8.000 | 100 | 10 | 0.00 | 0.00 | 0.00 |\n");
    holds(t.data, "# h200 m repair\n# attempts_of_a_task\tbest\n0\t1\n1\t2\n\n\n");
    holds(t.data, "# h200 n repair\n# attempts_of_a_task\tbest\n0\t1\n1\t8\n\n\n");
    texts_free(&t);
    search_free(s);
}

/* Names that would be more than text in Markdown or in gnuplot. */
static void test_names(void **state) {
    static const struct {
        const char *field, *table, *title, *data;
    } cases[] = {
        {"org/gpt-5.5_a:free", "org/gpt-5.5_a:free", "org/gpt-5.5_a:free", "org/gpt-5.5_a:free"},
        {"", "unnamed", "unnamed", "unnamed"},
        {"a|b*_c_[d](e)", "a&#124;b&#42;&#95;c&#95;&#91;d&#93;&#40;e&#41;",
         "a\\174b\\052\\137c\\137\\133d\\135\\050e\\051", "a|b*_c_[d](e)"},
        {"\"q \"\"x\"\", <b>\"", "q &#34;x&#34;&#44; &#60;b&#62;", "q \\042x\\042\\054 \\074b\\076",
         "q \"x\", <b>"},
        {"`id`$x\\n#@'", "&#96;id&#96;&#36;x&#92;n&#35;&#64;&#39;",
         "\\140id\\140\\044x\\134n\\043\\100\\047", "`id`$x\\n#@'"},
        {"a\tb\r\x1b\x7f.", "a b   &#46;", "a b   \\056", "a b   ."},
        {"\xe6\x97\xa5 \xff\xc3", "\xe6\x97\xa5 \xef\xbf\xbd", "? ?", "\xe6\x97\xa5 \xef\xbf\xbd"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = text_format("%sa100,relu,repair,1,1,repair.r1a1,%s,cut,,,,,,,7,8,0" END, NAMES,
                                 cases[i].field);
        char *row = text_format("| a100 | %s | repair |", cases[i].table);
        char *title = text_format("\"a100, %s: 1 attempts, 0.00 USD\"", cases[i].title);
        char *data = text_format("# a100 %s repair\n# attempts", cases[i].data);
        unlink("search/h200/relu.csv");
        unlink("search/h200/softmax.csv");
        file_replace("search/a100/relu.csv", text);
        struct search_calls *s = search_load(".");
        struct texts t = texts_of(s);
        holds(t.table, row);
        assert_string_equal(t.titles, title);
        holds(t.data, data);
        texts_free(&t);
        search_free(s);
        free(text), free(row), free(title), free(data);
    }
}

/* A long name has a line of the title; of a very long one it is the beginning. */
static void test_long_names(void **state) {
    (void)state;
    char name[128];
    memset(name, 'x', 127);
    name[127] = 0;
    for (int length = 127; length > 40; length -= 60) {
        name[length] = 0;
        char *text =
            text_format("%sa100,relu,repair,1,1,repair.r1a1,%s,cut,,,,,,,7,8,0" END, NAMES, name);
        char *row = text_format("| a100 | %s | repair |", name);
        char *title = text_format("\"a100, %.80s%s:\\n1 attempts, 0.00 USD\"", name,
                                  length > 80 ? "..." : "");
        file_replace("search/a100/relu.csv", text);
        struct search_calls *s = search_load(".");
        struct texts t = texts_of(s);
        holds(t.table, row);
        assert_string_equal(t.titles, title);
        texts_free(&t);
        search_free(s);
        free(text), free(row), free(title);
    }
}

/* A kernel whose time is doubtful counts as wrong. */
static void test_doubtful(void **state) {
    (void)state;
    file_replace("search/a100/relu.csv", NAMES
                 "a100,relu,repair,1,1,repair.r1a1,m,code,ok,fp32,2,1.9,2.1,5,100,10,0.1" END
                 "a100,relu,repair,1,2,repair.r1a2,m,code,doubtful,fp32,0,0,0,0,100,10,0.1" END);
    struct search_calls *s = search_load(".");
    struct texts t = texts_of(s);
    holds(t.table, "| a100 | m | repair | 1 | 2 | 50 % | 2.000 |");
    texts_free(&t);
    search_free(s);
}

/* A cell that carries no headline number, by its task or by its result, is in neither table nor
 * figure. */
static void test_left_out(void **state) {
    (void)state;
    struct row rows[] = {{.task = "relu"}, {.task = "softmax", .left_out = true}};
    struct result cells[2] = {{.task = "relu"}, {.task = "softmax"}};
    struct column column = {.name = "a100", .cell = cells};
    struct report r = {.nrows = 2, .rows = rows, .ncolumns = 1, .columns = &column};
    struct search_calls *s = loaded();
    search_leave_out(s, &r);
    struct texts t = texts_of(s);
    holds(t.table, "| a100 | m | repair | 1 | 1 |");
    holds(t.table,
          "| h200 | m | branching | 1 | 3 | 67 % | 8.000 | 400 | 40 | 1.00 | 1.00 | 1.00 |\n");
    holds(t.table, "Left out, with their attempts and costs: 1 cell ");
    holds(t.titles, "\"h200, m: 4 attempts, 1.00 USD, 1 calls of unknown price\"");
    texts_free(&t);
    search_free(s);

    cells[0].flags = (const char *[]){"weak-baseline: no cuDNN"}, cells[0].nflags = 1;
    s = loaded();
    search_leave_out(s, &r);
    t = texts_of(s);
    if (strstr(t.table, "a100")) fail_msg("still there: %s", t.table);
    holds(t.table, "costs: 2 cells ");
    texts_free(&t);
    rows[0].left_out = true;
    search_leave_out(s, &r); /* all of it: nothing is left to be told */
    t = texts_of(s);
    assert_string_equal(t.table, "");
    assert_int_equal(t.panels, 0);
    texts_free(&t);
    search_free(s);
    search_leave_out(NULL, &r);
}

/* ---- malformed files -------------------------------------------------------------- */

/* For ends(): read the files of the current folder. */
static void load_it(void) {
    search_load(".");
}

/* Loading it ends the program with KP_INPUT, and one line with these words. */
static void refused(const char *names, const char *line, const char *words) {
    char *text = text_format("%s%s", names, line);
    file_replace("search/a100/relu.csv", text);
    free(text);
    ends(load_it, KP_INPUT, words);
}

#define X64  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define GOOD "a100,relu,repair,1,1,repair.r1a1,m,code,ok,fp32,2,1.9,2.1,5,100,10,0.1" END

static void test_malformed(void **state) {
    static const struct {
        const char *from, *to, *words;
    } cases[] = {{"a100,", "h100,", ":2: expected the GPU of the folder, found \"h100\"; mend"},
                 {"relu,", "gelu,", "expected the task of the file"},
                 {",repair,", ",guess,", "expected a mode, found \"guess\""},
                 {",1,1,", ",0,1,", "expected a whole number, found \"0\""},
                 {",1,1,", ",1,1.5,", "expected a whole number"},
                 {",1,1,", ",1,,", "expected a whole number"},
                 {",1,1,", ",2,1,", "expected MODE.rROUNDaINDEX"},
                 {"code,ok", "spam,ok", "expected an outcome"},
                 {"code,ok", "code,fine", "expected a verdict"},
                 {",2,1.9", ",x,1.9", "expected a number of at least 0, found \"x\""},
                 {",2,1.9", ",-2,1.9", "expected a number"},
                 {",2,1.9", ",nan,1.9", "expected a number"},
                 {",2,1.9", ",2,2.05", "expected a ratio between low and high"},
                 {",0.1,", ",0.1 USD,", "expected a number"},
                 {",100,10", ",inf,10", "expected a number"},
                 {",m,", "," X64 X64 ",", "expected a model's name of up to 127 bytes, found"},
                 {",m,", ",\"m,", ":2: field 7: its quotes are not closed"},
                 {",m,", ",\"m\"n,", ":2: field 7: its quotes are not closed"},
                 {",ab\n", ",\"ab\n", ":2: field 21: its quotes are not closed"},
                 {",ab\n", ",\"ab\"\"\n", ":2: field 21: its quotes are not closed"},
                 {",ab\n", ",\"\n", ":2: field 21: its quotes are not closed"},
                 {",m,", ",\"\",\"\",", ":2: more than 21 fields"},
                 {",ab\n", ",ab,\n", ":2: more than 21 fields"},
                 {",ab\n", "\n", ":2: 20 fields, expected 21"},
                 {",ab\n", ",ab\n\n" GOOD, ":3: 1 fields, expected 21"},
                 {",ab\n", ",ab\n" GOOD, ":3: repair.r1a1 is there twice"}};
    (void)state;
    write_files();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *at = strstr(GOOD, cases[i].from);
        assert_non_null(at);
        char *line = text_format("%.*s%s%s", (int)(at - GOOD), GOOD, cases[i].to,
                                 at + strlen(cases[i].from));
        refused(NAMES, line, cases[i].words);
        free(line);
    }
    file_replace("search/a100/relu.csv", NAMES GOOD);
    search_free(search_load(".")); /* as it stood, it is good */
    file_replace("search/a100/relu.csv", NAMES
                 "a100,relu,repair,1,1,repair.r1a1,\"a, \"\"b\"\", c\",code,ok,fp32,2,1.9,2.1,5,"
                 "100,10,0.1,10,\"\",2026-11-21T10:00:00Z,\"ab\"\n");
    search_free(search_load("."));
    refused("", "", ":1: expected the names of the columns, found \"\"");
    refused("gpu,task\n", GOOD, ":1: expected the names of the columns, found \"gpu,task\"");
}

/* Searches have a page of their own, with their figure. */
static void test_page(void **state) {
    (void)state;
    struct report r = {.search = loaded()};
    report_pages(&r, ".");
    char *text = file_read("search/README.md", NULL);
    assert_ptr_equal(strstr(text, "<!-- `make report` generates this page"), text);
    holds(text, "# Searches\n");
    holds(text, "| a100 | m | repair | 1 | 1 |");
    holds(text, "](../../plots/search.svg)");
    free(text);
    search_free(r.search);
    r.search = NULL; /* once there are none, what was said of them goes */
    report_pages(&r, ".");
    text = file_read("search/README.md", NULL);
    holds(text, "# Searches\n\nNone is recorded.\n");
    assert_null(strstr(text, "a100"));
    free(text);
    unlink("search/README.md");
    report_pages(&r, "."); /* nor is there a page of none */
    assert_int_equal(access("search/README.md", F_OK), -1);
}

#define X63 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

/* For ends(): read the files of the current folder, which hold no call. */
static void load_none(void) {
    if (search_load(".")) die(KP_BUG, "a call was read");
}

/* A task's name has up to 63 characters; a file with a longer one is left out, and named. */
static void test_names_of_tasks(void **state) {
    (void)state;
    unlink("search/h200/relu.csv");
    unlink("search/h200/softmax.csv");
    unlink("search/a100/relu.csv");
    file_replace("search/a100/" X63 ".csv",
                 NAMES "a100," X63 ",repair,1,1,repair.r1a1,m,cut,,,,,,,7,8,0" END);
    struct search_calls *s = search_load(".");
    assert_non_null(s);
    struct texts t = texts_of(s);
    holds(t.table, "| a100 | m | repair | 1 | 1 |");
    texts_free(&t);
    search_free(s);
    rename("search/a100/" X63 ".csv", "search/a100/" X64 ".csv");
    ends(load_none, 0,
         X64 ".csv: expected a task's name of up to 63 bytes before .csv; it is left out");
    unlink("search/a100/" X64 ".csv");
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),        cmocka_unit_test(test_table),
        cmocka_unit_test(test_some_prices), cmocka_unit_test(test_figure),
        cmocka_unit_test(test_models),      cmocka_unit_test(test_names),
        cmocka_unit_test(test_long_names),  cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_malformed),   cmocka_unit_test(test_doubtful),
        cmocka_unit_test(test_page),        cmocka_unit_test(test_names_of_tasks)};
    return cmocka_run_group_tests(tests, enter, leave);
}
