/* test_llm_text.c: how the model client handles foreign text: UTF-8, JSON escapes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/error.h"
#include "llm/wire.h"

#define LENGTH(a) (sizeof(a) / sizeof *(a))

static void test_utf8(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t n, length;
    } cases[] = {
        {"a", 1, 1},
        {"", 1, 0}, /* a NUL */
        {"", 0, 0},
        {"\x7F", 1, 1},
        {"\x80", 1, 0},
        {"\xC1\xBF", 2, 0},
        {"\xC2\x80", 2, 2},
        {"\xC2", 1, 0},
        {"\xC2\xC0", 2, 0},
        {"\xDF\xBF", 2, 2},
        {"\xE0\x9F\xBF", 3, 0},
        {"\xE0\xA0\x80", 3, 3},
        {"\xE2\x82", 2, 0},
        {"\xE2\x82\x41", 3, 0},
        {"\xED\x9F\xBF", 3, 3},
        {"\xED\xA0\x80", 3, 0}, /* a surrogate */
        {"\xEE\x80\x80", 3, 3},
        {"\xEF\xBF\xBF", 3, 3},
        {"\xF0\x8F\xBF\xBF", 4, 0},
        {"\xF0\x90\x80\x80", 4, 4},
        {"\xF0\x9F\x98\x80", 4, 4},
        {"\xF0\x9F\x98", 3, 0},
        {"\xF4\x8F\xBF\xBF", 4, 4},
        {"\xF4\x90\x80\x80", 4, 0},
        {"\xF5\x80\x80\x80", 4, 0},
        {"\xFF", 1, 0},
    };
    for (size_t i = 0; i < LENGTH(cases); i++)
        if (utf8_length(cases[i].bytes, cases[i].n) != cases[i].length)
            fail_msg("case %zu: %zu", i, utf8_length(cases[i].bytes, cases[i].n));
}

static void test_clean(void **state) {
    (void)state;
    static const struct {
        const char *in;
        size_t n;
        const char *out;
    } cases[] = {
        {"", 0, ""},
        {"plain \xE2\x82\xAC\n", 10, "plain \xE2\x82\xAC\n"},
        {"a\xFFz", 3, "a\xEF\xBF\xBDz"},
        {"a\xFF\xFE\x80z", 5, "a\xEF\xBF\xBDz"},
        {"a\0\0z", 4, "a\xEF\xBF\xBD\xEF\xBF\xBDz"},
        {"cut \xE2\x82", 6, "cut \xEF\xBF\xBD"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char *out = utf8_clean(cases[i].in, cases[i].n);
        assert_string_equal(out, cases[i].out);
        free(out);
    }
}

/* Parse JSON of one string; expect this text, and this from text_settle. */
static void settles(const char *json, size_t n, const char *text, const char *says) {
    cJSON *parsed = json_foreign(json, n);
    if (!cJSON_IsString(parsed)) fail_msg("%s is no longer JSON", json);
    struct text t = {0};
    text_add(&t, parsed->valuestring, strlen(parsed->valuestring));
    const char *found = text_settle(&t);
    if (says) {
        assert_non_null(found);
        assert_string_equal(found, says);
    } else {
        assert_null(found);
    }
    assert_string_equal(t.s, text);
    assert_int_equal(t.n, strlen(text));
    text_free(&t);
    cJSON_Delete(parsed);
}

static void test_escapes(void **state) {
    (void)state;
    static const char nul[] = "a NUL", half[] = "half of a surrogate pair",
                      bytes[] = "bytes that are not UTF-8";
    static const struct {
        const char *json, *text, *says;
    } cases[] = {
        {"\"plain \\n \\u0041 \\u20ac\"", "plain \n A \xE2\x82\xAC", NULL},
        {"\"\\ud83d\\ude00!\"", "\xF0\x9F\x98\x80!", NULL},
        {"\"\\uD83D\\uDE00\"", "\xF0\x9F\x98\x80", NULL},
        {"\"x\\u0000y\"", "x\xEF\xBF\xBDy", nul},
        {"\"\\u0000\"", "\xEF\xBF\xBD", nul},
        {"\"x\\\\u0000y\"", "x\\u0000y", NULL}, /* a backslash, and then u0000 */
        {"\"x\\\\\\u0000y\"", "x\\\xEF\xBF\xBDy", nul},
        {"\"x\\ud83dy\"", "x\xEF\xBF\xBDy", half},
        {"\"x\\ud83d\"", "x\xEF\xBF\xBD", half},
        {"\"\\ude00\\ud83d\"", "\xEF\xBF\xBD\xEF\xBF\xBD", half},
        {"\"\\ud83d\\u0041\"",
         "\xEF\xBF\xBD"
         "A",
         half},
        {"\"\\ud83d\\ud83d\\ude00\"", "\xEF\xBF\xBD\xF0\x9F\x98\x80", half},
        {"\"\\ud83d\\ud83d\"", "\xEF\xBF\xBD\xEF\xBF\xBD", half},
        {"\"\\udbff\\udfff\"", "\xF4\x8F\xBF\xBF", NULL},
        {"\"a\xFFz\"", "a\xEF\xBF\xBDz", bytes},
        {"\"\xED\xA0\xBD\xED\xB8\x80\"", "\xF0\x9F\x98\x80", NULL},
    };
    for (size_t i = 0; i < LENGTH(cases); i++)
        settles(cases[i].json, strlen(cases[i].json), cases[i].text, cases[i].says);
    settles("\"a\0z\"", 5, "a\xEF\xBF\xBDz", nul);
    /* Invalid JSON stays invalid. */
    static const char *const bad[] = {"\"\\u12\"", "\"\\u00g0\"", "\"\\u\"", "\"\\",
                                      "\"x",       "\"\\x\"",     "\"\\u000"};
    for (size_t i = 0; i < LENGTH(bad); i++) assert_null(json_foreign(bad[i], strlen(bad[i])));
}

/* A surrogate pair split over two strings. */
static void test_pieces(void **state) {
    (void)state;
    static const char *const halves[] = {"\"a\\ud83d\"", "\"\\ude00z\""};
    struct text t = {0};
    for (int i = 0; i < 2; i++) {
        cJSON *s = json_foreign(halves[i], strlen(halves[i]));
        text_add(&t, s->valuestring, strlen(s->valuestring));
        cJSON_Delete(s);
    }
    assert_null(text_settle(&t));
    assert_string_equal(t.s, "a\xF0\x9F\x98\x80z");
    text_free(&t);
}

static void test_think(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"plain", "plain"},
        {"<think>a\nb</think>\n\ncode", "code"},
        {" \n<think>a</think>code", "code"},
        {"<think>a</think><think>b</think> c", "c"},
        {"<think>never closed", ""},
        {"<think></think>", ""},
        {"x <think>a</think>", "x <think>a</think>"},
        {"<thinking>", "<thinking>"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct text answer = {0};
        text_add(&answer, cases[i][0], strlen(cases[i][0]));
        text_unthink(&answer);
        assert_string_equal(answer.s, cases[i][1]);
        assert_int_equal(answer.n, strlen(cases[i][1]));
        text_free(&answer);
    }
}

/* An answer of nothing but empty thoughts takes linear time. */
static void test_think_often(void **state) {
    (void)state;
    struct text answer = {0};
#ifdef __SANITIZE_ADDRESS__
    const int often = 1000; /* strstr reads to the end of its text */
#else
    const int often = 1000000;
#endif
    for (int i = 0; i < often; i++) text_add(&answer, "<think></think>", 15);
    text_add(&answer, "x", 1);
    alarm(20);
    text_unthink(&answer);
    alarm(0);
    assert_string_equal(answer.s, "x");
    assert_int_equal(answer.n, 1);
    text_free(&answer);
}

static void test_excerpt(void **state) {
    (void)state;
    static const struct {
        const char *in;
        size_t room;
        const char *out;
    } cases[] = {
        {"<html>\n<h1>502  Bad</h1>\t<p class=\"x\">Gateway</p></html>", 100, "502 Bad Gateway"},
        {"a < b and c<d>e", 100, "a < b and c e"},
        {"one\r\ntwo\x1B[31m\x7Fthree\xC2\x9B"
         "four",
         100, "one two [31m three four"},
        {"\xE2\x82\xAC\xE2\x82\xAC", 6, "\xE2\x82\xAC"},
        {"\xE2\x82\xAC\xE2\x82\xAC", 7, "\xE2\x82\xAC\xE2\x82\xAC"},
        {"abc", 1, ""},
        {"<!DOCTYPE html", 100, ""},
        {"a\xFF", 100, "a\xEF\xBF\xBD"},
    };
    char out[100];
    for (size_t i = 0; i < LENGTH(cases); i++) {
        text_excerpt(out, cases[i].room, cases[i].in, strlen(cases[i].in));
        assert_string_equal(out, cases[i].out);
    }
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8),    cmocka_unit_test(test_clean),
        cmocka_unit_test(test_escapes), cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_think),   cmocka_unit_test(test_think_often),
        cmocka_unit_test(test_excerpt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
