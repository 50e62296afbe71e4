/* chat.c: OpenAI Chat Completions, also spoken by every server that calls itself compatible. */
#include "llm/wire.h"

static void chat_request(cJSON *body, const struct llm_config *c, const struct llm_message *m,
                         int n, double cap) {
    wire_messages(body, "messages", m, n, true);
    wire_number(body, c->old_max_tokens ? "max_tokens" : "max_completion_tokens", cap);
    if (c->has_temperature) wire_number(body, "temperature", c->temperature);
    if (*c->effort) wire_text(body, "reasoning_effort", c->effort);
    if (c->has_seed) wire_number(body, "seed", (double)c->seed);
    wire_bool(body, "stream", true);
    wire_bool(wire_object(body, "stream_options"), "include_usage", true);
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
    wire_usage(&r->usage, wire_get(data, "usage"), "prompt", "completion");
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

const struct wire wire_chat = {.name = "chat",
                               .word = "openai",
                               .base_variable = "OPENAI_BASE_URL",
                               .base = "https://api.openai.com/v1",
                               .path = "/chat/completions",
                               .key_variable = "OPENAI_API_KEY",
                               .has_seed = true,
                               .request = chat_request,
                               .event = chat_event,
                               .whole = chat_whole};
