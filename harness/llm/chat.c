/* chat.c: OpenAI Chat Completions, also spoken by every server that calls itself compatible. */
#include "llm/wire.h"

#include <string.h>

static void chat_request(cJSON *body, const struct llm_config *c, const struct llm_message *m,
                         int n, double cap) {
    cJSON *messages = wire_array(body, "messages");
    for (int i = 0; i < n; i++) {
        cJSON *message = wire_member(messages);
        wire_text(message, "role", m[i].role);
        wire_text(message, "content", m[i].text);
    }
    wire_number(body, c->old_max_tokens ? "max_tokens" : "max_completion_tokens", cap);
    if (c->has_temperature) wire_number(body, "temperature", c->temperature);
    if (*c->effort) wire_text(body, "reasoning_effort", c->effort);
    if (c->has_seed) wire_number(body, "seed", (double)c->seed);
    wire_bool(body, "stream", true);
    wire_bool(wire_object(body, "stream_options"), "include_usage", true);
}

static void chat_usage(struct llm_usage *u, const cJSON *usage) {
    if (!cJSON_IsObject(usage)) return;
    double total = 0;
    const cJSON *in = wire_get(usage, "prompt_tokens_details"),
                *out = wire_get(usage, "completion_tokens_details");
    u->known = cJSON_IsNumber(wire_get(usage, "prompt_tokens")) &&
               cJSON_IsNumber(wire_get(usage, "completion_tokens"));
    wire_get_number(usage, "prompt_tokens", &u->input);
    wire_get_number(usage, "completion_tokens", &u->output);
    /* Some servers count reasoning in the total only; it is billed all the same. */
    wire_get_number(usage, "total_tokens", &total);
    if (total - u->input > u->output) u->output = total - u->input;
    wire_get_number(in, "cached_tokens", &u->cached);
    wire_get_number(in, "cache_write_tokens", &u->cache_write);
    wire_get_number(out, "reasoning_tokens", &u->reasoning);
    wire_get_number(usage, "cost", &u->cost);
}

/* The text of a message or a delta: a string, or an array of parts. */
static void chat_content(struct llm_reader *r, const cJSON *content) {
    const cJSON *part;
    wire_add(&r->text, content);
    if (!cJSON_IsArray(content)) return;
    cJSON_ArrayForEach(part, content) wire_add(&r->text, wire_get(part, "text"));
}

/* Read one choice.  Servers may send reasoning under both names, with the same text. */
static void chat_choice(struct llm_reader *r, const cJSON *choice, const char *key) {
    const cJSON *delta = wire_get(choice, key), *finish = wire_get(choice, "finish_reason");
    const cJSON *reasoning = wire_get(delta, "reasoning_content");
    double index = 0;
    wire_get_number(choice, "index", &index);
    if (index != 0) return;
    r->begun = true;
    chat_content(r, wire_get(delta, "content"));
    wire_add(&r->reasoning, cJSON_IsString(reasoning) ? reasoning : wire_get(delta, "reasoning"));
    wire_add(&r->refusal, wire_get(delta, "refusal"));
    if (cJSON_IsString(finish)) wire_stop(r, finish->valuestring);
}

static void chat_take(struct llm_reader *r, const cJSON *data, const char *key) {
    const cJSON *choice, *choices = wire_get(data, "choices");
    wire_name_model(r, data);
    chat_usage(&r->usage, wire_get(data, "usage"));
    cJSON_ArrayForEach(choice, choices) chat_choice(r, choice, key);
    /* Some servers send running counts: usage before the end of the answer is not final. */
    if (r->stop == STOP_NONE && cJSON_GetArraySize(choices) > 0) r->usage.known = false;
}

static void chat_event(struct llm_reader *r, const char *event, const cJSON *data) {
    (void)event;
    chat_take(r, data, "delta");
}

static void chat_whole(struct llm_reader *r, const cJSON *body) {
    chat_take(r, body, "message");
    r->ended = r->stop != STOP_NONE;
}

const struct wire wire_chat = {"/chat/completions", chat_request, chat_event, chat_whole};
