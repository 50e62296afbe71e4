/* anthropic.c: Anthropic Messages. */
#include "base/json.h"
#include "llm/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A block of text.  `cached`: what ends here is the same in many calls, so a cache breakpoint is at
 * its end. */
static void add_block(cJSON *content, const char *text, bool cached) {
    cJSON *block = wire_member(content);
    wire_text(block, "type", "text");
    wire_text(block, "text", text);
    if (cached) wire_text(wire_object(block, "cache_control"), "type", "ephemeral");
}

static void anthropic_request(cJSON *body, const struct llm_config *c, const struct llm_message *m,
                              int n, double cap) {
    int nsystem = 0, k = 0;
    for (int i = 0; i < n; i++) nsystem += !strcmp(m[i].role, "system");
    cJSON *system = nsystem ? wire_array(body, "system") : NULL;
    for (int i = 0; i < n; i++)
        if (!strcmp(m[i].role, "system")) add_block(system, m[i].text, ++k == nsystem);
    cJSON *messages = wire_array(body, "messages");
    for (int i = 0; i < n; i++) {
        if (!strcmp(m[i].role, "system")) continue;
        cJSON *message = wire_member(messages);
        wire_text(message, "role", m[i].role);
        if (!m[i].stable) {
            wire_text(message, "content", m[i].text);
            continue;
        }
        char *stable = text_format("%.*s", (int)m[i].stable, m[i].text);
        cJSON *content = wire_array(message, "content");
        add_block(content, stable, true);
        add_block(content, m[i].text + m[i].stable, false);
        free(stable);
    }
    wire_number(body, "max_tokens", cap);
    if (c->has_temperature) wire_number(body, "temperature", c->temperature);
    if (*c->effort) wire_text(wire_object(body, "output_config"), "effort", c->effort);
    wire_bool(body, "stream", true);
}

/* Usage comes in several events; each replaces the counts before it.  input_tokens excludes
 * tokens read from or written to a cache, so add those. */
static void anthropic_usage(struct llm_reader *r, const cJSON *usage) {
    const cJSON *written = wire_get(usage, "cache_creation");
    struct llm_usage *u = &r->usage;
    wire_get_number(usage, "input_tokens", &r->uncached);
    wire_get_number(usage, "cache_read_input_tokens", &u->cached);
    wire_get_number(usage, "cache_creation_input_tokens", &r->written);
    wire_get_number(written, "ephemeral_1h_input_tokens", &u->cache_write_1h);
    wire_get_number(usage, "output_tokens", &u->output);
    wire_get_number(wire_get(usage, "output_tokens_details"), "thinking_tokens", &u->reasoning);
    wire_get_number(usage, "cost", &u->cost);
    u->cache_write = r->written > u->cache_write_1h ? r->written - u->cache_write_1h : 0;
    u->input = r->uncached + u->cached + r->written;
}

static void anthropic_block(struct llm_reader *r, const cJSON *block) {
    wire_add(&r->text, wire_get(block, "text"));
    wire_add(&r->reasoning, wire_get(block, "thinking"));
}

/* Read why the model stopped and, if it refused, the category of the refusal. */
static void anthropic_stop(struct llm_reader *r, const cJSON *object) {
    const cJSON *reason = wire_get(object, "stop_reason"),
                *details = wire_get(object, "stop_details");
    const cJSON *category = wire_get(details, "category"), *says = wire_get(details, "explanation");
    if (!cJSON_IsString(reason)) return;
    wire_stop(r, reason->valuestring);
    if (cJSON_IsString(category) || cJSON_IsString(says))
        snprintf(r->stop_detail, sizeof r->stop_detail, "%s%s%s",
                 cJSON_IsString(category) ? category->valuestring : "",
                 cJSON_IsString(category) && cJSON_IsString(says) ? ": " : "",
                 cJSON_IsString(says) ? says->valuestring : "");
}

static void anthropic_event(struct llm_reader *r, const char *event, const cJSON *data) {
    const cJSON *type = wire_get(data, "type");
    if (cJSON_IsString(type)) event = type->valuestring;
    if (!strcmp(event, "message_start")) {
        const cJSON *message = wire_get(data, "message");
        wire_name_model(r, message);
        anthropic_usage(r, wire_get(message, "usage"));
    } else if (!strcmp(event, "content_block_start")) {
        anthropic_block(r, wire_get(data, "content_block"));
    } else if (!strcmp(event, "content_block_delta")) {
        anthropic_block(r, wire_get(data, "delta"));
    } else if (!strcmp(event, "message_delta")) {
        const cJSON *usage = wire_get(data, "usage");
        anthropic_usage(r, usage);
        anthropic_stop(r, wire_get(data, "delta"));
        /* output_tokens of message_start counts the first token only, and counts before the stop
         * reason are partial. */
        if (cJSON_IsNumber(wire_get(usage, "output_tokens"))) r->usage.known = r->stop != STOP_NONE;
    } else if (!strcmp(event, "message_stop")) {
        r->ended = true;
    } else {
        return; /* ping, content_block_stop, unknown events */
    }
    r->begun = true;
}

static void anthropic_whole(struct llm_reader *r, const cJSON *body) {
    const cJSON *block, *usage = wire_get(body, "usage");
    cJSON_ArrayForEach(block, wire_get(body, "content")) anthropic_block(r, block);
    wire_name_model(r, body);
    anthropic_usage(r, usage);
    r->usage.known = cJSON_IsNumber(wire_get(usage, "input_tokens")) &&
                     cJSON_IsNumber(wire_get(usage, "output_tokens"));
    anthropic_stop(r, body);
    r->ended = r->begun = r->stop != STOP_NONE;
}

const struct wire wire_anthropic = {.name = "anthropic",
                                    .word = "anthropic",
                                    .base_variable = "ANTHROPIC_BASE_URL",
                                    .base = "https://api.anthropic.com",
                                    .path = "/v1/messages",
                                    .key_variable = "ANTHROPIC_API_KEY",
                                    .token_variable = "ANTHROPIC_AUTH_TOKEN",
                                    .key_header = "x-api-key: ",
                                    .header = "anthropic-version: 2023-06-01",
                                    .request = anthropic_request,
                                    .event = anthropic_event,
                                    .whole = anthropic_whole};
