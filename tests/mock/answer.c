/* answer.c: the three stream formats as their vendors document them; see mock.h.  Tests of other
 * servers script their events one by one. */
#define _GNU_SOURCE
#include "mock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct speech { /* one answer being sent */
    const struct rule *rule;
    const char *text;
    size_t size;
    char model[128];
    double input, cached, output, thought;
    bool wants_usage;
    int sequence;
    emitter *emit;
    void *context;
};

enum api answer_api(const char *path) {
    if (strstr(path, "/chat/completions")) return CHAT;
    if (strstr(path, "/responses")) return RESPONSES;
    return strstr(path, "/messages") ? ANTHROPIC : NO_API;
}

/* Whether the body has a member of this name.  Quotes inside JSON strings are escaped, so
 * `"name":` only matches keys. */
static bool has(const char *body, const char *name) {
    char key[64];
    snprintf(key, sizeof key, "\"%s\":", name);
    return strstr(body, key) != NULL;
}

const char *answer_objection(enum api api, const char *headers, const char *body) {
    if (!has(body, "model")) return "model: field required";
    if (!strcasestr(headers, "content-type: application/json"))
        return "content-type: application/json expected";
    switch (api) {
    case CHAT:
        if (has(body, "max_tokens") && has(body, "max_completion_tokens"))
            return "max_tokens and max_completion_tokens exclude each other";
        return has(body, "messages") ? NULL : "messages: field required";
    case RESPONSES:
        if (has(body, "messages") || has(body, "max_tokens") || has(body, "seed"))
            return "unknown parameter";
        return has(body, "input") ? NULL : "input: field required";
    case ANTHROPIC:
        if (!strcasestr(headers, "anthropic-version:"))
            return "anthropic-version: header is required";
        if (strstr(body, "\"role\":\"system\"")) return "messages: unexpected role \"system\"";
        if (has(body, "seed")) return "seed: extra inputs are not permitted";
        return !has(body, "max_tokens") ? "max_tokens: field required"
               : !has(body, "messages") ? "messages: field required"
                                        : NULL;
    default: return "no such API";
    }
}

bool answer_streams(const struct rule *r, const char *body) {
    return !r->plain && strstr(body, "\"stream\":true");
}

static bool is(const struct speech *s, const char *finish) {
    return !strcmp(s->rule->finish, finish);
}

/* Emit an event; `name` NULL: without a name.  Empties `json`. */
static bool say(struct speech *s, const char *name, struct text *json) {
    struct text event = {0};
    if (name) text_printf(&event, "event: %s\n", name);
    text_printf(&event, "data: %s\n\n", json->p);
    bool ok = s->emit(s->context, event.p, event.n);
    free(event.p);
    json->n = 0;
    return ok;
}

/* The end of a piece of about `delta` bytes from `at`, not inside a character. */
static size_t piece_end(const struct speech *s, size_t at) {
    size_t step = s->rule->delta > 0 ? (size_t)s->rule->delta : 1;
    size_t end = at + step < s->size ? at + step : s->size;
    while (end < s->size && ((unsigned char)s->text[end] & 0xc0) == 0x80) end++;
    return end;
}

/* ---- Chat Completions -------------------------------------------------------------- */

static void chat_usage(const struct speech *s, struct text *t) {
    text_printf(t,
                "{\"prompt_tokens\":%.0f,\"completion_tokens\":%.0f,\"total_tokens\":%.0f,"
                "\"prompt_tokens_details\":{\"cached_tokens\":%.0f},"
                "\"completion_tokens_details\":{\"reasoning_tokens\":%.0f}}",
                s->input, s->output, s->input + s->output, s->cached, s->thought);
}

/* The start of a chunk, up to its choices. */
static void chat_chunk(const struct speech *s, struct text *t) {
    text_printf(t, "{\"id\":\"chatcmpl-mock\",\"object\":\"chat.completion.chunk\","
                   "\"created\":1700000000,\"model\":");
    text_json(t, s->model, strlen(s->model));
}

static bool chat_delta(struct speech *s, struct text *t, const char *field, const char *text,
                       size_t n) {
    chat_chunk(s, t);
    text_printf(t, ",\"choices\":[{\"index\":0,\"delta\":{\"%s\":", field);
    text_json(t, text, n);
    text_printf(t, "},\"finish_reason\":null}]}");
    return say(s, NULL, t);
}

static const char *chat_finish(const struct speech *s) {
    return is(s, "length") ? "length" : is(s, "filter") ? "content_filter" : "stop";
}

static bool chat_stream(struct speech *s, struct text *t) {
    const char *reasoning = s->rule->reasoning, *field = is(s, "refusal") ? "refusal" : "content";
    if (!chat_delta(s, t, "role", "assistant", 9)) return false;
    if (reasoning && !chat_delta(s, t, "reasoning_content", reasoning, strlen(reasoning)))
        return false;
    for (size_t at = 0, end; at < s->size; at = end) {
        end = piece_end(s, at);
        if (!chat_delta(s, t, field, s->text + at, end - at)) return false;
    }
    chat_chunk(s, t);
    text_printf(t, ",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"%s\"}]}",
                chat_finish(s));
    if (!say(s, NULL, t)) return false;
    if (s->wants_usage) {
        chat_chunk(s, t);
        text_printf(t, ",\"choices\":[],\"usage\":");
        chat_usage(s, t);
        text_printf(t, "}");
        if (!say(s, NULL, t)) return false;
    }
    text_printf(t, "[DONE]");
    return say(s, NULL, t);
}

static bool chat_whole(struct speech *s, struct text *t) {
    text_printf(t, "{\"id\":\"chatcmpl-mock\",\"object\":\"chat.completion\",\"model\":");
    text_json(t, s->model, strlen(s->model));
    text_printf(t, ",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"%s\":",
                is(s, "refusal") ? "refusal" : "content");
    text_json(t, s->text, s->size);
    text_printf(t, "},\"finish_reason\":\"%s\"}],\"usage\":", chat_finish(s));
    chat_usage(s, t);
    text_printf(t, "}");
    return s->emit(s->context, t->p, t->n);
}

/* ---- Responses --------------------------------------------------------------------- */

static void response_message(const struct speech *s, struct text *t) {
    text_printf(t, "{\"id\":\"msg_mock\",\"type\":\"message\",\"role\":\"assistant\",\"status\":"
                   "\"completed\",\"content\":[{");
    text_printf(t, is(s, "refusal") ? "\"type\":\"refusal\",\"refusal\":"
                                    : "\"type\":\"output_text\",\"annotations\":[],\"text\":");
    text_json(t, s->text, s->size);
    text_printf(t, "}]}");
}

static void response_whole(const struct speech *s, struct text *t) {
    bool cut = is(s, "length") || is(s, "filter");
    const char *reasoning = s->rule->reasoning;
    text_printf(t, "{\"id\":\"resp_mock\",\"object\":\"response\",\"created_at\":1700000000,"
                   "\"error\":null,\"model\":");
    text_json(t, s->model, strlen(s->model));
    text_printf(t, ",\"status\":\"%s\",\"incomplete_details\":", cut ? "incomplete" : "completed");
    if (cut)
        text_printf(t, "{\"reason\":\"%s\"}",
                    is(s, "length") ? "max_output_tokens" : "content_filter");
    else
        text_printf(t, "null");
    text_printf(t, ",\"output\":[");
    if (reasoning) {
        text_printf(t, "{\"id\":\"rs_mock\",\"type\":\"reasoning\",\"summary\":[{\"type\":"
                       "\"summary_text\",\"text\":");
        text_json(t, reasoning, strlen(reasoning));
        text_printf(t, "}]},");
    }
    response_message(s, t);
    text_printf(t,
                "],\"usage\":{\"input_tokens\":%.0f,\"input_tokens_details\":{\"cached_tokens\":"
                "%.0f},\"output_tokens\":%.0f,\"output_tokens_details\":{\"reasoning_tokens\":"
                "%.0f},\"total_tokens\":%.0f}}",
                s->input, s->cached, s->output, s->thought, s->input + s->output);
}

/* The start of an event, up to the members specific to its type. */
static void response_event(struct speech *s, struct text *t, const char *type) {
    text_printf(t, "{\"type\":\"%s\",\"sequence_number\":%d", type, s->sequence++);
}

static bool response_stream(struct speech *s, struct text *t) {
    const char *last =
        is(s, "length") || is(s, "filter") ? "response.incomplete" : "response.completed";
    const char *delta = is(s, "refusal") ? "response.refusal.delta" : "response.output_text.delta";
    response_event(s, t, "response.created");
    text_printf(t, ",\"response\":{\"id\":\"resp_mock\",\"object\":\"response\",\"status\":"
                   "\"in_progress\",\"output\":[],\"usage\":null}}");
    if (!say(s, "response.created", t)) return false;
    response_event(s, t, "response.output_item.added");
    text_printf(t, ",\"output_index\":0,\"item\":{\"id\":\"msg_mock\",\"type\":\"message\","
                   "\"role\":\"assistant\",\"status\":\"in_progress\",\"content\":[]}}");
    if (!say(s, "response.output_item.added", t)) return false;
    for (size_t at = 0, end; at < s->size; at = end) {
        end = piece_end(s, at);
        response_event(s, t, delta);
        text_printf(t, ",\"item_id\":\"msg_mock\",\"output_index\":0,\"content_index\":0,"
                       "\"delta\":");
        text_json(t, s->text + at, end - at);
        text_printf(t, "}");
        if (!say(s, delta, t)) return false;
    }
    response_event(s, t, "response.output_item.done");
    text_printf(t, ",\"output_index\":0,\"item\":");
    response_message(s, t);
    text_printf(t, "}");
    if (!say(s, "response.output_item.done", t)) return false;
    response_event(s, t, last);
    text_printf(t, ",\"response\":");
    response_whole(s, t);
    text_printf(t, "}");
    return say(s, last, t);
}

/* ---- Messages ---------------------------------------------------------------------- */

static const char *stop_reason(const struct speech *s) {
    return is(s, "length") ? "max_tokens" : is(s, "stop") ? "end_turn" : "refusal";
}

/* The usage; here input_tokens excludes what is read from the cache. */
static void message_usage(const struct speech *s, struct text *t, double output) {
    text_printf(t,
                "{\"input_tokens\":%.0f,\"cache_creation_input_tokens\":0,"
                "\"cache_read_input_tokens\":%.0f,\"output_tokens\":%.0f}",
                s->input - s->cached, s->cached, output);
}

static bool message_block(struct speech *s, struct text *t, int index, const char *type,
                          const char *text, size_t n) {
    text_printf(t,
                "{\"type\":\"content_block_start\",\"index\":%d,\"content_block\":{\"type\":\"%s\","
                "\"%s\":\"\"}}",
                index, type, type);
    if (!say(s, "content_block_start", t)) return false;
    struct speech part = *s;
    part.text = text, part.size = n;
    for (size_t at = 0, end; at < n; at = end) {
        end = piece_end(&part, at);
        text_printf(t,
                    "{\"type\":\"content_block_delta\",\"index\":%d,\"delta\":{\"type\":"
                    "\"%s_delta\",\"%s\":",
                    index, type, type);
        text_json(t, text + at, end - at);
        text_printf(t, "}}");
        if (!say(s, "content_block_delta", t)) return false;
    }
    text_printf(t, "{\"type\":\"content_block_stop\",\"index\":%d}", index);
    return say(s, "content_block_stop", t);
}

static bool message_stream(struct speech *s, struct text *t) {
    const char *reasoning = s->rule->reasoning;
    text_printf(t, "{\"type\":\"message_start\",\"message\":{\"id\":\"msg_mock\",\"type\":"
                   "\"message\",\"role\":\"assistant\",\"content\":[],\"stop_reason\":null,"
                   "\"model\":");
    text_json(t, s->model, strlen(s->model));
    text_printf(t, ",\"usage\":");
    message_usage(s, t, 1);
    text_printf(t, "}}");
    if (!say(s, "message_start", t)) return false;
    text_printf(t, "{\"type\":\"ping\"}");
    if (!say(s, "ping", t)) return false;
    if (reasoning && !message_block(s, t, 0, "thinking", reasoning, strlen(reasoning)))
        return false;
    if (!message_block(s, t, reasoning != NULL, "text", s->text, s->size)) return false;
    text_printf(t,
                "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"%s\","
                "\"stop_sequence\":null},\"usage\":{\"output_tokens\":%.0f}}",
                stop_reason(s), s->output);
    if (!say(s, "message_delta", t)) return false;
    text_printf(t, "{\"type\":\"message_stop\"}");
    return say(s, "message_stop", t);
}

static bool message_whole(struct speech *s, struct text *t) {
    text_printf(t, "{\"id\":\"msg_mock\",\"type\":\"message\",\"role\":\"assistant\",\"model\":");
    text_json(t, s->model, strlen(s->model));
    text_printf(t, ",\"content\":[{\"type\":\"text\",\"text\":");
    text_json(t, s->text, s->size);
    text_printf(t, "}],\"stop_reason\":\"%s\",\"usage\":", stop_reason(s));
    message_usage(s, t, s->output);
    text_printf(t, "}");
    return s->emit(s->context, t->p, t->n);
}

bool answer_emit(const struct rule *r, const struct step *step, enum api api, const char *body,
                 emitter *emit, void *context) {
    struct speech s = {
        .rule = r, .text = step->text, .size = step->size, .emit = emit, .context = context};
    const char *model = strstr(body, "\"model\":\"");
    if (model) sscanf(model + 9, "%127[^\"]", s.model);
    s.wants_usage = strstr(body, "\"include_usage\":true") != NULL;
    s.input = r->has_usage ? r->input : (double)(strlen(body) / 4);
    s.output = r->has_usage ? r->output : (double)(step->size / 4 + 1);
    s.cached = r->cached, s.thought = r->thought;
    struct text t = {0};
    text_add(&t, "", 0);
    bool ok;
    if (answer_streams(r, body))
        ok = (api == CHAT        ? chat_stream
              : api == RESPONSES ? response_stream
                                 : message_stream)(&s, &t);
    else if (api == RESPONSES) {
        response_whole(&s, &t);
        ok = emit(context, t.p, t.n);
    } else
        ok = (api == CHAT ? chat_whole : message_whole)(&s, &t);
    free(t.p);
    return ok;
}
