/* config.c: read the configuration, and build the body of a request. */
#include "base/error.h"
#include "base/json.h"
#include "llm/wire.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* The value of a variable; NULL if it is unset or empty. */
static const char *setting(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* Read a number between low and high; false if the variable is not set. */
static bool number(const char *name, double low, double high, bool whole, double *x) {
    const char *value = setting(name);
    char *end;
    if (!value) return false;
    errno = 0;
    *x = strtod(value, &end);
    bool digits = strspn(value, "+-.0123456789eE") == strlen(value);
    if (!digits || *end || end == value || errno || !(*x >= low && *x <= high) ||
        (whole && *x != floor(*x)))
        die(KP_USAGE, "%s=%.40s: a %snumber from %.15g to %.15g is expected", name, value,
            whole ? "whole " : "", low, high);
    return true;
}

/* Split LLM into api and model. */
static void read_model(struct llm_config *c) {
    static const char usage[] =
        "openai:MODEL, responses:MODEL, anthropic:MODEL or replay:DIR is expected";
    const char *llm = setting("LLM"), *model = NULL;
    if (!llm) die(KP_USAGE, "LLM is not set: %s", usage);
    size_t of_word = strcspn(llm, ":");
    for (int api = 0; api <= LLM_REPLAY; api++) {
        const char *word = api == LLM_REPLAY ? "replay" : llm_wire((enum llm_api)api)->word;
        if (strlen(word) != of_word || strncmp(llm, word, of_word) || !llm[of_word]) continue;
        c->api = (enum llm_api)api;
        model = llm + of_word + 1;
    }
    if (!model || !*model) die(KP_USAGE, "LLM=%.60s: %s", llm, usage);
    size_t n = strlen(model);
    for (size_t i = 0, k; i < n; i += k) {
        k = utf8_length(model + i, n - i);
        if (!k || n >= sizeof c->model || (unsigned char)model[i] < ' ' || model[i] == 0x7F)
            die(KP_USAGE, "LLM: the model's name is not text of at most %zu bytes",
                sizeof c->model - 1);
    }
    memcpy(c->model, model, n + 1);
}

/* Find the variable that holds the key, and move the key out of the environment. */
static void read_key(struct llm_config *c) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    const char *key = setting("LLM_KEY_ENV");
    if (key && (strlen(key) >= sizeof c->key_env || strspn(key, letters) != strlen(key)))
        die(KP_USAGE, "LLM_KEY_ENV is not the name of a variable: name the one that holds the key");
    const struct wire *wire = llm_wire(c->api == LLM_REPLAY ? LLM_CHAT : c->api);
    if (!key) key = wire->key_variable;
    key_take(key);
    if (!strcmp(key, wire->key_variable) && !key_held(key) && wire->token_variable &&
        key_held(wire->token_variable))
        key = wire->token_variable;
    snprintf(c->key_env, sizeof c->key_env, "%s", key);
}

static void read_settings(struct llm_config *c) {
    const char *effort = setting("LLM_EFFORT"), *field = setting("LLM_TOKEN_FIELD");
    double x;
    c->has_temperature = number("LLM_TEMPERATURE", 0, 100, false, &c->temperature);
    c->has_seed = number("LLM_SEED", -1e14, 1e14, true, &x);
    if (c->has_seed) c->seed = (long)x;
    if (c->has_seed && c->api != LLM_REPLAY && !llm_wire(c->api)->seed)
        die(KP_USAGE, "LLM_SEED: only LLM=openai:MODEL takes a seed; unset it");
    c->has_max_tokens = number("LLM_MAX_TOKENS", 1, 1e8, true, &x);
    c->max_tokens = c->has_max_tokens ? (long)x : 32768;
    c->call_seconds = number("LLM_SECONDS", 0.001, 1e6, false, &x) ? x : 3600;
    c->idle_seconds = number("LLM_IDLE_SECONDS", 1, 1e6, true, &x) ? x : 600;
    c->backoff_seconds = number("LLM_BACKOFF_MS", 0, 1e6, false, &x) ? x / 1000 : 0.5;
    c->tries = number("LLM_TRIES", 1, 100, true, &x) ? (int)x : 8;
    if (effort && (strlen(effort) >= sizeof c->effort ||
                   strspn(effort, "abcdefghijklmnopqrstuvwxyz_-0123456789") != strlen(effort)))
        die(KP_USAGE, "LLM_EFFORT=%.40s: a word as low, medium or high is expected", effort);
    if (effort) memcpy(c->effort, effort, strlen(effort) + 1);
    if (field && strcmp(field, "max_tokens") != 0 && strcmp(field, "max_completion_tokens") != 0)
        die(KP_USAGE, "LLM_TOKEN_FIELD=%.40s: max_tokens or max_completion_tokens is expected",
            field);
    c->old_max_tokens = field && !strcmp(field, "max_tokens");
}

void llm_config_read(struct llm_config *c) {
    const struct rlimit none = {0, 0};
    *c = (struct llm_config){.api = LLM_CHAT};
    /* This process will hold the key: allow no core file and no reading by other processes. */
    if (setrlimit(RLIMIT_CORE, &none) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
        die(KP_MACHINE, "core files cannot be turned off: %s", strerror(errno));
    read_model(c);
    read_key(c);
    const struct wire *wire = llm_wire(c->api);
    const char *url = wire ? setting(wire->base_variable) : NULL;
    if (wire) http_base(c, wire->base_variable, url ? url : wire->base);
    read_settings(c);
}

void llm_need_key(const struct llm_config *c) {
    if (c->api == LLM_REPLAY || c->loopback || c->plain || key_held(c->key_env)) return;
    /* A user may have put the key itself here: do not print what does not look like a name. */
    bool name = c->key_env[strcspn(c->key_env, "abcdefghijklmnopqrstuvwxyz")] == 0;
    die(KP_USAGE,
        "%s is not set, and %s answers nobody without a key: set it, or name another "
        "variable in LLM_KEY_ENV",
        name ? c->key_env : "the variable that LLM_KEY_ENV names", c->host);
}

/* ---- Requests ---- */

/* Add an item under a name; where that is a.b, as b of a new object a.  NULL: the API has none. */
static void add(cJSON *body, const char *name, cJSON *item) {
    const char *dot = name ? strchr(name, '.') : NULL;
    if (!name) {
        cJSON_Delete(item);
    } else if (!dot) {
        cJSON_AddItemToObject(body, name, item);
    } else {
        char *first = text_format("%.*s", (int)(dot - name), name);
        cJSON_AddItemToObject(cJSON_AddObjectToObject(body, first), dot + 1, item);
        free(first);
    }
}

char *llm_request(const struct llm_config *c, const struct llm_message *m, int n, int caps) {
    const struct wire *wire = llm_wire(c->api);
    if (!wire) die(KP_USAGE, "LLM=replay:%s sends no requests", c->model);
    cJSON *body = cJSON_CreateObject();
    message_text(body, "model", c->model, strlen(c->model));
    wire->messages(body, m, n);
    add(body, c->old_max_tokens && c->api == LLM_CHAT ? "max_tokens" : wire->cap,
        cJSON_CreateNumber((double)c->max_tokens * caps));
    if (c->has_temperature) add(body, "temperature", cJSON_CreateNumber(c->temperature));
    if (*c->effort) add(body, wire->effort, cJSON_CreateString(c->effort));
    if (c->has_seed) add(body, wire->seed, cJSON_CreateNumber((double)c->seed));
    char *most = cJSON_PrintUnformatted(body);
    char *text = text_format("%.*s,%s}", (int)strlen(most) - 1, most, wire->fixed);
    cJSON_Delete(body);
    free(most);
    return text;
}
