/* test_recorded.c: families in tasks/ and in results/: their reader, and what reads through it. */
#include "own_folder.h"
#include "ends.h"
#include "base/json.h"
#include "record/recorded.h"
#include "report/report.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>

/* The parts that the lines below share. */
#define SHARED                                                                                 \
    "{\"shared\":1,\"of\":{\"schema\":1,\"suite\":\"fam\",\"gpu\":\"g1\"}}\n"                  \
    "{\"shared\":4,\"of\":{\"machine\":{\"gpu_name\":\"Test GPU\",\"driver\":\"1\","           \
    "\"compute_capability\":\"8.0\",\"clocks\":{\"sm_mhz\":1,\"memory_mhz\":2}},\"time_us\":{" \
    "\"candidate\":{\"midmean\":7}}}}\n"

/* A line of a task of the family with a speedup. */
#define CELL(task, ratio)                                                                      \
    "{\"task\":\"" task "\",\"like\":[1,4],\"verdict\":\"ok\",\"class\":\"f16\",\"machine\":{" \
    "\"clocks\":{\"sm_mhz\":5}},\"speedup\":{\"against\":\"f16\",\"ratio\":" ratio             \
    ",\"low\":" ratio ",\"high\":" ratio "}}\n"

/* Run `what`, and return what it wrote to stderr. */
static char *stderr_of(void (*what)(void *), void *state) {
    int kept = dup(2), file = open("stderr", O_RDWR | O_CREAT | O_TRUNC, 0666);
    fflush(stderr);
    dup2(file, 2);
    what(state);
    fflush(stderr);
    dup2(kept, 2);
    close(kept);
    close(file);
    return file_read("stderr", NULL);
}

/* How many lines a text has. */
static int lines(const char *text) {
    int n = 0;
    for (; *text; text++) n += *text == '\n';
    return n;
}

/* Load the grid of the current folder; for stderr_of(). */
static void load(void *r) {
    report_load(r, "results", "tasks", NULL);
}

/* The cell of a task in the first column; fails if there is no such row. */
static const struct result *cell_of(const struct report *r, const char *task) {
    for (int i = 0; i < r->nrows; i++)
        if (!strcmp(r->rows[i].task, task)) return &r->columns[0].cell[i];
    fail_msg("no row %s", task);
    return NULL;
}

/* The rows of a family come from its list, with the flags of its template. */
static void test_tasks(void **state) {
    struct report r;
    (void)state;
    file_replace("tasks/fam/template.json",
                 "{\"schema\":1,\"task\":\"fam_{SHAPE}\",\"suite\":\"fam\",\n"
                 "\"inputs\":[{\"shape\":[\"{M}\", \"{K}\"]}],\"flags\":[]}\n");
    file_replace("tasks/fam/shapes", "64_64\n128_64 \n\n  256_64\n");
    file_replace("tasks/one/solo.json", "{\"task\":\"solo\",\"suite\":\"one\",\"flags\":[]}");
    char *said = stderr_of(load, &r);
    assert_string_equal(said, "");
    free(said);
    assert_int_equal(r.nrows, 4);
    static const char *const task[] = {"fam_128_64", "fam_256_64", "fam_64_64", "solo"};
    for (int i = 0; i < 4; i++) assert_string_equal(r.rows[i].task, task[i]);
    for (int i = 0; i < 3; i++) assert_string_equal(r.rows[i].suite, "fam");
    assert_false(r.rows[0].left_out);
    report_free(&r);

    file_replace("tasks/fam/template.json",
                 "{\"suite\":\"fam\",\"flags\":[\"known\",\"degenerate: {WHY}\"]}");
    file_replace("tasks/fam/shapes", "64_64 Big/one 64_64");
    said = stderr_of(load, &r);
    assert_int_equal(lines(said), 2);
    holds(said, "tasks/fam/shapes: Big/one cannot be a task");
    holds(said, "tasks/fam/shapes: 64_64 cannot be a task, or is one already");
    free(said);
    assert_int_equal(r.nrows, 2);
    assert_true(r.rows[0].left_out);
    report_free(&r);

    file_replace("tasks/fam/template.json", "{\"suite\":");
    said = stderr_of(load, &r);
    assert_int_equal(lines(said), 1);
    holds(said, "tasks/fam/template.json is not JSON from line 1 on");
    free(said);
    assert_int_equal(r.nrows, 1);
    report_free(&r);
    file_replace("tasks/fam/template.json", "{\"suite\":\"fam\",\"flags\":[]}");
    file_replace("tasks/fam/shapes", "64_64 128_64 256_64 512_64 1_1 2_2 3_3 4_4 5_5");

    file_replace("tasks/one/twice.json", "{\"task\":\"solo\",\"suite\":\"one\",\"flags\":[]}");
    file_replace("tasks/one/un.json", "{\"task\":\"un named\",\"suite\":\"one\",\"flags\":[]}");
    said = stderr_of(load, &r);
    assert_int_equal(lines(said), 2);
    holds(said,
          "tasks/one/twice.json is of the task solo, which is there already; it is left out\n");
    holds(said, "tasks/one/un.json lacks a usable task or suite; it is left out\n");
    free(said);
    report_free(&r);
    unlink("tasks/one/twice.json");
    unlink("tasks/one/un.json");
}

/* A word that is none of its family's costs a line and is left out; so does a template in which a
 * size has no name, once for all of its words. */
static void test_words(void **state) {
#define TEMPLATE(title)                                                                            \
    "{\"schema\":1,\"task\":\"fam_{M}_{K}\",\"suite\":\"fam\",\"shape\":[\"M\",\"K\"],\n"          \
    "\"title\":\"" title "\",\"inputs\":[\n{\"name\":\"x\",\"shape\":[\"{M}\",\"{K}\"],\"dtype\":" \
    "\"f32\",\"fill\":\"normal(0,1)\"}],\n\"graph\":[\n\"y[{M},{K}] = "                            \
    "relu(x)\"],\"outputs\":[\"y\"]}\n"
    struct report r;
    (void)state;
    file_replace("tasks/fam/template.json", TEMPLATE("one"));
    file_replace("tasks/fam/shapes", "64_64\n64\n064_1\n128_64\n");
    char *said = stderr_of(load, &r);
    assert_int_equal(lines(said), 2);
    holds(said, "fam_64 is no task of tasks/fam/template.json: expected fam_ and 2 numbers");
    holds(said, "look at the list beside the template; it is left out\n");
    free(said);
    assert_int_equal(r.nrows, 3);
    assert_string_equal(r.rows[0].task, "fam_128_64");
    assert_non_null(r.rows[0].meaning);
    report_free(&r);
    file_replace("tasks/fam/template.json", TEMPLATE("{K} by {N}"));
    file_replace("tasks/fam/shapes", "64_64\n128_64\n");
    said = stderr_of(load, &r);
    assert_int_equal(lines(said), 1);
    holds(said,
          "tasks/fam/template.json: {N}: no size has this name; see \"shape\"; it is left out");
    free(said);
    assert_int_equal(r.nrows, 1);
    report_free(&r);
    file_replace("tasks/fam/template.json", "{\"suite\":\"fam\",\"flags\":[]}");
    file_replace("tasks/fam/shapes", "64_64 128_64 256_64 512_64 1_1 2_2 3_3 4_4 5_5");
}

/* A line is completed by the parts that it names; where both have a key, its own counts. */
static void test_parts(void **state) {
    struct recorded from;
    struct result r;
    (void)state;
    file_replace("results/g1/fam.jsonl", SHARED CELL("fam_128_64", "2") CELL("fam_64_64", "3"));
    recorded_open(&from, "results", "g1");
    assert_int_equal(recorded_find(&from, "fam_64_64", &r), FOUND_USABLE);
    assert_string_equal(r.gpu, "g1");
    assert_string_equal(r.suite, "fam");
    assert_true(r.ratio == 3 && r.candidate_us == 7);
    cJSON *machine = cJSON_GetObjectItem(r.json, "machine");
    cJSON *clocks = cJSON_GetObjectItem(machine, "clocks");
    assert_string_equal(json_text(machine, "gpu_name", ""), "Test GPU");
    assert_true(json_number(clocks, "sm_mhz", 0) == 5);
    assert_true(json_number(clocks, "memory_mhz", 0) == 2);
    assert_null(cJSON_GetObjectItem(r.json, "like"));
    result_free(&r);
    assert_int_equal(recorded_find(&from, "fam_64_64", &r), FOUND_USABLE); /* again */
    result_free(&r);
    assert_int_equal(recorded_find(&from, "fam_64", &r), FOUND_NONE);
    assert_int_equal(recorded_find(&from, "family_64_64", &r), FOUND_NONE);
    assert_int_equal(recorded_find(&from, "solo", &r), FOUND_NONE);
    recorded_close(&from);
    recorded_open(&from, "results", "no such GPU");
    assert_int_equal(recorded_find(&from, "fam_64_64", &r), FOUND_NONE);
    recorded_close(&from);
}

/* A task's own file counts, not its line, and the report says that there are two. */
static void test_file_first(void **state) {
    struct recorded from;
    struct result r;
    struct report all;
    (void)state;
    file_replace("results/g1/fam.jsonl", SHARED CELL("fam_128_64", "2") CELL("fam_64_64", "3"));
    file_replace("results/g1/fam_64_64.json",
                 "{\"schema\":1,\"gpu\":\"g1\",\"time_us\":{\"candidate\":{\"midmean\":1}}," //
                 "\"task\":\"fam_64_64\",\"verdict\":\"ok\",\"speedup\":{\"ratio\":9,\"low\":9}}");
    recorded_open(&from, "results", "g1");
    assert_int_equal(recorded_find(&from, "fam_64_64", &r), FOUND_USABLE);
    assert_true(r.ratio == 9);
    result_free(&r);
    recorded_close(&from);
    char *said = stderr_of(load, &all);
    assert_int_equal(lines(said), 1);
    holds(said, "results/g1/fam.jsonl:4 is the second result of this cell; it is left out");
    assert_int_equal(all.read, 2);
    assert_true(cell_of(&all, "fam_64_64")->ratio == 9);
    assert_true(cell_of(&all, "fam_128_64")->ratio == 2);
    assert_string_equal(all.columns[0].arch, "sm_80");
    assert_string_equal(all.columns[0].whole_name, "Test GPU");
    free(said);
    report_free(&all);
    unlink("results/g1/fam_64_64.json");
}

/* Of many results that are refused ten are named, and all are counted. */
static void test_many_refused(void **state) {
    struct report r;
    char all[12 * 64] = "";
    (void)state;
    for (int i = 0; i < 12; i++) sprintf(all + strlen(all), "{\"task\":\"fam_%d_1\"}\n", i);
    file_replace("results/g1/fam.jsonl", all);
    char *said = stderr_of(load, &r);
    holds(said, "results/g1/fam.jsonl:10 has schema 0");
    holds(said, "12 results are left out in all");
    assert_int_equal(lines(said), 11);
    assert_int_equal(r.refused, 12);
    free(said);
    report_free(&r);
}

/* A broken line costs one line on stderr, and that cell. */
static void test_broken_lines(void **state) {
    struct report r;
    struct recorded from;
    struct result one;
    (void)state;
    file_replace("results/g1/fam.jsonl",
                 SHARED CELL("fam_128_64", "2") "{\"task\":\"fam_256_64\",\"li\n" //
                 CELL("solo", "2")                                                //
                 "{\"task\":\"fam_1_1\",\"like\":[1,3],\"verdict\":\"ok\"}\n"
                 "{\"task\":\"fam_2_2\",\"like\":[1],\"verdict\":\"great\"}\n"
                 "{\"task\":\"fam_3_3\",\"like\":[1],\"gpu\":\"g2\",\"verdict\":\"wrong\"}\n"
                 "[1]\n{\"task\":\"fam_4_4\",\"like\":[1],\"verdict\":\"ok\"}\n"
                 "\n" CELL("fam_64_64", "3") "{\"task\":\"fam_5_5\",\"like\":[1]");
    char *said = stderr_of(load, &r);
    static const char *const expected[] = {
        "results/g1/fam.jsonl:4 is no JSON object",
        "results/g1/fam.jsonl:5 is of no task fam_...",
        "results/g1/fam.jsonl:6 is like part 3, which the file lacks",
        "results/g1/fam.jsonl:7 has the unknown verdict \"great\"",
        "results/g1/fam.jsonl:8 is a result of g2/fam_3_3, not of the cell in its path",
        "results/g1/fam.jsonl:9 is no JSON object",
        "results/g1/fam.jsonl:10 is ok but its speedup has no ratio",
        "results/g1/fam.jsonl:13 is no JSON object"};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) holds(said, expected[i]);
    assert_int_equal(lines(said), sizeof expected / sizeof *expected);
    assert_int_equal(r.refused, sizeof expected / sizeof *expected);
    assert_int_equal(r.read, 2);
    assert_true(cell_of(&r, "fam_128_64")->ratio == 2);
    assert_true(cell_of(&r, "fam_64_64")->ratio == 3);
    free(said);
    report_free(&r);

    int kept = dup(2), nothing = open("/dev/null", O_WRONLY);
    fflush(stderr);
    dup2(nothing, 2);
    recorded_open(&from, "results", "g1");
    assert_int_equal(recorded_find(&from, "fam_1_1", &one), FOUND_BROKEN);
    assert_int_equal(recorded_find(&from, "fam_2_2", &one), FOUND_BROKEN);
    assert_int_equal(recorded_find(&from, "fam_256_64", &one), FOUND_NONE);
    assert_int_equal(recorded_find(&from, "fam_64_64", &one), FOUND_USABLE);
    result_free(&one);
    recorded_close(&from);
    dup2(kept, 2);
    close(kept), close(nothing);
}

/* What is committed: no samples, and less than 2,000 bytes a line of a family. */
static void test_committed(void **state) {
    static const char *const gpu[] = {"h100", "h200"};
    int families = 0;
    (void)state;
    for (int g = 0; g < 2; g++) {
        char *path = text_format("%s/results/%s/hgemm.jsonl", root, gpu[g]);
        bool there = access(path, F_OK) == 0; /* not each GPU has been asked for the family */
        char *text = there ? file_read(path, NULL) : strdup("");
        for (char *p = text, *end; *p; p = end + 1) {
            end = strchr(p, '\n');
            assert_non_null(end);
            assert_true(end - p < 2000);
        }
        assert_null(strstr(text, "samples\""));
        if (there) holds(text, "quantiles\""), families++;
        free(text);
        free(path);
        char *command = text_format("! grep -l '\"samples\"' %s/results/%s/*.json*", root, gpu[g]);
        assert_int_equal(system(command), 0);
        free(command);
    }
    assert_true(families > 0);
}

/* A suite that is not published has rows where it is asked for, and is in no sum of all. */
static void test_own_suites(void **state) {
    static const char *const suite[] = {"level1", "my", "v0"};
    static const struct {
        const char *shown;
        int rows, all;
        double geomean;
    } ask[] = {
        {"", 1, 1, 2}, {"my", 2, 1, 2}, {"v0 my", 3, 1, 2}, {"m y", 1, 1, 2}, {NULL, 3, 3, 4}};
    (void)state;
    assert_int_equal(system("mkdir -p o/tasks/level1 o/tasks/my o/tasks/v0 o/results/g1"), 0);
    for (int i = 0; i < 3; i++) {
        char *path = text_format("o/tasks/%s/t%d.json", suite[i], i);
        char *text = text_format("{\"task\":\"t%d\",\"suite\":\"%s\"}", i, suite[i]);
        file_replace(path, text);
        free(path);
        free(text);
        path = text_format("o/results/g1/t%d.json", i);
        text = text_format("{\"schema\":1,\"task\":\"t%d\",\"suite\":\"%s\",\"gpu\":\"g1\","
                           "\"verdict\":\"ok\",\"class\":\"fp32\",\"time_us\":{\"candidate\":"
                           "{\"midmean\":1}},\"speedup\":{\"ratio\":%d,\"low\":1,\"high\":9}}",
                           i, suite[i], 2 << i);
        file_replace(path, text);
        free(path);
        free(text);
    }
    for (size_t i = 0; i < sizeof ask / sizeof *ask; i++) {
        struct report r;
        report_load(&r, "o/results", "o/tasks", ask[i].shown);
        assert_int_equal(r.nrows, ask[i].rows);
        assert_int_equal(r.read, ask[i].rows);
        assert_int_equal(r.refused, 0);
        struct aggregate a = report_aggregate(&r, &r.columns[0], NULL);
        assert_int_equal(a.all, ask[i].all);
        assert_true(fabs(a.over[OVER_BASELINE].over_all.geomean - ask[i].geomean) < 1e-9);
        a = report_aggregate(&r, &r.columns[0], "my");
        assert_int_equal(a.all, ask[i].rows > 1);
        report_free(&r);
    }
}

/* Makes a folder with tasks and results, and enters it. */
static int enter(void **state) {
    (void)state;
    return enter_with("mkdir -p tasks/fam tasks/one results/g1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tasks),        cmocka_unit_test(test_words),
        cmocka_unit_test(test_parts),        cmocka_unit_test(test_file_first),
        cmocka_unit_test(test_broken_lines), cmocka_unit_test(test_many_refused),
        cmocka_unit_test(test_committed),    cmocka_unit_test(test_own_suites)};
    return cmocka_run_group_tests(tests, enter, leave);
}
