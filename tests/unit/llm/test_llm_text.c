/* test_llm_text.c: how the model client handles foreign text: UTF-8, JSON escapes, server-sent
 * events. */
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

/* ---- Server-sent events ---- */

/* Record each event; "stop" ends the stream. */
static bool note(void *context, const char *event, const char *data, size_t n, bool last) {
    struct text *t = context;
    char head[100];
    text_add(t, head, (size_t)snprintf(head, sizeof head, "%s(%s:", last ? "last" : "", event));
    text_add(t, data, n);
    text_add(t, ")", 1);
    return strncmp(data, "stop", 4) != 0;
}

/* Feed a stream as its first `first` bytes and the rest; return the record.  Free it. */
static char *events(const char *stream, size_t first, enum sse_state *end) {
    struct sse s = {0};
    struct text t = {0};
    text_add(&t, "", 0);
    *end = sse_feed(&s, stream, first, note, &t);
    if (*end == SSE_MORE) *end = sse_feed(&s, stream + first, strlen(stream) - first, note, &t);
    if (*end == SSE_MORE) sse_end(&s, note, &t);
    sse_free(&s);
    return t.s;
}

static void test_sse(void **state) {
    (void)state;
    static const struct {
        const char *stream, *noted;
        enum sse_state end;
    } cases[] = {
        {"data: a\n\ndata: b\n\n", "(:a)(:b)", SSE_MORE},
        {"data: a\r\n\r\ndata: b\r\n\r\n", "(:a)(:b)", SSE_MORE},
        {"data: a\r\rdata: b\r\r", "(:a)(:b)", SSE_MORE},
        {": comment\n\n:\n\ndata:a\n\n", "(:a)", SSE_MORE},
        {"event: x\ndata: a\n\ndata: b\n\n", "(x:a)(:b)", SSE_MORE},
        {"event: x\n\ndata: b\n\n", "(:b)", SSE_MORE},
        {"data:  two\ndata\ndata: three\n\n", "(: two\n\nthree)", SSE_MORE},
        {"id: 1\nretry: 5\nunknown\ndata: a:b\n\n", "(:a:b)", SSE_MORE},
        {"data: \xE2\x82\xAC\n\n", "(:\xE2\x82\xAC)", SSE_MORE},
        {"data: a\n\ndata: stop\n\ndata: b\n\n", "(:a)(:stop)", SSE_STOPPED},
        {"data: a\n\ndata: cut", "(:a)last(:cut)", SSE_MORE},
        {"data: a\n\ndata: b\n", "(:a)last(:b)", SSE_MORE},
        {"data: a\n\nda", "(:a)", SSE_MORE},
        {"event: x\r\ndata: a\r\ndata: b\r\n\r\n", "(x:a\nb)", SSE_MORE},
        {"dataset: a\n\n", "", SSE_MORE},
    };
    for (size_t i = 0; i < LENGTH(cases); i++)
        for (size_t first = 0; first <= strlen(cases[i].stream); first++) {
            enum sse_state end;
            char *noted = events(cases[i].stream, first, &end);
            if (strcmp(noted, cases[i].noted) != 0 || end != cases[i].end)
                fail_msg("case %zu, cut at %zu: %s (%d)", i, first, noted, end);
            free(noted);
        }
}

/* Lines and events of 1 MB pass; larger ones fail, in one piece or in many. */
static void test_sse_limits(void **state) {
    (void)state;
    static const struct {
        size_t line;
        int lines;
        enum sse_state end;
    } cases[] = {{LLM_LINE_MAX, 1, SSE_MORE},
                 {LLM_LINE_MAX + 1, 1, SSE_TOO_LONG},
                 {LLM_LINE_MAX / 2, 3, SSE_TOO_LONG}};
    for (size_t i = 0; i < LENGTH(cases); i++)
        for (size_t piece = 1000; piece <= 4 << 20; piece *= 4000) {
            struct text stream = {0}, noted = {0};
            for (int k = 0; k < cases[i].lines; k++) {
                text_add(&stream, "data:", 5);
                while (stream.n % (cases[i].line + 1) < cases[i].line) text_add(&stream, "x", 1);
                text_add(&stream, "\n", 1);
            }
            struct sse s = {0};
            enum sse_state end = SSE_MORE;
            for (size_t at = 0; at < stream.n && end == SSE_MORE; at += piece)
                end = sse_feed(&s, stream.s + at, stream.n - at < piece ? stream.n - at : piece,
                               note, &noted);
            assert_int_equal(end, cases[i].end);
            sse_free(&s);
            text_free(&stream);
            text_free(&noted);
        }
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8),       cmocka_unit_test(test_clean),
        cmocka_unit_test(test_escapes),    cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_think),      cmocka_unit_test(test_think_often),
        cmocka_unit_test(test_excerpt),    cmocka_unit_test(test_sse),
        cmocka_unit_test(test_sse_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
