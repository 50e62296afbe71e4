/* test_record.c: what record-results, thin.jq and family.jq leave of fresh results. */
#include "own_folder.h"
#include "ends.h"
#include "base/json.h"
#include "record/recorded.h"

#include <stdlib.h>
#include <sys/stat.h>

/* A fresh result with samples 1..5 and more digits than are recorded. */
#define FRESH(task, more)                                                                      \
    "{\"schema\":1,\"task\":\"" task "\",\"suite\":\"fam\",\"gpu\":\"g1\",\"verdict\":\"ok\"," \
    "\"reason\":null,\"time_us\":{\"candidate\":{\"midmean\":3.14159265358979,\"median\":3,"   \
    "\"samples\":[1,2,3,5,4]},\"fp32\":{\"midmean\":123456789.5,\"samples\":[7]}},"            \
    "\"speedup\":{\"against\":\"fp32\",\"ratio\":2.00000049,\"low\":1.9,\"high\":2.1},"        \
    "\"floor_us\":1.23456789e-9,\"sandbox\":{\"seccomp\":true},"                               \
    "\"machine\":{\"memory_bytes\":150109880320,\"power_w\":123.4567891}" more "}"

#define KERNEL(path, code) \
    ",\"kernel\":{\"path\":\"" path "\",\"sha256\":\"" path "\",\"code_sha256\":" code "}"

/* Run a command in the folder of the test.  Returns what it printed on stdout and stderr. */
static char *run(const char *format, const char *argument) {
    char *with = text_format(format, argument), *command = text_format("{ %s; } > said 2>&1", with);
    if (system(command)) {
        char *said = file_read("said", NULL);
        fail_msg("%s: %s", command, said);
    }
    free(command);
    free(with);
    return file_read("said", NULL);
}

/* Run record-results, which should say this. */
static void record(const char *mode, const char *expected) {
    char *command = text_format("%s/harness/record/record-results %s", root, mode);
    char *said = run("%s", command);
    if (!strstr(said, expected)) fail_msg("not said: %s\nbut: %s", expected, said);
    free(command);
    free(said);
}

/* The recorded result of a task; fails if it cannot be used. */
static struct result recorded(const char *task) {
    struct recorded from;
    struct result r = {0};
    recorded_open(&from, "results", "g1");
    if (recorded_find(&from, task, &r) != FOUND_USABLE) fail_msg("%s is not recorded", task);
    recorded_close(&from);
    return r;
}

/* Whether a file is there. */
static bool exists(const char *path) {
    return access(path, F_OK) == 0;
}

static void test_thin(void **state) {
    (void)state;
    file_replace("x.json",
                 FRESH("fam_1", ",\"harness\":{\"rounds\":1234567,\"seed\":\"1.23456789\"}"));
    char *thin = text_format("%s/harness/record/thin.jq", root);
    char *once = run("%s -c x.json", thin);
    holds(once, "\"candidate\":{\"midmean\":3.14159,\"median\":3,\"quantiles\":[1.2,2,3,4,4.8]}");
    holds(once, "\"fp32\":{\"midmean\":123457000,\"quantiles\":[7,7,7,7,7]}");
    holds(once, "\"ratio\":2,");
    holds(once, "\"memory_bytes\":150109880320,\"power_w\":123.457");
    holds(once, "\"rounds\":1234567,\"seed\":\"1.23456789\"");
    holds(once, "\"reason\":null");
    assert_null(strstr(once, "samples"));
    cJSON *json = cJSON_Parse(once);
    assert_true(json_number(json, "floor_us", 0) == 1.23457e-9);
    cJSON_Delete(json);
    file_replace("y.json", once);
    char *twice = run("%s -c y.json", thin);
    assert_string_equal(twice, once);
    free(once), free(twice);
    file_replace("x.json", "{\"verdict\":\"wrong\",\"time_us\":null,\"machine\":null}");
    once = run("%s -c x.json", thin);
    assert_string_equal(once, "{\"verdict\":\"wrong\",\"time_us\":null,\"machine\":null}\n");
    free(once);
    free(thin);
}

/* The kernel of build.json is taken if what was compiled is the same, and only then. */
static void test_kernel(void **state) {
    static const struct {
        const char *fresh, *build, *expected;
    } cases[] = {{KERNEL("old", "\"c\""), KERNEL("new", "\"c\""), "\"path\":\"new\""},
                 {KERNEL("old", "\"c\""), KERNEL("new", "\"d\""), "\"path\":\"old\""},
                 {KERNEL("old", "null"), KERNEL("new", "null"), "\"path\":\"old\""}};
    char *thin = text_format("%s/harness/record/thin.jq", root);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *fresh = text_format("{\"task\":\"a\",\"gpu\":\"g1\"%s}", cases[i].fresh);
        char *build = text_format("{\"task\":\"a\",\"gpu\":\"g1\"%s}", cases[i].build);
        file_replace("a.time.json", fresh);
        file_replace("a.build.json", build);
        char *said = run("%s -c a.build.json a.time.json", thin);
        holds(said, cases[i].expected);
        free(said), free(fresh), free(build);
    }
    file_replace("a.build.json", "{\"task\":\"a\",\"gpu\":\"g1\"" KERNEL("new", "\"c\"") "}");
    static const char *const other[] = {"\"task\":\"b\",\"gpu\":\"g1\"",
                                        "\"task\":\"a\",\"gpu\":\"g2\""};
    for (int i = 0; i < 2; i++) { /* it is of another cell */
        char *fresh = text_format("{%s" KERNEL("old", "\"c\"") "}", other[i]);
        file_replace("a.time.json", fresh);
        char *said = run("%s -c a.build.json a.time.json", thin);
        holds(said, "\"path\":\"old\"");
        free(said), free(fresh);
    }
    free(thin);
}

/* Each run that says what it was measured of adds a row to results/reruns, once. */
static void test_runs(void **state) {
    static const char run[] =
        "{\"schema\":1,\"task\":\"again\",\"gpu\":\"g1\",\"verdict\":\"%s\",\"speedup\":{\"ratio\":"
        "2.00000049,\"low\":1.9,\"high\":2.1},\"time_us\":{\"candidate\":{\"midmean\":30}},"
        "\"floor_bytes_us\":9,\"floor_flops_us\":1.5,%s"
        "\"machine\":{\"uuid_hash\":\"%s\",\"memory_bytes\":5,\"driver\":\"5,8\",\"ecc\":true},"
        "\"harness\":{\"date\":\"D\",\"commit\":\"C\",\"wall_seconds\":1.5}}";
    static const char hashes[] =
        "\"inputs\":{\"kernel\":\"0123456789\",\"reference\":\"abcdefghij\",\"harness\":"
        "\"ABCDEFGHIJ\"},";
    static const char row[] =
        "again,01234567/abcdefgh/ABCDEFGH/5/null/true/null/5_8/null/null/null,"
        "%s,D,C,2,1.9,2.1,30,9,1.5,1.5\n";
    static const struct {
        const char *verdict, *board, *inputs, *said;
    } cases[] = {{"ok", "0123456", hashes, "; 1 runs added"},
                 {"ok", "0123456", hashes, "; 0 runs added"}, /* the same run */
                 {"ok", "abcdefg", hashes, "; 1 runs added"}, /* another board */
                 {"ok", "zzzzzzz", "", "; 0 runs added"},     /* it does not say of what */
                 {"wrong", "yyyyyyy", hashes, "; 0 runs added"}};
    (void)state;
    file_replace("build/cells", "g1 : again\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *json = text_format(run, cases[i].verdict, cases[i].inputs, cases[i].board);
        file_replace("build/g1/again.time.json", json);
        record(i % 2 ? "new" : "all", cases[i].said);
        free(json);
    }
    char *text = file_read("results/reruns/g1.csv", NULL);
    char *one = text_format(row, "012345"), *two = text_format(row, "abcdef");
    char *whole =
        text_format("task,setup,board,run,commit,ratio,low,high,candidate_us,floor_bytes_us,"
                    "floor_flops_us,wall_s\n%s%s",
                    one, two);
    assert_string_equal(text, whole);
    free(text), free(one), free(two), free(whole);
    assert_false(exists("results/reruns/g1.csv+"));
    assert_int_equal(remove("build/g1/again.time.json"), 0);
}

/* A cell of no family has a file of its own; `new` replaces none. */
static void test_files(void **state) {
    (void)state;
    file_replace("build/cells", "g1 : solo duet\n");
    file_replace("build/g1/solo.time.json", FRESH("solo", KERNEL("old", "\"c\"")));
    file_replace("build/g1/solo.build.json",
                 "{\"task\":\"solo\",\"gpu\":\"g1\"" KERNEL("new", "\"c\"") "}");
    record("new", "1 recorded, 0 recorded before, 0 kept as they were, 1 not measured");
    struct result r = recorded("solo");
    assert_string_equal(r.sha256, "new");
    assert_string_equal(r.code, "c");
    assert_null(cJSON_GetObjectItem(cJSON_GetObjectItem(r.json, "time_us"), "samples"));
    result_free(&r);
    record("all", "0 recorded, 1 recorded before, 0 kept as they were, 1 not measured");
    file_replace("build/g1/solo.time.json", FRESH("solo", ",\"flags\":[]"));
    record("new", "0 recorded, 0 recorded before, 1 kept as they were, 1 not measured");
    r = recorded("solo");
    assert_string_equal(r.sha256, "new");
    result_free(&r);
    record("all", "1 recorded, 0 recorded before");
    r = recorded("solo");
    assert_string_equal(r.sha256, "");
    result_free(&r);
    char *samples = file_read("build/g1/solo.time.json", NULL); /* these stay there */
    holds(samples, "\"samples\":[1,2,3,5,4]");
    free(samples);
    assert_false(exists("results/g1/solo.json+"));
}

/* The tasks of a family are lines of one file, sorted; a recording keeps the lines of others, and
 * also those that are broken. */
static void test_family(void **state) {
    (void)state;
    file_replace("tasks/fam/template.json", "{}");
    file_replace("tasks/fam/shapes", "1 2\n3\n");
    file_replace("build/cells", "g1 : fam_3 fam_1 fam_2 fam_4\n");
    file_replace("build/g1/fam_1.time.json", FRESH("fam_1", KERNEL("a", "\"1\"")));
    file_replace("build/g1/fam_3.time.json", FRESH("fam_3", KERNEL("a", "\"3\"")));
    file_replace("build/g1/fam_4.time.json", FRESH("fam_4", "")); /* not in the list */
    record("all", "3 recorded, 0 recorded before, 0 kept as they were, 1 not measured");
    assert_true(exists("results/g1/fam_4.json"));
    assert_false(exists("results/g1/fam_1.json"));
    char *text = file_read("results/g1/fam.jsonl", NULL);
    assert_true(strstr(text, "\n{\"task\":\"fam_1\",\"like\":[") <
                strstr(text, "\n{\"task\":\"fam_3\""));
    assert_ptr_equal(strstr(strstr(text, "150109880320") + 1, "150109880320"), NULL); /* once */
    struct result r = recorded("fam_3");
    assert_string_equal(r.code, "3");
    assert_string_equal(r.sha256, "a");
    assert_true(json_number(cJSON_GetObjectItem(r.json, "machine"), "memory_bytes", 0) ==
                150109880320);
    assert_true(json_number(cJSON_GetObjectItem(r.json, "machine"), "power_w", 0) == 123.457);
    result_free(&r);
    record("all", "0 recorded, 3 recorded before, 0 kept as they were, 1 not measured");
    char *again = file_read("results/g1/fam.jsonl", NULL);
    assert_string_equal(again, text);
    free(again);

    char *broken =
        text_format("%s{\"task\":\"fam_9\",\"li\n[1]\n{\"task\":\"fam_8\",\"like\":[99]}\n", text);
    file_replace("results/g1/fam.jsonl", broken);
    free(broken);
    file_replace("build/g1/fam_2.time.json", FRESH("fam_2", KERNEL("b", "\"2\"")));
    file_replace("build/g1/fam_1.time.json", FRESH("fam_1", KERNEL("b", "\"4\"")));
    record("new", "1 recorded, 0 recorded before, 3 kept as they were, 0 not measured");
    r = recorded("fam_1");
    assert_string_equal(r.code, "1");
    result_free(&r);
    file_replace("build/cells", "g1 : fam_1\n");
    record("all", "1 recorded, 0 recorded before, 0 kept as they were, 0 not measured");
    again = file_read("results/g1/fam.jsonl", NULL);
    holds(again, "\n{\"task\":\"fam_9\",\"li\n[1]\n{\"task\":\"fam_8\",\"like\":[99]}\n");
    r = recorded("fam_1");
    assert_string_equal(r.code, "4");
    assert_string_equal(r.sha256, "b");
    result_free(&r);
    r = recorded("fam_2");
    assert_string_equal(r.sha256, "b");
    result_free(&r);
    r = recorded("fam_3");
    assert_string_equal(r.sha256, "a");
    assert_string_equal(r.code, "3");
    result_free(&r);
    free(again);
    free(text);
    assert_false(exists("results/g1/fam.jsonl+"));
}

/* A cell is recorded where it is recorded already: in a line although its suite is no family here,
 * in a file although it is one. */
static void test_place(void **state) {
    (void)state;
    remove("tasks/fam/template.json");
    file_replace("build/cells", "g1 : fam_1 fam_4\n");
    file_replace("build/g1/fam_1.time.json", FRESH("fam_1", KERNEL("c", "\"5\"")));
    file_replace("build/g1/fam_4.time.json", FRESH("fam_4", KERNEL("c", "\"6\"")));
    file_replace("tasks/fam/shapes", "1 2 3 4");
    record("all", "2 recorded");
    assert_false(exists("results/g1/fam_1.json"));
    struct result r = recorded("fam_1");
    assert_string_equal(r.code, "5");
    result_free(&r);
    file_replace("tasks/fam/template.json", "{}");
    file_replace("build/g1/fam_4.time.json", FRESH("fam_4", KERNEL("c", "\"7\"")));
    record("all", "1 recorded, 1 recorded before");
    r = recorded("fam_4");
    assert_string_equal(r.code, "7");
    result_free(&r);
    char *text = file_read("results/g1/fam.jsonl", NULL);
    assert_null(strstr(text, "fam_4"));
    free(text);
}

/* Run record-results, which should refuse and say this; then `path` holds `before`, which is freed.
 */
static void refused(const char *path, char *before, const char *expected) {
    char *command = text_format("%s/harness/record/record-results all; [ $? = 3 ]", root);
    char *said = run("%s", command);
    holds(said, expected);
    char *after = file_read(path, NULL);
    assert_string_equal(before, after);
    free(before), free(after), free(said), free(command);
}

/* What is no JSON loses nothing that was recorded. */
static void test_trouble(void **state) {
    (void)state;
    file_replace("build/cells", "g1 : fam_1\n");
    file_replace("build/g1/fam_1.time.json", "{\"schema\":1,");
    refused(
        "results/g1/fam.jsonl", file_read("results/g1/fam.jsonl", NULL),
        "record-results: build/g1/fam_1.time.json is no JSON object (cut short?): not recorded; "
        "remove it and run make again");
    /* Nor does it cost another, and what is empty takes no other's place. */
    file_replace("build/cells", "g1 : empty fam_1 spared\n");
    file_replace("build/g1/empty.time.json", "");
    file_replace("build/g1/spared.time.json", FRESH("spared", ""));
    refused("results/g1/fam.jsonl", file_read("results/g1/fam.jsonl", NULL),
            "1 recorded, 0 recorded before, 0 kept as they were, 2 damaged, 0 not measured");
    assert_false(exists("results/g1/empty.json"));
    struct result r = recorded("spared");
    assert_string_equal(r.task, "spared");
    result_free(&r);
}

/* Where a GPU's results are of another tree, none is recorded, replaced or not. */
static void test_other_tree(void **state) {
    (void)state;
    file_replace("build/cells", "g1 : solo fresh\n");
    file_replace("build/g1/solo.time.json", FRESH("solo", ",\"flags\":[1]"));
    file_replace("build/g1/fresh.time.json", FRESH("fresh", ""));
    file_replace("results/g1/tree", "0123456789ab\n");
    char *before = file_read("results/g1/solo.json", NULL);
    record("new", "0 recorded, 0 recorded before, 2 kept as they were, 0 not measured");
    refused("results/g1/solo.json", before,
            "results/g1 are all of commit 0123456789ab: to record others, mend");
    assert_false(exists("results/g1/fresh.json"));
    /* Where those of a family are, others are recorded. */
    file_replace("results/g1/tree", "0123456789ab fam\n");
    file_replace("build/cells", "g1 : fam_1 solo fresh\n");
    file_replace("build/g1/fam_1.time.json", FRESH("fam_1", ",\"flags\":[1]"));
    before = file_read("results/g1/fam.jsonl", NULL);
    refused("results/g1/fam.jsonl", before,
            "results/g1/fam.jsonl are all of commit 0123456789ab: to record others, mend");
    assert_false(exists("results/g1/fresh.json"));
    file_replace("build/cells", "g1 : solo fresh\n");
    record("all", "2 recorded");
    assert_int_equal(remove("results/g1/tree"), 0);
}

/* Makes a folder as record-results expects it, and enters it. */
static int enter(void **state) {
    (void)state;
    return enter_with("mkdir -p tasks/fam build/g1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thin),       cmocka_unit_test(test_kernel),
        cmocka_unit_test(test_runs),       cmocka_unit_test(test_files),
        cmocka_unit_test(test_family),     cmocka_unit_test(test_place),
        cmocka_unit_test(test_other_tree), cmocka_unit_test(test_trouble)};
    return cmocka_run_group_tests(tests, enter, leave);
}
