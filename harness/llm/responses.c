/* responses.c: OpenAI Responses. */
#include "llm/wire.h"

#include <stdlib.h>
#include <string.h>

static void responses_request(cJSON *body, const struct llm_config *c, const struct llm_message *m,
                              int n, double cap) {
    char *system = wire_system(m, n);
    if (system) wire_text(body, "instructions", system);
    free(system);
    wire_messages(body, "input", m, n, false);
    wire_number(body, "max_output_tokens", cap);
    if (c->has_temperature) wire_number(body, "temperature", c->temperature);
    if (*c->effort) wire_text(wire_object(body, "reasoning"), "effort", c->effort);
    wire_bool(body, "store", false);
    wire_bool(body, "stream", true);
}

/* Start the text of each item on a new line, so that a code fence stays at the start of a line. */
static void add_of(struct llm_reader *r, struct text *t, long part, const cJSON *string) {
    if (cJSON_IsString(string) && part != r->part && t->n && t->s[t->n - 1] != '\n')
        text_add(t, "\n", 1);
    wire_add(t, string);
    r->part = part;
}

/* Read one output item of a whole answer. */
static void responses_item(struct llm_reader *r, struct text *text, struct text *reasoning,
                           const cJSON *item, long number) {
    const cJSON *part, *type = wire_get(item, "type");
    bool thought = cJSON_IsString(type) && !strcmp(type->valuestring, "reasoning");
    bool message = cJSON_IsString(type) && !strcmp(type->valuestring, "message");
    if (thought)
        cJSON_ArrayForEach(part, wire_get(item, "summary"))
            wire_add(reasoning, wire_get(part, "text"));
    cJSON_ArrayForEach(part, wire_get(item, "content")) {
        if (thought) wire_add(reasoning, wire_get(part, "text"));
        if (message) add_of(r, text, number, wire_get(part, "text"));
        if (message) wire_add(&r->refusal, wire_get(part, "refusal"));
    }
}

static void swap(struct text *a, struct text *b) {
    struct text old = *a;
    *a = *b;
    *b = old;
}

/* Read a final response object.  Its text replaces the deltas, unless it is empty. */
static void responses_whole(struct llm_reader *r, const cJSON *body) {
    const cJSON *item, *status = wire_get(body, "status"), *error = wire_get(body, "error");
    const cJSON *reason = wire_get(wire_get(body, "incomplete_details"), "reason");
    struct text text = {0}, reasoning = {0};
    long number = 0;
    if (!cJSON_IsString(status) || !strcmp(status->valuestring, "queued") ||
        !strcmp(status->valuestring, "in_progress"))
        return;
    wire_scan(r); /* of the deltas, which this replaces */
    text_clear(&r->refusal);
    cJSON_ArrayForEach(item, wire_get(body, "output"))
        responses_item(r, &text, &reasoning, item, number++);
    if (text.n || r->refusal.n) swap(&r->text, &text);
    if (reasoning.n) swap(&r->reasoning, &reasoning);
    text_free(&text);
    text_free(&reasoning);
    wire_name_model(r, body);
    wire_usage(&r->usage, wire_get(body, "usage"), "input", "output");
    if (cJSON_IsObject(error)) fault_read(&r->fault, error);
    r->begun = r->ended = true;
    wire_stop(r, cJSON_IsString(reason) ? reason->valuestring : status->valuestring);
}

static void responses_event(struct llm_reader *r, const char *event, const cJSON *data) {
    const cJSON *type = wire_get(data, "type"), *delta = wire_get(data, "delta");
    double part = 0;
    if (cJSON_IsString(type)) event = type->valuestring;
    wire_get_number(data, "output_index", &part);
    if (!strcmp(event, "response.output_text.delta")) {
        add_of(r, &r->text, (long)part, delta);
    } else if (!strcmp(event, "response.refusal.delta")) {
        wire_add(&r->refusal, delta);
    } else if (!strcmp(event, "response.reasoning_summary_text.delta") ||
               !strcmp(event, "response.reasoning_text.delta")) {
        wire_add(&r->reasoning, delta);
    } else if (!strcmp(event, "response.completed") || !strcmp(event, "response.incomplete") ||
               !strcmp(event, "response.failed")) {
        responses_whole(r, wire_get(data, "response"));
    } else if (!strcmp(event, "error")) {
        if (!r->fault.any) fault_read(&r->fault, data);
    } else if (strcmp(event, "response.output_item.added") != 0) {
        return; /* an unknown event, or one without text */
    }
    r->begun = true;
}

const struct wire wire_responses = {.name = "responses",
                                    .word = "responses",
                                    .base_variable = "OPENAI_BASE_URL",
                                    .base = "https://api.openai.com/v1",
                                    .path = "/responses",
                                    .key_variable = "OPENAI_API_KEY",
                                    .request = responses_request,
                                    .event = responses_event,
                                    .whole = responses_whole};
