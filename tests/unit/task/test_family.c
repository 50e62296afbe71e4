/* test_family.c: families of tasks: a template and a list of shapes (task/taskfile.h). */
#include "task/taskfile.h"
#include "base/error.h"
#include "base/json.h"
#include "ends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char template[] =
    "{\"task\": \"f_{M}_{N}\", \"suite\": \"f\", \"shape\": [\"M\", \"N\"], \"title\": \"{M} by "
    "{N}\", \"inputs\": [{\"name\": \"x\", \"shape\": [\"{N}\", \"{M}\", 3]}], \"graph\": "
    "[\"y[{M},{N}] = relu(x)\"], \"flags\": []}";

static char path[] = "/tmp/test_family.XXXXXX";

/* Expand task NAME from a template with this text. */
static char *expanded(const char *text, const char *name) {
    file_replace(path, text);
    return family_expand(path, name);
}

static void test_sizes_replace_names(void **state) {
    (void)state;
    char *text = expanded(template, "f_64_128");
    cJSON *json = cJSON_Parse(text);
    assert_non_null(json);
    assert_string_equal(json_text(json, "task", ""), "f_64_128");
    assert_string_equal(json_text(json, "title", ""), "64 by 128");
    assert_null(cJSON_GetObjectItem(json, "shape"));
    const cJSON *input = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "inputs"), 0);
    const cJSON *shape = cJSON_GetObjectItem(input, "shape");
    assert_string_equal(json_text(input, "name", ""), "x");
    assert_int_equal(cJSON_GetArraySize(shape), 3);
    assert_true(cJSON_IsNumber(cJSON_GetArrayItem(shape, 0)));
    assert_int_equal(cJSON_GetArrayItem(shape, 0)->valueint, 128);
    assert_int_equal(cJSON_GetArrayItem(shape, 1)->valueint, 64);
    assert_int_equal(cJSON_GetArrayItem(shape, 2)->valueint, 3);
    const cJSON *op = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "graph"), 0);
    assert_string_equal(op->valuestring, "y[64,128] = relu(x)");
    cJSON_Delete(json);
    free(text);
}

static const char *bad_text, *bad_name;

static void bad(void) {
    free(expanded(bad_text, bad_name));
}

static void test_other_names_are_refused(void **state) {
    (void)state;
    static const char *const names[] = {"f_64",           "f_64_128_1", "g_64_128",  "f_064_1",
                                        "f_0_1",          "f_64_x",     "f_64_128_", "f__64",
                                        "f_1234567890_1", "f64_1"};
    bad_text = template;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bad_name = names[i];
        ends(bad, KP_INPUT, "is no task of");
        char message[256] = "";
        assert_null(family_expand_error(path, names[i], message, sizeof message));
        assert_non_null(strstr(message, "expected f_ and 2 numbers with _ between them"));
    }
}

static void test_malformed_templates_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"{\"suite\": \"f\"}", "no \"shape\""},
        {"{\"suite\": \"f\", \"shape\": []}", "no \"shape\""},
        {"{\"suite\": \"f\", \"shape\": [1]}", "expected 1 to 8 names"},
        {"{\"suite\": \"f\"", "not JSON"},
        {"{\"suite\": \"f\", \"shape\": [\"M\", \"N\"], \"title\": \"{K}\"}",
         "{K}: no size has this name"},
    };
    bad_name = "f_1_2";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bad_text = cases[i].text;
        ends(bad, KP_INPUT, cases[i].words);
    }
}

int main(void) {
    int fd = mkstemp(path);
    if (fd < 0) return 1;
    close(fd);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_replace_names),
        cmocka_unit_test(test_other_names_are_refused),
        cmocka_unit_test(test_malformed_templates_are_refused),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
