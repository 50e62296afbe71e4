/* test_llm.c: how the model client reads the answers of each API. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/error.h"
#include "llm/wire.h"

#define LENGTH(a) (sizeof(a) / sizeof *(a))

/* ---- Streams ---- */

#define CHUNK(delta, finish)                                                                    \
    "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"m-1\",\"choices\":[{" \
    "\"index\":0,\"delta\":" delta ",\"finish_reason\":" finish "}],\"usage\":null}\n\n"
#define CHAT_USAGE                                                                     \
    "data: {\"model\":\"m-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":3000000000," \
    "\"completion_tokens\":20,\"total_tokens\":3000000020,\"prompt_tokens_details\":{" \
    "\"cached_tokens\":40,\"cache_write_tokens\":5},\"completion_tokens_details\":{"   \
    "\"reasoning_tokens\":7},\"cost\":0.25}}\n\n"
#define DONE "data: [DONE]\n\n"

static const char chat_stream[] =
    ": keep-alive\n\n" CHUNK("{\"role\":\"assistant\",\"content\":\"\"}", "null")
        CHUNK("{\"reasoning_content\":\"hm\",\"reasoning\":\"hm\"}", "null")
            CHUNK("{\"reasoning\":\", yes\",\"content\":null}", "null")
                CHUNK("{\"content\":\"int \\u20ac\\ud83d\\ude00\"}", "null")
                    CHUNK("{\"content\":\" = \xE2\x82\xAC;\\n\"}", "null") CHUNK("{}", "\"stop\"")
                        CHAT_USAGE DONE "data: {\"error\":{\"message\":\"after the end\"}}\n\n";

static const char responses_stream[] =
    "event: response.created\ndata: "
    "{\"type\":\"response.created\",\"sequence_number\":0,\"response\":"
    "{\"id\":\"r\",\"status\":\"in_progress\",\"model\":\"m-1\",\"output\":[],\"usage\":null,"
    "\"error\":null}}\n\n"
    "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\","
    "\"output_index\":0,\"item\":{\"type\":\"reasoning\"}}\n\n"
    "event: response.reasoning_summary_text.delta\ndata: {\"type\":"
    "\"response.reasoning_summary_text.delta\",\"delta\":\"hm, yes\"}\n\n"
    "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\","
    "\"output_index\":1,\"delta\":\"only a part\"}\n\n"
    "event: response.from.the.future\ndata: {\"type\":\"response.from.the.future\"}\n\n"
    "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\","
    "\"status\":\"completed\",\"error\":null,\"incomplete_details\":null,\"model\":\"m-1\","
    "\"output\":["
    "{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"hm\"},"
    "{\"type\":\"summary_text\",\"text\":\", yes\"}]},"
    "{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"int \\u20ac\"},"
    "{\"type\":\"output_text\",\"text\":\"\\ud83d\\ude00 = "
    "\xE2\x82\xAC;\\n\"}]},{\"type\":\"web\"}],"
    "\"usage\":{\"input_tokens\":3000000000,\"input_tokens_details\":{\"cached_tokens\":40,"
    "\"cache_write_tokens\":5},\"output_tokens\":20,\"output_tokens_details\":{"
    "\"reasoning_tokens\":7},\"total_tokens\":3000000020,\"cost\":0.25}}}\n\n";

static const char anthropic_stream[] =
    "event: message_start\ndata: "
    "{\"type\":\"message_start\",\"message\":{\"model\":\"m-1\",\"usage\":{"
    "\"input_tokens\":2999999955,\"cache_creation_input_tokens\":5,\"cache_read_input_tokens\":40,"
    "\"cache_creation\":{\"ephemeral_5m_input_tokens\":5,\"ephemeral_1h_input_tokens\":0},"
    "\"output_tokens\":1,\"cost\":0.25}}}\n\n"
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,"
    "\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n"
    "event: ping\ndata: {\"type\":\"ping\"}\n\n"
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":"
    "{\"type\":\"thinking_delta\",\"thinking\":\"hm, yes\"}}\n\n"
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":"
    "{\"type\":\"signature_delta\",\"signature\":\"AAAA\"}}\n\n"
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,"
    "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":"
    "{\"type\":\"text_delta\",\"text\":\"int \\u20ac\\ud83d\"}}\n\n"
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":"
    "{\"type\":\"text_delta\",\"text\":\"\\ude00 = \xE2\x82\xAC;\\n\"}}\n\n"
    "event: unheard_of\ndata: {\"type\":\"unheard_of\"}\n\n"
    "event: message_delta\ndata: "
    "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\","
    "\"stop_sequence\":null},\"usage\":{\"output_tokens\":20,\"output_tokens_details\":{"
    "\"thinking_tokens\":7}}}\n\n"
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

static const struct {
    enum llm_api api;
    const char *stream;
} streams[] = {
    {LLM_CHAT, chat_stream}, {LLM_RESPONSES, responses_stream}, {LLM_ANTHROPIC, anthropic_stream}};

/* Whether the answer is the one that every stream here holds. */
static void is_whole(struct llm_answer *a, size_t at) {
    const struct llm_usage *u = &a->usage;
    if (a->outcome != LLM_COMPLETE)
        fail_msg("cut at %zu: %s: %s", at, llm_outcomes[a->outcome], a->why);
    assert_string_equal(a->text, "int \xE2\x82\xAC\xF0\x9F\x98\x80 = \xE2\x82\xAC;\n");
    assert_string_equal(a->why, "");
    assert_int_equal(a->exit_code, KP_OK);
    assert_int_equal(a->maybe_billed, 0);
    assert_true(u->known && u->input == 3e9 && u->cached == 40 && u->cache_write == 5 &&
                u->cache_write_1h == 0 && u->output == 20 && u->reasoning == 7 && u->cost == 0.25);
    llm_answer_free(a);
}

/* Read a stream in two pieces, as if from the network. */
static struct llm_answer *read_in_two(enum llm_api api, const char *stream, size_t n,
                                      size_t first) {
    struct llm_reader r;
    reader_start(&r, api);
    if (reader_feed(&r, stream, first)) reader_feed(&r, stream + first, n - first);
    return reader_end(&r);
}

static void test_streams(void **state) {
    (void)state;
    for (size_t i = 0; i < LENGTH(streams); i++) {
        size_t n = strlen(streams[i].stream);
        for (size_t first = 0; first <= n; first++)
            is_whole(read_in_two(streams[i].api, streams[i].stream, n, first), first);
        struct llm_reader r;
        reader_start(&r, streams[i].api);
        for (size_t k = 0; k < n && reader_feed(&r, streams[i].stream + k, 1); k++) continue;
        is_whole(reader_end(&r), n);
    }
}

static void test_line_ends(void **state) {
    (void)state;
    static const char *const ends[] = {"\r\n", "\r"};
    for (size_t i = 0; i < LENGTH(streams); i++)
        for (size_t k = 0; k < LENGTH(ends); k++) {
            struct text t = {0};
            for (const char *s = streams[i].stream; *s; s++)
                text_add(&t, *s == '\n' ? ends[k] : s, *s == '\n' ? strlen(ends[k]) : 1);
            is_whole(llm_read(streams[i].api, t.s, t.n, true), k);
            text_free(&t);
        }
}

/* A stream that breaks off before its marker is not an answer and is worth a retry. */
static void test_cut_streams(void **state) {
    (void)state;
    static const char *const marker[] = {"data: [DONE]", "}}}\n\n", "\"message_stop\"}\n\n"};
    for (size_t i = 0; i < LENGTH(streams); i++) {
        const char *stream = streams[i].stream, *end = strstr(stream, marker[i]);
        size_t whole = (size_t)(end - stream) + strlen(marker[i]) - (i > 0 ? 2 : 0);
        const char *begun = strstr(stream, i == 0 ? "\"choices\"" : "hm");
        for (size_t n = 0; n < whole; n++) {
            struct llm_reader r;
            reader_start(&r, streams[i].api);
            reader_feed(&r, stream, n);
            r.torn = true;
            struct llm_answer *a = reader_end(&r);
            if (a->outcome != LLM_FAILED || !a->again || *a->text || a->exit_code != KP_MACHINE)
                fail_msg("api %zu, cut at %zu of %zu: %s", i, n, whole, a->why);
            if (n < 30) assert_int_equal(a->maybe_billed, 0);
            if (n > (size_t)(begun - stream) + 200) assert_int_equal(a->maybe_billed, 1);
            llm_answer_free(a);
        }
    }
}

/* ---- Outcomes ---- */

#define EVENT(type, rest) "data: {\"type\":\"" type "\"" rest "}\n\n"
#define FINAL(type, rest)                                                                      \
    EVENT(type,                                                                                \
          ",\"response\":{\"model\":\"m\",\"usage\":{\"input_tokens\":1,\"output_tokens\":2}," \
          "\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\","          \
          "\"text\":\"code\"}]}]," rest "}")
#define SAID(text)                                                                          \
    EVENT("message_start", ",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":1}}") \
    EVENT("content_block_delta", ",\"delta\":{\"type\":\"text_delta\",\"text\":\"" text "\"}")
#define STOPPED(reason)                                                               \
    EVENT("message_delta", ",\"delta\":{" reason "},\"usage\":{\"output_tokens\":2}") \
    EVENT("message_stop", "")

static const struct outcome {
    enum llm_api api;
    const char *stream; /* JSON if it begins with a brace */
    enum llm_outcome outcome;
    bool again;
    const char *text, *why; /* why: a part of it */
} outcomes[] = {
    /* Chat */
    {LLM_CHAT, CHUNK("{\"content\":\"code\"}", "\"length\"") DONE, LLM_CUT, false, "code",
     "LLM_MAX_TOKENS"},
    {LLM_CHAT, CHUNK("{\"reasoning\":\"long\"}", "\"length\"") DONE, LLM_CUT, false, "",
     "went into reasoning"},
    {LLM_CHAT, CHUNK("{\"content\":\"<think>long\"}", "\"length\"") DONE, LLM_CUT, false, "",
     "went into reasoning"},
    {LLM_CHAT, CHUNK("{\"content\":\"<think>a</think>\\ncode\"}", "\"stop\"") DONE, LLM_COMPLETE,
     false, "code", ""},
    {LLM_CHAT, CHUNK("{\"content\":null}", "\"stop\"") DONE, LLM_EMPTY, false, "",
     "without a word"},
    {LLM_CHAT, CHUNK("{\"content\":\" \\n\"}", "\"stop\"") DONE, LLM_EMPTY, false, " \n",
     "without a word"},
    {LLM_CHAT, CHUNK("{\"content\":\"co\"}", "\"content_filter\"") DONE, LLM_REFUSED, false, "co",
     "provider refused"},
    {LLM_CHAT,
     CHUNK("{\"refusal\":\"I \"}", "null") CHUNK("{\"refusal\":\"won't\"}", "\"stop\"") DONE,
     LLM_REFUSED, false, "", "model refused: I won't"},
    {LLM_CHAT, CHUNK("{\"content\":\"code\"}", "\"tool_calls\"") DONE, LLM_CUT, false, "code",
     "\"tool_calls\""},
    {LLM_CHAT, CHUNK("{\"content\":\"code\"}", "null") DONE, LLM_CUT, false, "code",
     "no stated reason"},
    {LLM_CHAT, CHUNK("{\"content\":\"code\"}", "\"abort\"") DONE, LLM_FAILED, true, "", "gave up"},
    {LLM_CHAT, DONE, LLM_FAILED, true, "", "gave up"},
    {LLM_CHAT, CHUNK("{\"content\":\"code\"}", "\"stop\""), LLM_COMPLETE, false, "code", ""},
    {LLM_CHAT, CHUNK("{\"content\":\"code\"}", "null"), LLM_FAILED, true, "", "before"},
    {LLM_CHAT, CHUNK("{\"content\":\"code\"}", "\"eos\""), LLM_COMPLETE, false, "code", ""},
    {LLM_CHAT, CHUNK("{\"content\":\"code\"}", "\"eos_token\""), LLM_COMPLETE, false, "code", ""},
    {LLM_CHAT, CHUNK("{\"content\":\"code\"}", "\"STOP\""), LLM_COMPLETE, false, "code", ""},
    {LLM_CHAT, CHUNK("{\"content\":\"code\"}", "\"insufficient_system_resource\""), LLM_FAILED,
     true, "", "gave up"},
    {LLM_CHAT, "", LLM_FAILED, true, "", "ended before"},
    {LLM_CHAT, CHUNK("{\"content\":\"a\\u0000b\"}", "\"stop\"") DONE, LLM_INVALID, false,
     "a\xEF\xBF\xBD"
     "b",
     "a NUL"},
    {LLM_CHAT, CHUNK("{\"reasoning\":\"a\\u0000b\",\"content\":\"code\"}", "\"stop\"") DONE,
     LLM_COMPLETE, false, "code", ""},
    {LLM_CHAT, CHUNK("{\"content\":\"\\ud800\"}", "\"stop\"") DONE, LLM_INVALID, false,
     "\xEF\xBF\xBD", "surrogate"},
    {LLM_CHAT, CHUNK("{\"content\":\"a\xFF\"}", "\"stop\"") DONE, LLM_INVALID, false,
     "a\xEF\xBF\xBD", "UTF-8"},
    {LLM_CHAT, CHUNK("{\"content\":\"a\\u0000b\"}", "\"length\"") DONE, LLM_CUT, false,
     "a\xEF\xBF\xBD"
     "b",
     "cap"},
    {LLM_CHAT,
     CHUNK("{\"content\":\"code\"}",
           "null") "data: {\"error\":{\"message\":\"Busy\",\"type\":\"overloaded_error\"}}\n\n",
     LLM_FAILED, true, "", "overloaded_error: Busy"},
    {LLM_CHAT,
     CHUNK("{\"content\":\"code\"}",
           "\"stop\"") "data: {\"error\":{\"message\":\"x\",\"code\":400}}\n\n" DONE,
     LLM_FAILED, false, "", "check"},
    {LLM_CHAT, "data: {\"error\":{\"message\":\"x\",\"code\":\"insufficient_quota\"}}\n\n",
     LLM_FAILED, false, "", "add credit"},
    {LLM_CHAT,
     "data: "
     "{\"error\":null,\"choices\":[{\"delta\":{\"content\":\"c\"},\"finish_reason\":\"stop\"}]}"
     "\n\n" DONE,
     LLM_COMPLETE, false, "c", ""},
    {LLM_CHAT,
     "data: "
     "{\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"text\":\"b\"}]},"
     "\"finish_reason\":\"stop\"}]}\n\n" DONE,
     LLM_COMPLETE, false, "ab", ""},
    {LLM_CHAT, CHUNK("{\"content\":\"code\"}", "\"stop\"") "data: {\"choices\":\n\n" DONE,
     LLM_FAILED, true, "", "not JSON"},
    {LLM_CHAT, CHUNK("{\"content\":\"code\"}", "\"stop\"") "data:\n\ndata: [DONE]", LLM_COMPLETE,
     false, "code", ""},
    {LLM_CHAT,
     "{\"model\":\"m\",\"choices\":[{\"index\":0,\"message\":{\"content\":\"code\"},\"finish_"
     "reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}",
     LLM_COMPLETE, false, "code", ""},
    {LLM_CHAT, "{\"choices\":[{\"message\":{\"content\":\"code\"},\"finish_reason\":\"length\"}]}",
     LLM_CUT, false, "code", "cap"},
    {LLM_CHAT, "{\"choices\":[{\"message\":{\"content\":\"code\"}}]}", LLM_FAILED, false, "",
     "not of this API"},
    {LLM_CHAT, "{\"choices\":[{\"message\":", LLM_FAILED, true, "", "breaks off"},
    {LLM_CHAT, "{}", LLM_FAILED, false, "", "not of this API"},
    {LLM_CHAT, "{\"error\":\"slow down\"}", LLM_FAILED, true, "", "slow down"},
    /* Responses */
    {LLM_RESPONSES, FINAL("response.completed", "\"status\":\"completed\""), LLM_COMPLETE, false,
     "code", ""},
    {LLM_RESPONSES,
     FINAL("response.incomplete",
           "\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}"),
     LLM_CUT, false, "code", "cap"},
    {LLM_RESPONSES,
     FINAL("response.incomplete",
           "\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"content_filter\"}"),
     LLM_REFUSED, false, "code", "refused"},
    {LLM_RESPONSES, FINAL("response.incomplete", "\"status\":\"incomplete\""), LLM_CUT, false,
     "code", "incomplete"},
    {LLM_RESPONSES,
     EVENT("response.failed", ",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_"
                              "error\",\"message\":\"Oops\"}}"),
     LLM_FAILED, true, "", "server_error: Oops"},
    {LLM_RESPONSES,
     EVENT("response.failed", ",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"invalid_"
                              "prompt\",\"message\":\"Bad\"}}"),
     LLM_FAILED, false, "", "invalid_prompt: Bad"},
    {LLM_RESPONSES,
     EVENT("response.failed", ",\"response\":{\"status\":\"failed\",\"error\":null}"), LLM_FAILED,
     true, "", "gave up"},
    {LLM_RESPONSES,
     EVENT("error", ",\"code\":\"rate_limit_exceeded\",\"message\":\"Slow\",\"param\":null"),
     LLM_FAILED, true, "", "rate_limit_exceeded: Slow"},
    {LLM_RESPONSES, EVENT("response.output_text.delta", ",\"delta\":\"code\"") DONE, LLM_FAILED,
     true, "", "ended before"},
    {LLM_RESPONSES,
     EVENT("response.output_text.delta", ",\"output_index\":0,\"delta\":\"a\"")
         EVENT("response.output_text.delta", ",\"output_index\":1,\"delta\":\"b\"")
             EVENT("response.completed", ",\"response\":{\"status\":\"completed\",\"output\":[]}"),
     LLM_COMPLETE, false, "a\nb", ""},
    {LLM_RESPONSES,
     EVENT("response.completed",
           ",\"response\":{\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":["
           "{\"type\":\"refusal\",\"refusal\":\"No.\"}]}]}"),
     LLM_REFUSED, false, "", "model refused: No."},
    {LLM_RESPONSES,
     EVENT("response.completed", ",\"response\":{\"status\":\"completed\",\"output\":[]}"),
     LLM_EMPTY, false, "", "word"},
    {LLM_RESPONSES,
     "event: response.completed\ndata: "
     "{\"response\":{\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":[{"
     "\"type\":\"output_text\",\"text\":\"one\"}]},{\"type\":\"message\",\"content\":[{\"type\":"
     "\"output_text\",\"text\":\"```\"}]}]}}\n\n",
     LLM_COMPLETE, false, "one\n```", ""},
    {LLM_RESPONSES,
     "{\"object\":\"response\",\"status\":\"completed\",\"error\":null,\"output\":[{\"type\":"
     "\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"code\"}]}]}",
     LLM_COMPLETE, false, "code", ""},
    {LLM_RESPONSES, "{\"object\":\"response\",\"status\":\"queued\"}", LLM_FAILED, false, "",
     "not of this API"},
    /* Anthropic */
    {LLM_ANTHROPIC, SAID("code") STOPPED("\"stop_reason\":\"end_turn\""), LLM_COMPLETE, false,
     "code", ""},
    {LLM_ANTHROPIC, SAID("code") STOPPED("\"stop_reason\":\"max_tokens\""), LLM_CUT, false, "code",
     "cap"},
    {LLM_ANTHROPIC, SAID("") STOPPED("\"stop_reason\":\"max_tokens\""), LLM_CUT, false, "",
     "reasoning"},
    {LLM_ANTHROPIC, SAID("code") STOPPED("\"stop_reason\":\"model_context_window_exceeded\""),
     LLM_CUT, false, "code", "context"},
    {LLM_ANTHROPIC,
     SAID("code") STOPPED("\"stop_reason\":\"refusal\",\"stop_details\":{\"category\":\"frontier_"
                          "llm\",\"explanation\":\"No.\"}"),
     LLM_REFUSED, false, "code", "model refused: No."},
    {LLM_ANTHROPIC, SAID("code") STOPPED("\"stop_reason\":\"pause_turn\""), LLM_CUT, false, "code",
     "pause_turn"},
    {LLM_ANTHROPIC, SAID("") STOPPED("\"stop_reason\":\"end_turn\""), LLM_EMPTY, false, "", "word"},
    {LLM_ANTHROPIC, SAID("x") EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"end_turn\"}"),
     LLM_FAILED, true, "", "ended before"},
    {LLM_ANTHROPIC,
     SAID("x") "event: error\n" EVENT(
         "error", ",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Busy\"}"),
     LLM_FAILED, true, "", "overloaded_error: Busy"},
    {LLM_ANTHROPIC,
     EVENT("error", ",\"error\":{\"type\":\"authentication_error\",\"message\":\"Who?\"}"),
     LLM_FAILED, false, "", "check the key"},
    {LLM_ANTHROPIC,
     "{\"type\":\"message\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\"},{\"type\":"
     "\"text\",\"text\":\"code\"}],\"stop_reason\":\"end_turn\",\"usage\":{\"input_tokens\":1,"
     "\"output_tokens\":2}}",
     LLM_COMPLETE, false, "code", ""},
    {LLM_ANTHROPIC, "{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"x\"}}",
     LLM_FAILED, true, "", "api_error"},
};

static void test_outcomes(void **state) {
    (void)state;
    for (size_t i = 0; i < LENGTH(outcomes); i++) {
        const struct outcome *o = &outcomes[i];
        struct llm_reader r;
        reader_start(&r, o->api);
        if (*o->stream == '{')
            reader_whole(&r, o->stream, strlen(o->stream));
        else
            reader_feed(&r, o->stream, strlen(o->stream));
        struct llm_answer *a = reader_end(&r);
        if (a->outcome != o->outcome || a->again != o->again || strcmp(a->text, o->text) != 0 ||
            !strstr(a->why, o->why) || (*o->why == 0) != (*a->why == 0))
            fail_msg("%s\n%s, again %d, '%s', why '%s'", o->stream, llm_outcomes[a->outcome],
                     a->again, a->text, a->why);
        llm_answer_free(a);
    }
}

/* ---- Usage ---- */

/* A later statement of the usage replaces an earlier one. */
static void test_usage(void **state) {
    (void)state;
    static const char parts[] =
        SAID("x") EVENT("message_delta", ",\"delta\":{},\"usage\":{\"output_tokens\":5}") EVENT(
            "message_delta",
            ",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"input_tokens\":10,"
            "\"cache_creation_input_tokens\":7,\"cache_read_input_tokens\":100,\"output_tokens\":9,"
            "\"cache_creation\":{\"ephemeral_1h_input_tokens\":3}}") EVENT("message_stop", "");
    struct llm_answer *a = llm_read(LLM_ANTHROPIC, parts, strlen(parts), true);
    assert_true(a->usage.known && a->usage.input == 117 && a->usage.cached == 100 &&
                a->usage.cache_write == 4 && a->usage.cache_write_1h == 3 && a->usage.output == 9);
    assert_true(isnan(a->usage.cost));
    llm_answer_free(a);
}

/* Usage is known only once the server has stated both final counts. */
static void test_usage_unknown(void **state) {
    (void)state;
    static const struct {
        enum llm_api api;
        const char *stream;
    } unknown[] = {
        {LLM_CHAT, CHUNK("{\"content\":\"c\"}", "\"stop\"") DONE},
        {LLM_CHAT,
         CHUNK("{\"content\":\"c\"}",
               "\"stop\"") "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5}}\n\n" DONE},
        {LLM_RESPONSES,
         EVENT("response.completed",
               ",\"response\":{\"status\":\"completed\",\"usage\":null,\"output\":[]}")},
        {LLM_ANTHROPIC,
         SAID("x") EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"end_turn\"}")
             EVENT("message_stop", "")},
        {LLM_ANTHROPIC, SAID("x")},
        /* running counts */
        {LLM_CHAT, CHUNK("{\"content\":\"c\"}", "null") CHAT_USAGE},
        {LLM_CHAT, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"c\"},"
                   "\"finish_reason\":null}],\"usage\":{\"prompt_tokens\":10,"
                   "\"completion_tokens\":1}}\n\n"},
        {LLM_ANTHROPIC,
         SAID("x") EVENT("message_delta",
                         ",\"delta\":{},\"usage\":{\"input_tokens\":10,\"output_tokens\":5}")},
    };
    for (size_t i = 0; i < LENGTH(unknown); i++) {
        struct llm_answer *a =
            llm_read(unknown[i].api, unknown[i].stream, strlen(unknown[i].stream), true);
        assert_false(a->usage.known);
        llm_answer_free(a);
    }
}

/* Reasoning that is only in the total, and impossible counts. */
static void test_usage_odd(void **state) {
    (void)state;
    static const struct {
        const char *usage;
        bool known;
        double output;
    } odd[] = {
        {"\"prompt_tokens\":10,\"completion_tokens\":20,\"total_tokens\":530", true, 520},
        {"\"prompt_tokens\":10,\"completion_tokens\":20,\"total_tokens\":30", true, 20},
        {"\"prompt_tokens\":10,\"completion_tokens\":20,\"total_tokens\":0", true, 20},
        {"\"prompt_tokens\":-10,\"completion_tokens\":20", false, 0},
        {"\"prompt_tokens\":0,\"completion_tokens\":0", false, 0},
        {"\"prompt_tokens\":10,\"completion_tokens\":1e999", false, 0},
        {"\"prompt_tokens\":10,\"completion_tokens\":20,\"cost\":-1", true, 20},
    };
    for (size_t i = 0; i < LENGTH(odd); i++) {
        char stream[1024];
        snprintf(stream, sizeof stream, "%sdata: {\"choices\":[],\"usage\":{%s}}\n\n%s",
                 CHUNK("{\"content\":\"c\"}", "\"stop\""), odd[i].usage, DONE);
        struct llm_answer *a = llm_read(LLM_CHAT, stream, strlen(stream), true);
        assert_int_equal(a->outcome, LLM_COMPLETE);
        assert_int_equal(a->usage.known, odd[i].known);
        if (a->usage.known) assert_true(a->usage.output == odd[i].output);
        assert_true(isnan(a->usage.cost));
        llm_answer_free(a);
    }
}

/* An echoed key is in nothing that is read from an answer, and in no error. */
static void test_echo(void **state) {
    (void)state;
    static const char echo[] = CHUNK("{\"content\":\"sk-\\u0074est-key-1\"}", "\"stop\"") DONE;
    static const char error[] = "{\"error\":{\"message\":\"Incorrect key: sk-test-key-1.\"}}";
    setenv("OPENAI_API_KEY", "sk-test-key-1", 1);
    key_take("OPENAI_API_KEY");
    struct llm_answer *a = llm_read(LLM_CHAT, echo, strlen(echo), true);
    assert_string_equal(a->text, "***");
    llm_answer_free(a);
    a = llm_read(LLM_CHAT, error, strlen(error), false);
    assert_non_null(strstr(a->why, "Incorrect key: ***."));
    assert_null(strstr(a->why, "sk-test"));
    llm_answer_free(a);
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams),     cmocka_unit_test(test_line_ends),
        cmocka_unit_test(test_cut_streams), cmocka_unit_test(test_outcomes),
        cmocka_unit_test(test_usage),       cmocka_unit_test(test_usage_unknown),
        cmocka_unit_test(test_usage_odd),   cmocka_unit_test(test_echo),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
