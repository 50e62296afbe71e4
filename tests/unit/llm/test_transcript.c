/* test_transcript.c: what is recorded of a call, and that it reads back unchanged. */
#define _GNU_SOURCE
#include "transcript_file.h"
#include "base/hash.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>

static void test_line(void **state) {
    (void)state;
    record_stream(1, "code", "stop", 0.25);
    cJSON *line = json_read(path);
    char *sent = cJSON_PrintUnformatted(cJSON_GetObjectItem(line, "request")), sha[65];
    assert_string_equal(sent, request);
    text_sha256(request, strlen(request), sha);
    assert_string_equal(json_text(line, "request_sha256", ""), sha);
    assert_string_equal(json_text(line, "api", ""), "chat");
    assert_string_equal(json_text(line, "host", ""), "api.example");
    assert_string_equal(json_text(line, "outcome", ""), "complete");
    assert_string_equal(json_text(cJSON_GetObjectItem(line, "headers"), "x-request-id", ""),
                        "req-1");
    assert_true(json_number(line, "schema", 0) == 1 && json_number(line, "call", 0) == 1 &&
                json_number(line, "try", 0) == 1 && json_number(line, "status", 0) == 200 &&
                json_number(line, "seconds", 0) == 1.5 && json_number(line, "cost_usd", 0) == 0.25);
    assert_true(json_number(cJSON_GetObjectItem(line, "usage"), "input", 0) == 10);
    char *response = stream("code", "stop");
    assert_string_equal(json_text(line, "response", ""), response);
    free(response);
    free(sent);
    cJSON_Delete(line);
    assert_int_equal(lines(), 1);
}

/* The newest answer wins, whatever fails after it; calls and tries are counted. */
static void test_newest(void **state) {
    (void)state;
    char expected[65];
    assert_null(newest());
    record(1, request, busy, strlen(busy), false, 0);
    assert_null(newest());
    record_stream(2, "", "length", 0.25);
    record_stream(3, "first", "stop", 0.5);
    record_stream(1, "second", "length", 1);
    record(2, request, busy, strlen(busy), false, 0);
    struct llm_answer *a = newest();
    assert_int_equal(a->outcome, LLM_CUT);
    assert_string_equal(a->text, "second");
    assert_true(a->usage.known && a->usage.input == 10 && a->usage.output == 5);
    struct transcript t = transcript_read(path);
    text_sha256(request, strlen(request), expected);
    assert_string_equal(json_text(t.line, "request_sha256", ""), expected);
    llm_answer_free(a);
    assert_true(t.cost == 1.75 && t.seconds == 7.5);
    transcript_free(&t);
    assert_int_equal(lines(), 5);
    record_stream(1, "x", "stop", NAN);
    t = transcript_read(path);
    assert_true(isnan(t.cost) && t.seconds == 9);
    transcript_free(&t);
}

/* Two answers of one call are added up: the first spent its cap on reasoning. */
static void test_call_usage(void **state) {
    (void)state;
    record_stream(1, "old", "stop", 0);
    record_stream(1, "", "length", 0);
    record(2, request, busy, strlen(busy), false, 0);
    record_stream(3, "code", "stop", 0);
    struct llm_answer *a = newest();
    assert_int_equal(a->outcome, LLM_COMPLETE);
    assert_true(a->usage.known && a->usage.input == 20 && a->usage.output == 10);
    assert_int_equal(a->tries, 3);
    llm_answer_free(a);
}

static void test_bytes(void **state) {
    (void)state;
    char *response = stream("a\xFF"
                            "b",
                            "stop");
    record(1, request, response, strlen(response), true, 0);
    struct llm_answer *a = newest();
    assert_int_equal(a->outcome, LLM_INVALID);
    assert_string_equal(a->text, "a\xEF\xBF\xBD"
                                 "b");
    assert_non_null(strstr(a->why, "not UTF-8"));
    llm_answer_free(a);
    char *text = file_read(path, NULL);
    assert_null(strchr(text, '\xFF'));
    free(text);
    free(response);
}

static void test_key(void **state) {
    (void)state;
    char *response = stream("sk-test\\/key\\\"1", "stop");
    record(1, request, response, strlen(response), true, 0);
    free(response);
    record(2, request, key, strlen(key), false, 0);
    char *text = file_read(path, NULL);
    assert_null(strstr(text, "sk-test"));
    assert_non_null(strstr(text, "***"));
    free(text);
    struct llm_answer *a = newest(); /* still valid JSON */
    assert_string_equal(a->text, "***");
    llm_answer_free(a);
}

/* A torn line is skipped, and the next line replaces it. */
static void test_torn(void **state) {
    (void)state;
    record_stream(1, "whole", "stop", 0);
    record_stream(1, "torn", "stop", 0);
    long n;
    char *text = file_read(path, &n);
    for (long cut = 1; cut < 200; cut += 7) {
        FILE *f = fopen(path, "wb");
        assert_int_equal(fwrite(text, 1, (size_t)(n - cut), f), n - cut);
        fclose(f);
        struct llm_answer *a = newest();
        assert_string_equal(a->text, "whole");
        llm_answer_free(a);
    }
    record_stream(1, "next", "stop", 0);
    assert_int_equal(lines(), 2);
    struct llm_answer *a = newest();
    assert_string_equal(a->text, "next");
    llm_answer_free(a);
    free(text);
}

/* ---- Errors that end the program ---- */

static void read_it(void) {
    llm_answer_free(newest());
}

static void record_one(void) {
    record_stream(1, "more", "stop", 0);
}

static void record_on_full_disk(void) {
    struct rlimit small = {500, 500};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    record_one();
}

static void record_nowhere(void) {
    record_to("no/such/a.jsonl", 1, "{}", busy, strlen(busy), false, 0);
}

/* Replace the first `from` in the transcript by `to`. */
static void edit(const char *from, const char *to) {
    char *text = file_read(path, NULL), *at = strstr(text, from);
    assert_non_null(at);
    char *edited = text_format("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    file_replace(path, edited);
    free(edited);
    free(text);
}

static void test_edited(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *words;
    } edits[] = {
        {"Write ", "Wrote ", "a.jsonl:1: the request does not have the hash"},
        {"[DONE]", "[DUNE]", "a.jsonl:1: said to be complete"},
        {"\"outcome\":\"complete\"", "\"outcome\":\"good\"",
         "a.jsonl:1: not a line of a transcript"},
        {"\"schema\":1", "\"schema\":2", "a.jsonl:1: not a line"},
        {"\"response\"", "\"answer\"", "a.jsonl:1: not a line"},
        {"{\"schema\"", "{{\"schema\"", "a.jsonl:1: not a line"},
    };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        unlink(path);
        record_one();
        edit(edits[i].from, edits[i].to);
        ends(read_it, KP_INPUT, edits[i].words);
    }
}

static void test_refused(void **state) {
    (void)state;
    ends(record_on_full_disk, KP_IO,
         "a.jsonl: cannot write: File too large; what was there before");
    assert_int_equal(access(path, F_OK) == 0 ? lines() : 0, 0);
    ends(record_nowhere, KP_IO, "no/such/a.jsonl: cannot write: No such file");
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_line, fresh),       cmocka_unit_test_setup(test_newest, fresh),
        cmocka_unit_test_setup(test_call_usage, fresh), cmocka_unit_test_setup(test_bytes, fresh),
        cmocka_unit_test_setup(test_key, fresh),        cmocka_unit_test_setup(test_torn, fresh),
        cmocka_unit_test_setup(test_edited, fresh),     cmocka_unit_test_setup(test_refused, fresh),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
