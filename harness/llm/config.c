/* config.c: read the configuration, and build the body of a request. */
#include "llm/wire.h"

#include <sys/prctl.h>
#include <sys/resource.h>

static const struct setting { /* a number */
    const char *name;
    double low, high, otherwise; /* NAN: it is not sent */
    bool whole;
    size_t at; /* of struct llm_config */
} settings[] = {
#define SETTING(name, low, high, otherwise, whole, member) \
    {name, low, high, otherwise, whole, offsetof(struct llm_config, member)},
#include "llm/settings.h"
#undef SETTING
};

/* The value of a variable; NULL if it is unset or empty. */
static const char *value_of(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static double number(const struct setting *s) {
    const char *value = value_of(s->name);
    char *end;
    if (!value) return s->otherwise;
    double x = strtod(value, &end);
    if (!text_matches(value, "^[-+.0-9eE]+$") || *end || !(x >= s->low && x <= s->high) ||
        (s->whole && x != floor(x)))
        die(KP_USAGE, "%s=%.40s: a %snumber from %.15g to %.15g is expected", s->name, value,
            s->whole ? "whole " : "", s->low, s->high);
    return x;
}

/* The value of a variable, "" if it is unset, which has to match. */
static const char *word(const char *name, const char *pattern, const char *expected) {
    const char *value = value_of(name);
    if (value && !text_matches(value, pattern))
        die(KP_USAGE, "%s=%.40s: %s is expected", name, value, expected);
    return value ? value : "";
}

/* Split the variable `own`, or else LLM, into api and model. */
static void read_model(struct llm_config *c, const char *own) {
    static const char usage[] =
        "openai:MODEL, responses:MODEL, anthropic:MODEL or replay:DIR is expected";
    const char *name = own && value_of(own) ? own : "LLM";
    const char *llm = value_of(name), *model = llm ? strchr(llm, ':') : NULL;
    if (!llm && own) die(KP_USAGE, "neither %s nor LLM is set: %s=%s", own, own, usage);
    if (!llm) die(KP_USAGE, "LLM is not set: %s", usage);
    for (c->api = LLM_CHAT; model && c->api <= LLM_REPLAY; c->api++) {
        const char *word = c->api == LLM_REPLAY ? "replay" : llm_wire(c->api)->word;
        if (!strncmp(llm, word, strlen(word)) && llm + strlen(word) == model) break;
    }
    if (!model || c->api > LLM_REPLAY || !*++model) die(KP_USAGE, "%s=%.60s: %s", name, llm, usage);
    if (!text_matches(model, "^[^[:cntrl:]]{1,255}$"))
        die(KP_USAGE, "%s: the model's name is not text of at most 255 bytes", name);
    strcpy(c->model, model);
}

/* Find the variable that holds the key, and move the key out of the environment. */
static void read_key(struct llm_config *c) {
    const char *key = value_of("LLM_KEY_ENV");
    if (key && !text_matches(key, "^[A-Za-z0-9_]{1,63}$"))
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
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        *(double *)((char *)c + settings[i].at) = number(&settings[i]);
    if (!isnan(c->seed) && c->api != LLM_REPLAY && !llm_wire(c->api)->seed)
        die(KP_USAGE, "LLM_SEED: only LLM=openai:MODEL takes a seed; unset it");
    strcpy(c->effort, word("LLM_EFFORT", "^[a-z0-9_-]{1,31}$", "a word as low, medium or high"));
    c->old_max_tokens = !strcmp("max_tokens", word("LLM_TOKEN_FIELD", "^max_(completion_)?tokens$",
                                                   "max_tokens or max_completion_tokens"));
}

void llm_config_read(struct llm_config *c) {
    llm_config_read_of(c, NULL);
}

void llm_config_read_of(struct llm_config *c, const char *own) {
    const struct rlimit none = {0, 0};
    *c = (struct llm_config){.api = LLM_CHAT};
    /* This process will hold the key: allow no core file and no reading by other processes. */
    if (setrlimit(RLIMIT_CORE, &none) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
        die(KP_MACHINE, "core files cannot be turned off: %s", strerror(errno));
    read_model(c, own);
    read_key(c);
    const struct wire *wire = llm_wire(c->api);
    const char *url = wire ? value_of(wire->base_variable) : NULL;
    if (wire) http_base(c, wire->base_variable, url ? url : wire->base);
    read_settings(c);
}

void llm_need_key(const struct llm_config *c) {
    if (c->api == LLM_REPLAY || c->loopback || c->plain || key_held(c->key_env)) return;
    /* A user may have put the key itself here: do not print what does not look like a name. */
    bool name = text_matches(c->key_env, "^[A-Z0-9_]*$");
    die(KP_USAGE,
        "%s is not set, and %s answers nobody without a key: set it, or name another "
        "variable in LLM_KEY_ENV",
        name ? c->key_env : "the variable that LLM_KEY_ENV names", c->host);
}

/* ---- Requests ---- */

/* Add an item under a name; where that is a.b, as b of a new object a. */
static void add(cJSON *body, const char *name, cJSON *item) {
    const char *dot = strchr(name, '.');
    char first[32];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(name, "."), name);
    cJSON_AddItemToObject(dot ? cJSON_AddObjectToObject(body, first) : body, dot ? dot + 1 : name,
                          item);
}

char *llm_request(const struct llm_config *c, const struct llm_message *m, int n, int caps,
                  bool bare) {
    const struct wire *wire = llm_wire(c->api);
    cJSON *body = cJSON_CreateObject();
    message_text(body, "model", c->model, strlen(c->model));
    wire->messages(body, m, n);
    add(body, c->old_max_tokens && c->api == LLM_CHAT ? "max_tokens" : wire->cap,
        cJSON_CreateNumber(c->max_tokens * caps));
    if (!isnan(c->temperature)) add(body, "temperature", cJSON_CreateNumber(c->temperature));
    if (*c->effort) add(body, wire->effort, cJSON_CreateString(c->effort));
    if (!isnan(c->seed) && wire->seed) add(body, wire->seed, cJSON_CreateNumber(c->seed));
    char *most = cJSON_PrintUnformatted(body);
    char *text = text_format("%.*s,%s%s}", (int)strlen(most) - 1, most, wire->fixed,
                             bare || !wire->usage ? "" : wire->usage);
    cJSON_Delete(body);
    free(most);
    return text;
}
