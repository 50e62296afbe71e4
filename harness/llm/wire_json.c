/* wire_json.c: helpers shared by the wire formats, for members of requests and answers. */
#include "base/error.h"
#include "llm/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- Requests ---- */

static cJSON *made(cJSON *item) {
    if (!item) die(KP_MACHINE, "out of memory");
    return item;
}

cJSON *wire_object(cJSON *parent, const char *key) {
    return made(cJSON_AddObjectToObject(parent, key));
}

cJSON *wire_array(cJSON *parent, const char *key) {
    return made(cJSON_AddArrayToObject(parent, key));
}

cJSON *wire_member(cJSON *array) {
    cJSON *object = made(cJSON_CreateObject());
    if (!cJSON_AddItemToArray(array, object)) die(KP_MACHINE, "out of memory");
    return object;
}

void wire_text(cJSON *parent, const char *key, const char *text) {
    char *clean = utf8_clean(text, strlen(text));
    made(cJSON_AddStringToObject(parent, key, clean));
    free(clean);
}

void wire_number(cJSON *parent, const char *key, double x) {
    made(cJSON_AddNumberToObject(parent, key, x));
}

void wire_bool(cJSON *parent, const char *key, bool x) {
    made(cJSON_AddBoolToObject(parent, key, x));
}

char *wire_system(const struct llm_message *m, int n) {
    struct text all = {0};
    for (int i = 0; i < n; i++) {
        if (strcmp(m[i].role, "system") != 0) continue;
        if (all.n) text_add(&all, "\n\n", 2);
        text_add(&all, m[i].text, strlen(m[i].text));
    }
    return all.s;
}

void wire_messages(cJSON *body, const char *key, const struct llm_message *m, int n, bool system) {
    cJSON *messages = wire_array(body, key);
    for (int i = 0; i < n; i++) {
        if (!system && !strcmp(m[i].role, "system")) continue;
        cJSON *message = wire_member(messages);
        wire_text(message, "role", m[i].role);
        wire_text(message, "content", m[i].text);
    }
}

/* ---- Answers ---- */

cJSON *wire_parse(const char *s, size_t n) {
    char *safe = json_armour(s, n);
    key_redact(safe, strlen(safe));
    cJSON *json = cJSON_ParseWithOpts(safe, NULL, 1);
    free(safe);
    return json;
}

const cJSON *wire_get(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

void wire_get_number(const cJSON *object, const char *key, double *x) {
    const cJSON *v = wire_get(object, key);
    if (cJSON_IsNumber(v)) *x = v->valuedouble;
}

void wire_add(struct text *t, const cJSON *string) {
    if (cJSON_IsString(string)) text_add(t, string->valuestring, strlen(string->valuestring));
}

void wire_usage(struct llm_usage *u, const cJSON *usage, const char *in, const char *out) {
    char key[2][32], details[2][64];
    double total = 0;
    if (!cJSON_IsObject(usage)) return;
    for (int i = 0; i < 2; i++) {
        snprintf(key[i], sizeof key[i], "%.20s_tokens", i ? out : in);
        snprintf(details[i], sizeof details[i], "%.40s_tokens_details", i ? out : in);
    }
    const cJSON *read = wire_get(usage, details[0]), *written = wire_get(usage, details[1]);
    u->known = cJSON_IsNumber(wire_get(usage, key[0])) && cJSON_IsNumber(wire_get(usage, key[1]));
    wire_get_number(usage, key[0], &u->input);
    wire_get_number(usage, key[1], &u->output);
    /* Some servers count reasoning in the total only; it is billed all the same. */
    wire_get_number(usage, "total_tokens", &total);
    if (total - u->input > u->output) u->output = total - u->input;
    wire_get_number(read, "cached_tokens", &u->cached);
    wire_get_number(read, "cache_write_tokens", &u->cache_write);
    wire_get_number(written, "reasoning_tokens", &u->reasoning);
    wire_get_number(usage, "cost", &u->cost);
}

void wire_name_model(struct llm_reader *r, const cJSON *object) {
    const cJSON *model = wire_get(object, "model");
    if (cJSON_IsString(model))
        text_excerpt(r->model, sizeof r->model, model->valuestring, strlen(model->valuestring));
}

void wire_stop(struct llm_reader *r, const char *word) {
    static const struct {
        const char *word;
        enum stop stop;
    } words[] = {
        {"stop", STOP_END},
        {"eos", STOP_END},
        {"eos_token", STOP_END},
        {"end_turn", STOP_END},
        {"completed", STOP_END},
        {"length", STOP_CAP},
        {"max_tokens", STOP_CAP},
        {"max_output_tokens", STOP_CAP},
        {"model_context_window_exceeded", STOP_CONTEXT},
        {"content_filter", STOP_FILTER},
        {"refusal", STOP_FILTER},
        {"error", STOP_BROKEN},
        {"abort", STOP_BROKEN},
        {"insufficient_system_resource", STOP_BROKEN},
        {"failed", STOP_BROKEN},
        {"cancelled", STOP_BROKEN},
    };
    r->stop = STOP_OTHER;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcasecmp(word, words[i].word)) r->stop = words[i].stop;
    text_excerpt(r->stop_word, sizeof r->stop_word, word, strlen(word));
}

void wire_scan(struct llm_reader *r) {
    const struct text *all[] = {&r->text, &r->reasoning, &r->refusal};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        r->leaked |= key_within(all[i]->s, all[i]->n);
}
