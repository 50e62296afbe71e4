/* fault.c: read the errors that servers state, and decide what to do. */
#define _GNU_SOURCE
#include "base/error.h"
#include "llm/wire.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words of "type" and "code", and the HTTP status with the same meaning: inside a stream, whose
 * status was 200, there are only words.  402 stands for an empty account and 413 for a prompt
 * that is too long, whatever status they come with. */
static const struct {
    const char *word;
    long status;
} words[] = {
    {"insufficient_quota", 402},
    {"credit_balance_exhausted", 402},
    {"billing_error", 402},
    {"context_length_exceeded", 413},
    {"exceed_context_size_error", 413},
    {"request_too_large", 413},
    {"overloaded_error", 529},
    {"rate_limit_error", 429},
    {"rate_limit_exceeded", 429},
    {"slow_down", 429},
    {"api_error", 500},
    {"server_error", 500},
    {"internal_server_error", 500},
    {"timeout_error", 504},
    {"authentication_error", 401},
    {"invalid_api_key", 401},
    {"permission_error", 403},
    {"not_found_error", 404},
    {"model_not_found", 404},
    {"invalid_request_error", 400},
    {"invalid_prompt", 400},
};

/* The same of messages: where there are no such words, and for a status that says as little. */
static const struct {
    const char *words;
    long status;
} messages[] = {
    {"credit balance", 402},         {"insufficient balance", 402}, {"insufficient credit", 402},
    {"maximum context length", 413}, {"context window", 413},       {"context limit", 413},
    {"prompt is too long", 413},
};

/* 0 if the word is none of these. */
static long status_of(const char *word) {
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(word, words[i].word)) return words[i].status;
    return 0;
}

/* A member as one short line.  Some servers send "code" as a number. */
static void take(char *out, size_t room, const cJSON *object, const char *key) {
    const cJSON *v = wire_get(object, key);
    if (cJSON_IsString(v))
        text_excerpt(out, room, v->valuestring, strlen(v->valuestring));
    else if (cJSON_IsNumber(v))
        snprintf(out, room, "%.15g", v->valuedouble);
}

/* Derive the status from the words where they say more. */
static void weigh(struct fault *f) {
    long type = status_of(f->type), code = status_of(f->code);
    if (type == 402 || code == 402)
        f->status = 402;
    else if (type == 413 || code == 413)
        f->status = 413;
    else if (!f->status) {
        char *end;
        double number = strtod(f->code, &end);
        bool plain = end != f->code && !*end && number >= 400 && number < 600;
        f->status = code ? code : plain ? (long)number : type;
    }
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++)
        if ((f->status == 0 || f->status == 400) && strcasestr(f->message, messages[i].words))
            f->status = messages[i].status;
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
    cJSON *json = wire_parse(body, n);
    const cJSON *error = wire_get(json, "error");
    f->any = true;
    f->http = f->status = status;
    if (cJSON_IsObject(error) || cJSON_IsString(error))
        fault_read(f, error);
    else if (cJSON_IsObject(json))
        fault_read(f, json);
    if (!*f->message) text_excerpt(f->message, sizeof f->message, body, n);
    cJSON_Delete(json);
}

bool fault_retry(const struct fault *f) {
    long s = f->status;
    return s == 0 || s == 408 || s == 409 || s == 429 || s >= 500;
}

int fault_exit(const struct fault *f) {
    long s = f->status;
    if (s == 413) return KP_INPUT;
    return s == 402 || fault_retry(f) ? KP_MACHINE : KP_USAGE;
}

void fault_text(const struct fault *f, char *out, size_t room) {
    char status[16] = "";
    const char *word = *f->code && strcspn(f->code, "0123456789") ? f->code : f->type;
    if (f->http) snprintf(status, sizeof status, " %ld", f->http);
    snprintf(out, room, "error%s%s%s%s%s", status, *word ? " " : "", word, *f->message ? ": " : "",
             f->message);
}

const char *fault_advice(const struct fault *f) {
    switch (f->status) {
    case 400:
    case 422: return "check the model's name and the LLM_ settings";
    case 401:
    case 403: return "check the key";
    case 402: return "add credit, or use another key";
    case 404: return "check the model's name and the base URL";
    case 413:
        return "shorten the prompt, or lower LLM_MAX_TOKENS, which takes its part of the context";
    default: return fault_retry(f) ? "try again later" : "check the base URL";
    }
}
