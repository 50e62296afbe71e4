/* transcript_file.h: a transcript in a folder of its own, for its tests. */
#ifndef KP_TRANSCRIPT_FILE_H
#define KP_TRANSCRIPT_FILE_H

#include "ends.h"
#include "base/error.h"
#include "base/json.h"
#include "llm/wire.h"

#include <stdlib.h>

static char folder[] = "/tmp/kernelproof-XXXXXX";
static const char path[] = "a.jsonl", key[] = "sk-test/key\"1";

static inline int enter(void **state) {
    (void)state;
    setenv("OPENAI_API_KEY", key, 1);
    key_take("OPENAI_API_KEY");
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static inline int leave(void **state) {
    (void)state;
    unlink(path);
    return chdir("/") || rmdir(folder);
}

static inline int fresh(void **state) {
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
static inline char *stream(const char *text, const char *finish) {
    return text_format(
        "data: {\"choices\":[{\"delta\":{\"content\":\"%s\"},\"finish_reason\":\"%s\"}]}\n\n"
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}\n\n"
        "data: [DONE]\n\n",
        text, finish);
}

/* Record a try as billed_answer does. */
static inline void record_to(const char *file, int number, const char *body, const char *response,
                             size_t size, bool sse, double cost) {
    struct llm_answer *a = llm_read(LLM_CHAT, response, size, sse);
    struct http_reply reply = {.status = sse ? 200 : 503,
                               .headers = cJSON_CreateObject(),
                               .kind = sse ? BODY_STREAM : BODY_JSON,
                               .seconds = 1.5};
    cJSON_AddStringToObject(reply.headers, "x-request-id", "req-1");
    text_add(&reply.body, response, size);
    a->tries = number;
    transcript_hold(file);
    transcript_append(&config, body, &reply, a, cost);
    cJSON_Delete(reply.headers);
    text_free(&reply.body);
    llm_answer_free(a);
}

static inline void record(int number, const char *body, const char *response, size_t size, bool sse,
                          double cost) {
    record_to(path, number, body, response, size, sse, cost);
}

static inline void record_stream(int number, const char *text, const char *finish, double cost) {
    char *response = stream(text, finish);
    record(number, request, response, strlen(response), true, cost);
    free(response);
}

static const char busy[] = "{\"error\":{\"message\":\"busy\"}}";

static inline int lines(void) {
    char *text = file_read(path, NULL);
    int n = 0;
    for (char *s = text; *s; s++) n += *s == '\n';
    free(text);
    return n;
}

/* The newest answer; NULL if there is none. */
static inline struct llm_answer *newest(void) {
    struct transcript t = transcript_read(path);
    if (!t.answer) return NULL;
    const char *date = json_text(t.line, "date", "");
    assert_string_equal(json_text(t.line, "model", ""), "m");
    assert_int_equal(strlen(date), strlen("2026-11-21T10:00:00Z"));
    assert_int_equal(date[19], 'Z');
    cJSON_Delete(t.line);
    return t.answer;
}

#endif
