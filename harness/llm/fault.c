/* fault.c: read the errors that servers state, and decide what to do. */
#define _GNU_SOURCE
#include "llm/wire.h"

#include <strings.h>

static const char no_credit[] = "add credit, or use another key", no_key[] = "check the key",
                  no_model[] = "check the model's name and the base URL",
                  no_setting[] = "check the model's name and the LLM_ settings",
                  no_room[] = "shorten the prompt, or lower LLM_MAX_TOKENS, which takes its part "
                              "of the context";

/* What the words of "type" and "code" mean as an HTTP status: inside a stream, whose status was
 * 200, there are only words.  402 stands for an empty account and 413 for a prompt that is too
 * long, whatever status they come with.  Phrases of messages count where there are no such words,
 * and for a status that says as little.  An error with advice stays as it is if the call is
 * repeated. */
static const struct known {
    long status;
    const char *words, *advice, *phrases[4];
} known[] = {
    {402,
     "insufficient_quota credit_balance_exhausted billing_error",
     no_credit,
     {"credit balance", "insufficient balance", "insufficient credit"}},
    {413,
     "context_length_exceeded exceed_context_size_error request_too_large",
     no_room,
     {"maximum context length", "context window", "context limit", "prompt is too long"}},
    {401, "authentication_error invalid_api_key", no_key, {0}},
    {403, "permission_error", no_key, {0}},
    {404, "not_found_error model_not_found", no_model, {0}},
    {400, "invalid_request_error invalid_prompt", no_setting, {0}},
    {422, "", no_setting, {0}},
    {429, "rate_limit_error rate_limit_exceeded slow_down", NULL, {0}},
    {500, "api_error server_error internal_server_error", NULL, {0}},
    {504, "timeout_error", NULL, {0}},
    {529, "overloaded_error", NULL, {0}},
};

/* What is known of a status or, where that is 0, of a word; NULL: nothing. */
static const struct known *find(long status, const char *word) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (status ? known[i].status == status : text_listed(known[i].words, word))
            return &known[i];
    return NULL;
}

/* A member as one short line.  Some servers send "code" as a number. */
static void take(char *out, size_t room, const cJSON *object, const char *key) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    if (cJSON_IsString(v))
        text_excerpt(out, room, v->valuestring, strlen(v->valuestring));
    else if (cJSON_IsNumber(v))
        snprintf(out, room, "%.15g", v->valuedouble);
}

/* Derive the status from the words where they say more. */
static void weigh(struct fault *f) {
    const struct known *code = find(0, f->code), *type = find(0, f->type);
    long number = strtol(f->code, NULL, 10);
    long says = code ? code->status : number >= 400 && number < 600 ? number : 0;
    if (type && (!says || type->status == 402 || type->status == 413)) says = type->status;
    if (!f->status || says == 402 || says == 413) f->status = says;
    for (size_t i = 0; i < sizeof known / sizeof *known && (!f->status || f->status == 400); i++)
        for (int k = 0; k < 4 && known[i].phrases[k]; k++)
            if (strcasestr(f->message, known[i].phrases[k])) f->status = known[i].status;
}

void fault_read(struct fault *f, const cJSON *error) {
    f->any = true;
    if (cJSON_IsString(error)) {
        text_excerpt(f->message, sizeof f->message, error->valuestring, strlen(error->valuestring));
    } else {
        take(f->type, sizeof f->type, error, "type");
        take(f->code, sizeof f->code, error, "code");
        take(f->message, sizeof f->message, error, "message");
        if (!*f->message) take(f->message, sizeof f->message, error, "detail");
    }
    if (!strcmp(f->type, "error")) f->type[0] = 0; /* carries no information */
    weigh(f);
}

void fault_body(struct fault *f, long status, const char *body, size_t n) {
    cJSON *json = json_foreign(body, n);
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(json, "error");
    f->any = true;
    f->http = f->status = status;
    if (cJSON_IsObject(json))
        fault_read(f, cJSON_IsObject(error) || cJSON_IsString(error) ? error : json);
    if (!*f->message) text_excerpt(f->message, sizeof f->message, body, n);
    cJSON_Delete(json);
}

/* Whether an error passes, if the server does not say. */
static bool passes(long status) {
    return status == 0 || status == 408 || status == 409 || status == 429 || status >= 500;
}

struct llm_answer *fault_answer(const struct fault *f) {
    const char *should = f->should ? f->should : "";
    const struct known *k = find(f->status, "");
    long s = f->status;
    bool later = passes(s), sure = k && k->advice;
    const char *word = *f->code && strcspn(f->code, "0123456789") ? f->code : f->type;
    const char *advice = sure ? k->advice : later ? "try again later" : "check the base URL";
    char status[16] = "";
    if (f->http) snprintf(status, sizeof status, " %ld", f->http);
    int code = s == 413 ? KP_INPUT : later || s == 402 ? KP_MACHINE : KP_USAGE;
    struct llm_answer *a =
        answer_new(LLM_FAILED, code, "error%s%s%s%s%s: %s", status, *word ? " " : "", word,
                   *f->message ? ": " : "", f->message, advice);
    a->again = !sure && strcasecmp(should, "false") && (later || !strcasecmp(should, "true"));
    a->for_all = s == 401 || s == 402 || s == 404;
    return a;
}
