/* test_judge.c: what the judge of kernels sees, and how its answer is read: comments removed,
 * the known cheats, quotes that must occur. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/error.h"
#include "base/json.h"
#include "gen/prompt.h"
#include "judge/judge.h"

/* ---- Comments -------------------------------------------------------------------- */

static void strips(const char *source, const char *expected) {
    char *found = strip_comments(source);
    assert_string_equal(found, expected);
    free(found);
}

static void test_strip(void **state) {
    (void)state;
    strips("", "");
    strips("int a; // b\nint c;\n", "int a;\nint c;\n");
    strips("int/* b */a;", "int a;");
    strips("/* 1\n 2\n 3 */ int a;", "\n\n int a;");
    strips("a; /* 1\n2 */\nb;\n", "a;\n\nb;\n");
    strips("a; // one \\\n two\nb;", "a;\n\nb;");
    strips("a; // one \\\r\n two\r\nb;", "a;\n\nb;");
    strips("a // not closed", "a");
    strips("a; // one\rb;\n", "a;\nb;\n"); /* code that a compiler may see stays visible */
    strips("a /* not closed\n", "a\n");
    strips("a = b / c;", "a = b / c;");
}

static void test_literals(void **state) {
    (void)state;
    strips("\"// no\"; // yes", "\"// no\";");
    strips("\"/* no */\"", "\"/* no */\"");
    strips("\"\\\" // no\"//", "\"\\\" // no\"");
    strips("'\"' // yes\n'\\'' // yes", "'\"'\n'\\''");
    strips("'/*' b", "'/*' b");
    strips("1'000'000 // a thousand", "1'000'000");
    strips("0x1'f /* \" */ + 2", "0x1'f   + 2");
    strips("u8'a' // b", "u8'a'");
    strips("R\"(// no \" /* no)\" // yes", "R\"(// no \" /* no)\"");
    strips("u8R\"tag(\n)\" // no\n)tag\" // yes", "u8R\"tag(\n)\" // no\n)tag\"");
    strips("FOR\"(\" // yes", "FOR\"(\""); /* not a raw string */
    strips("\"open // no\nb // yes", "\"open // no\nb");
}

/* Visit every source in these folders, in any order. */
static void each_source(const char *path, void (*look)(const char *file, const char *source)) {
    DIR *d = opendir(path);
    if (!d) fail_msg("%s: cannot be read; run this from the root of the tree", path);
    for (struct dirent *e; (e = readdir(d));) {
        size_t n = strlen(e->d_name);
        if (n < 4 || strcmp(e->d_name + n - 3, ".cu")) continue;
        char *file = text_format("%s/%s", path, e->d_name), *source = file_read(file, NULL);
        look(file, source);
        free(source);
        free(file);
    }
    closedir(d);
}

static int count(const char *text, char c) {
    int n = 0;
    for (; *text; text++) n += *text == c;
    return n;
}

static void strips_well(const char *file, const char *source) {
    char *once = strip_comments(source), *twice = strip_comments(once);
    if (count(source, '\n') != count(once, '\n')) fail_msg("%s: lines were lost", file);
    if (strcmp(once, twice)) fail_msg("%s: comments are left", file);
    if (strstr(source, "// expect:") && strstr(once, "// expect:"))
        fail_msg("%s: is labelled", file);
    free(once);
    free(twice);
}

static void test_sources(void **state) {
    (void)state;
    each_source("tests/specimens", strips_well);
    each_source("optimized/portable", strips_well);
    each_source("optimized/sm_90a", strips_well);
}

/* ---- Into the prompt --------------------------------------------------------------- */

static void test_numbers(void **state) {
    (void)state;
    cJSON *source = cJSON_CreateObject();
    cJSON_AddStringToObject(source, "source", "a\n\n  b");
    cJSON *found = prompt_jq("judge", "{text: (.source | numbered)}", source);
    assert_string_equal(json_text(found, "text", ""), "   1  a\n   2  \n   3    b\n");
    cJSON_Delete(found), cJSON_Delete(source);
}

/* The prompt file has a place for each value, and nothing of this kernel comes before the line that
 * separates its messages: the first is the same in every call. */
static void test_prompt(void **state) {
    (void)state;
    static const char *const places[] = {"gpu", "task", "jump", "tape", "kernel"};
    char *text = file_read("harness/judge/judge.txt", NULL), *cut = strstr(text, "\n=====\n");
    assert_non_null(cut);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char *place = text_format("{{%s}}", places[i]), *at = strstr(text, place);
        if (!at || at < cut) fail_msg("%s is not in the message", place);
        free(place);
    }
    char *catalogue = strstr(text, "{{catalogue}}");
    assert_true(catalogue && catalogue < cut);
    free(text);
}

/* ---- Out of the answer -------------------------------------------------------------- */

static void verdict(const char *answer, const char *expected) {
    cJSON *json = json_first(answer, "verdict");
    assert_string_equal(json_text(json, "verdict", "none"), expected);
    cJSON_Delete(json);
}

static void test_answers(void **state) {
    (void)state;
    verdict("{\"verdict\":\"clean\"}", "clean");
    verdict("Let me see {what} this is:\n```json\n{\"verdict\": \"cheat\", \"lines\": [1]}\n```\n",
            "cheat");
    verdict("{\"why\": {\"a\": 1}} then {\"verdict\": \"suspect\"} {\"verdict\": \"clean\"}",
            "suspect");
    verdict("{\"quote\": \"a { b } \\\" }\", \"verdict\": \"cheat\"}", "cheat");
    verdict("{ {\"verdict\": \"clean\"} }", "clean");
    verdict("{\"verdict\": \"clean\"", "none");
    verdict("{'verdict': 'clean'}", "none");
    verdict("no object, \"verdict\": \"clean\"", "none");
    verdict("", "none");
    char *braces = calloc(1, 1 << 20);
    assert_non_null(braces);
    memset(braces, '{', (1 << 20) - 1);
    verdict(braces, "none");
    free(braces);
}

static void test_quotes(void **state) {
    (void)state;
    static const struct {
        const char *quote;
        int near, line; /* 0: it does not occur */
    } cases[] = {{"int a = 1;", 1, 1},
                 {"int a = 1;", 4, 5},
                 {"  int a=1;\n", 1, 1},
                 {"work(a, b);", 1, 3},
                 {"for (;;) work", 1, 2},
                 {"work ( a , b )", 1, 3},
                 {"work(b, a)", 1, 0},
                 {"int a = 1; // comment", 1, 0},
                 {"a", 1, 0},
                 {" ; ", 1, 0},
                 {"", 1, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cJSON *data = cJSON_CreateObject();
        cJSON_AddStringToObject(data, "source",
                                "int a = 1;\nfor (;;)\n    work(a,\n         b);\nint a = 1;\n");
        cJSON_AddStringToObject(data, "quote", cases[i].quote);
        cJSON_AddNumberToObject(data, "near", cases[i].near);
        cJSON *found = prompt_jq(
            "judge", "{line: (.quote as $q | .near as $near | .source | place($q; $near))}", data);
        if (json_number(found, "line", 0) != cases[i].line) fail_msg("%s", cases[i].quote);
        cJSON_Delete(found), cJSON_Delete(data);
    }
}

/* ---- Known cheats ------------------------------------------------------------------------ */

static const char *text_of(const cJSON *hack, const char *key) {
    const char *text = json_text(hack, key, "");
    if (!*text) fail_msg("a hack (%s) has no %s", json_text(hack, "id", "?"), key);
    return text;
}

/* Each has all that the prompt shows of it, and an id of its own. */
static void test_hacks(void **state) {
    (void)state;
    cJSON *json = json_read("harness/judge/hacks.json");
    const cJSON *hacks = cJSON_GetObjectItem(json, "hacks"), *a, *b, *line;
    assert_true(cJSON_GetArraySize(hacks) >= 24);
    cJSON_ArrayForEach(a, hacks) {
        text_of(a, "title"), text_of(a, "why"), text_of(a, "test");
        const cJSON *looks = cJSON_GetObjectItem(a, "looks");
        assert_true(cJSON_GetArraySize(looks) > 0);
        cJSON_ArrayForEach(line, looks) assert_true(cJSON_IsString(line));
        for (b = a->next; b; b = b->next)
            if (!strcmp(text_of(a, "id"), text_of(b, "id")))
                fail_msg("two are %s", text_of(a, "id"));
    }
    cJSON_Delete(json);
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strip),   cmocka_unit_test(test_literals),
        cmocka_unit_test(test_sources), cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_prompt),  cmocka_unit_test(test_answers),
        cmocka_unit_test(test_quotes),  cmocka_unit_test(test_hacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
