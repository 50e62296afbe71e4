/* test_transcript.c: what is recorded of a call, and that it reads back unchanged. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "ends.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "llm/wire.h"
#include "llm/transcript.h"

static char folder[] = "/tmp/kernelproof-XXXXXX";
static const char path[] = "a.jsonl", key[] = "sk-test/key\"1";

static int enter(void **state) {
    (void)state;
    setenv("OPENAI_API_KEY", key, 1);
    key_take("OPENAI_API_KEY");
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave(void **state) {
    (void)state;
    unlink(path);
    return chdir("/") || rmdir(folder);
}

static int fresh(void **state) {
    (void)state;
    unlink(path);
    return 0;
}

static const struct llm_config config = {
    .api = LLM_CHAT, .model = "m", .host = "api.example", .key_env = "OPENAI_API_KEY"};
static const char request[] =
    "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":"
    "\"Write \\\"it\\\".\\n\xE2\x82\xAC\"}],\"max_completion_tokens\":100}";

/* A Chat Completions stream that says `text`, has this finish reason, and used 10 + 5 tokens. */
static char *stream(const char *text, const char *finish) {
    return text_format(
        "data: {\"choices\":[{\"delta\":{\"content\":\"%s\"},\"finish_reason\":\"%s\"}]}\n\n"
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}\n\n"
        "data: [DONE]\n\n",
        text, finish);
}

/* Record a try as llm_call would hand it over. */
static void keep(int number, const char *body, const char *response, size_t size, bool sse,
                 double cost) {
    struct llm_answer *a = llm_read(LLM_CHAT, response, size, sse);
    cJSON *headers = cJSON_CreateObject();
    cJSON_AddStringToObject(headers, "x-request-id", "req-1");
    struct llm_try t = {.number = number,
                        .request = body,
                        .status = sse ? 200 : 503,
                        .headers = headers,
                        .response = response,
                        .response_size = size,
                        .sse = sse,
                        .error = "",
                        .seconds = 1.5,
                        .answer = a};
    transcript_append(path, &config, &t, cost);
    cJSON_Delete(headers);
    llm_answer_free(a);
}

static void keep_stream(int number, const char *text, const char *finish, double cost) {
    char *response = stream(text, finish);
    keep(number, request, response, strlen(response), true, cost);
    free(response);
}

static const char busy[] = "{\"error\":{\"message\":\"busy\"}}";

static int lines(void) {
    char *text = file_read(path, NULL);
    int n = 0;
    for (char *s = text; *s; s++) n += *s == '\n';
    free(text);
    return n;
}

/* The newest answer: its text, or NULL. */
static struct llm_answer *newest(char sha[65]) {
    char date[32], model[128];
    struct llm_answer *a = transcript_answer(path, sha, date, model);
    if (!a) return NULL;
    assert_string_equal(model, "m");
    assert_int_equal(strlen(date), strlen("2026-11-21T10:00:00Z"));
    assert_int_equal(date[19], 'Z');
    return a;
}

static void test_line(void **state) {
    (void)state;
    keep_stream(1, "code", "stop", 0.25);
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
    char sha[65], expected[65];
    double cost, seconds;
    assert_null(newest(sha));
    keep(1, request, busy, strlen(busy), false, 0);
    assert_null(newest(sha));
    keep_stream(2, "", "length", 0.25);
    keep_stream(3, "first", "stop", 0.5);
    keep_stream(1, "second", "length", 1);
    keep(2, request, busy, strlen(busy), false, 0);
    struct llm_answer *a = newest(sha);
    assert_int_equal(a->outcome, LLM_CUT);
    assert_string_equal(a->text, "second");
    assert_true(a->usage.known && a->usage.input == 10 && a->usage.output == 5);
    text_sha256(request, strlen(request), expected);
    assert_string_equal(sha, expected);
    llm_answer_free(a);
    transcript_sums(path, &cost, &seconds);
    assert_true(cost == 1.75 && seconds == 7.5);
    assert_int_equal(lines(), 5);
    keep_stream(1, "x", "stop", NAN);
    transcript_sums(path, &cost, &seconds);
    assert_true(isnan(cost) && seconds == 9);
}

/* Two answers of one call are added up: the first spent its cap on reasoning. */
static void test_call_usage(void **state) {
    (void)state;
    char sha[65];
    keep_stream(1, "old", "stop", 0);
    keep_stream(1, "", "length", 0);
    keep(2, request, busy, strlen(busy), false, 0);
    keep_stream(3, "code", "stop", 0);
    struct llm_answer *a = newest(sha);
    assert_int_equal(a->outcome, LLM_COMPLETE);
    assert_true(a->usage.known && a->usage.input == 20 && a->usage.output == 10);
    assert_int_equal(a->tries, 3);
    llm_answer_free(a);
}

static void test_bytes(void **state) {
    (void)state;
    char sha[65], *response = stream("a\xFF"
                                     "b",
                                     "stop");
    for (size_t pad = 0; pad < 3; pad++) { /* every base64 ending */
        char *padded = text_format("%.*s%s", (int)pad, "\n\n\n", response);
        size_t n = strlen(padded);
        keep(1, request, padded, n, true, 0);
        struct llm_answer *a = newest(sha);
        assert_int_equal(a->outcome, LLM_INVALID);
        assert_string_equal(a->text, "a\xEF\xBF\xBD"
                                     "b");
        llm_answer_free(a);
        free(padded);
    }
    char *text = file_read(path, NULL);
    assert_non_null(strstr(text, "response_base64"));
    assert_null(strchr(text, '\xFF'));
    free(text);
    free(response);
}

static void test_key(void **state) {
    (void)state;
    char *response = stream("sk-test\\/key\\\"1", "stop"), sha[65];
    keep(1, request, response, strlen(response), true, 0);
    free(response);
    keep(2, request, key, strlen(key), false, 0);
    char *text = file_read(path, NULL);
    assert_null(strstr(text, "sk-test"));
    assert_non_null(strstr(text, "***"));
    free(text);
    struct llm_answer *a = newest(sha); /* still valid JSON */
    assert_string_equal(a->text, "***");
    llm_answer_free(a);
}

static void test_asked(void **state) {
    (void)state;
    assert_false(transcript_asked(path, "Write \"it\".\n\xE2\x82\xAC"));
    keep_stream(1, "x", "stop", 0);
    assert_true(transcript_asked(path, "Write \"it\".\n\xE2\x82\xAC"));
    assert_false(transcript_asked(path, "Write \"it\".\n"));
    assert_false(transcript_asked(path, "Write it."));
}

/* A torn line is skipped, and the next line replaces it. */
static void test_torn(void **state) {
    (void)state;
    char sha[65];
    keep_stream(1, "whole", "stop", 0);
    keep_stream(1, "torn", "stop", 0);
    long n;
    char *text = file_read(path, &n);
    for (long cut = 1; cut < 200; cut += 7) {
        FILE *f = fopen(path, "wb");
        assert_int_equal(fwrite(text, 1, (size_t)(n - cut), f), n - cut);
        fclose(f);
        struct llm_answer *a = newest(sha);
        assert_string_equal(a->text, "whole");
        llm_answer_free(a);
    }
    keep_stream(1, "next", "stop", 0);
    assert_int_equal(lines(), 2);
    struct llm_answer *a = newest(sha);
    assert_string_equal(a->text, "next");
    llm_answer_free(a);
    free(text);
}

/* ---- Errors that end the program ---- */

static void read_it(void) {
    char sha[65];
    llm_answer_free(newest(sha));
}

static void keep_one(void) {
    keep_stream(1, "more", "stop", 0);
}

static void keep_with_key(void) {
    keep(1, "{\"x\":\"sk-test/key\\\"1\"}", busy, strlen(busy), false, 0);
}

static void keep_on_full_disk(void) {
    struct rlimit small = {500, 500};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    keep_one();
}

static void keep_nowhere(void) {
    struct llm_answer *a = llm_read(LLM_CHAT, busy, strlen(busy), false);
    struct llm_try t = {.number = 1, .request = "{}", .response = "", .error = "", .answer = a};
    transcript_append("no/such/a.jsonl", &config, &t, 0);
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
        keep_one();
        edit(edits[i].from, edits[i].to);
        ends(read_it, KP_INPUT, edits[i].words);
    }
}

static void test_refused(void **state) {
    (void)state;
    ends(keep_with_key, KP_USAGE, "the prompt holds the key in OPENAI_API_KEY");
    assert_int_equal(access(path, F_OK), -1);
    ends(keep_on_full_disk, KP_IO, "a.jsonl: cannot write: File too large; what was there before");
    assert_int_equal(access(path, F_OK) == 0 ? lines() : 0, 0);
    ends(keep_nowhere, KP_IO, "no/such/a.jsonl: cannot write: No such file");
}

static void hold(void) {
    transcript_hold(path);
}

static void hold_and_fail(void) {
    transcript_hold(path);
    die(KP_BUDGET, "no more");
}

static void hold_nowhere(void) {
    transcript_hold("no/such/a.jsonl");
}

/* A transcript that cannot be written fails before the request; two processes that want one take
 * turns. */
static void test_hold(void **state) {
    (void)state;
    ends(hold_nowhere, KP_IO, "no/such/a.jsonl: cannot write: No such file");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs("notes\n", f) >= 0 && fclose(f) == 0);
    ends(hold, KP_INPUT, "a.jsonl:1: not a line of a transcript");
    unlink(path);
    ends(hold_and_fail, KP_BUDGET, "no more");
    assert_int_equal(access(path, F_OK), -1); /* no empty file remains */
    int ready[2];
    char c;
    assert_int_equal(pipe(ready), 0);
    pid_t first = fork();
    if (first == 0) {
        hold();
        if (write(ready[1], "x", 1) != 1) _exit(1);
        usleep(300000);
        keep_stream(1, "first", "stop", 0);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    pid_t second = fork();
    if (second == 0) {
        char sha[65];
        if (!freopen("/dev/null", "w", stderr)) _exit(2); /* hide the message that it waits */
        hold();
        struct llm_answer *a = newest(sha);
        _exit(a && !strcmp(a->text, "first") ? 0 : 1);
    }
    int status = 1;
    waitpid(second, &status, 0);
    assert_int_equal(status, 0);
    waitpid(first, &status, 0);
    assert_int_equal(status, 0);
    close(ready[0]);
    close(ready[1]);
}

/* ---- Disk space ---- */

enum { NEEDED = 100 * 512 + 1000 + (64 << 10) }; /* what reserve() asks for */

static bool unsupported; /* the file system cannot reserve */
static off_t from, reserved;

/* Replaces the C library's. */
int fallocate(int fd, int mode, off_t offset, off_t bytes) {
    from = offset;
    reserved = bytes;
    if (unsupported) errno = EOPNOTSUPP;
    return unsupported ? -1 : (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}

static struct stat now(void) {
    struct stat s = {0};
    if (stat(path, &s)) s.st_size = -1;
    return s;
}

static void reserve(void) {
    transcript_hold(path);
    transcript_reserve(1000, 100);
}

static void reserve_and_keep(void) {
    reserve();
    off_t end = from;
    if (!unsupported && (now().st_size != end || reserved != NEEDED)) die(KP_BUG, "not reserved");
    if (now().st_blocks * 512 < end + NEEDED) die(KP_BUG, "no blocks are taken");
    keep_stream(1, "code", "stop", 0);
    if (now().st_blocks * 512 > now().st_size + (32 << 10)) die(KP_BUG, "room is left");
}

static void reserve_and_fail(void) {
    reserve();
    die(KP_BUDGET, "no more");
}

static void reserve_beyond(void) {
    struct rlimit small = {(rlim_t)now().st_size + NEEDED - 1, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &small);
    reserve();
}

static void reserve_unheld(void) {
    transcript_reserve(1000, 100);
}

static void reserve_most(void) {
    int before = lines();
    transcript_hold(path);
    unsupported = true;
    transcript_reserve(0, 1e8);
    if (reserved > 24 << 20) die(KP_BUG, "%lld bytes", (long long)reserved);
    keep_stream(1, "code", "stop", 0);
    if (lines() != before + 1 || now().st_size > 8192) die(KP_BUG, "blanks are left");
}

/* Reserve, and get killed. */
static void reserve_and_vanish(void) {
    pid_t pid = fork();
    int status;
    if (pid == 0) {
        reserve();
        raise(SIGKILL);
    }
    waitpid(pid, &status, 0);
    assert_true(WIFSIGNALED(status));
    assert_true(now().st_blocks * 512 >= NEEDED);
}

/* Space is reserved before a try and released after it: with and without lines, whether or not
 * the file system can reserve, and however the process ends. */
static void test_room(void **state) {
    (void)state;
    char sha[65];
    for (int i = 0; i < 2; i++) {
        unsupported = i;
        unlink(path);
        ends(reserve_and_fail, KP_BUDGET, "no more");
        assert_int_equal(access(path, F_OK), -1);
        reserve_and_vanish();
        assert_null(newest(sha));
        ends(reserve_and_keep, 0, "");
        assert_int_equal(lines(), 1);
        off_t one = now().st_size;
        reserve_and_vanish();
        llm_answer_free(newest(sha));
        ends(reserve_and_keep, 0, "");
        assert_int_equal(lines(), 2);
        assert_int_equal(now().st_size, 2 * one);
        ends(reserve_and_fail, KP_BUDGET, "no more");
        assert_int_equal(now().st_size, 2 * one);
        assert_true(now().st_blocks * 512 < NEEDED);
    }
    unsupported = false;
    reserve_and_vanish();
    ends(hold, 0, "");
    ends(hold_and_fail, KP_BUDGET, "no more");
    assert_true(now().st_blocks * 512 < NEEDED); /* what another process had reserved */
    ends(reserve_most, 0, "");
    ends(reserve_unheld, KP_BUG, "nobody holds");
}

static void test_no_room(void **state) {
    (void)state;
    static const char words[] = "a.jsonl: no room for an answer: 117736 bytes are needed: File too "
                                "large: free some on that disk, or lower LLM_MAX_TOKENS; no "
                                "request is sent";
    ends(reserve_beyond, KP_IO, words);
    assert_int_equal(access(path, F_OK), -1);
    keep_stream(1, "code", "stop", 0);
    off_t before = now().st_size;
    ends(reserve_beyond, KP_IO, words);
    assert_int_equal(now().st_size, before);
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_line, fresh),       cmocka_unit_test_setup(test_newest, fresh),
        cmocka_unit_test_setup(test_call_usage, fresh), cmocka_unit_test_setup(test_bytes, fresh),
        cmocka_unit_test_setup(test_key, fresh),        cmocka_unit_test_setup(test_asked, fresh),
        cmocka_unit_test_setup(test_torn, fresh),       cmocka_unit_test_setup(test_edited, fresh),
        cmocka_unit_test_setup(test_refused, fresh),    cmocka_unit_test_setup(test_hold, fresh),
        cmocka_unit_test_setup(test_room, fresh),       cmocka_unit_test_setup(test_no_room, fresh),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
