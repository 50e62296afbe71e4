/* call.c: one call: send requests until one is answered.  See llm.h. */
#define _GNU_SOURCE
#include "base/error.h"
#include "base/json.h"
#include "llm/wire.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

struct call {
    const struct llm_config *c;
    llm_keep *keep;
    llm_progress *progress;
    void *context;
    double began;
    struct llm_usage sum;
    bool unknown;                     /* an answer came without its usage */
    int tries, of_body, maybe_billed; /* requests; of_body: with the current body */
};

struct verdict { /* the judgment of one try */
    struct llm_answer *answer;
    bool again, starved; /* again: retry; starved: reasoning used up the cap */
    bool refuses_field;  /* the server does not know stream_options */
    double wait;         /* seconds that the server asks for; NAN: none */
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double random_unit(void) {
    unsigned x = 0;
    if (getrandom(&x, sizeof x, 0) != sizeof x) x = (unsigned)getpid() * 2654435761u;
    return (double)x / 4294967296.0;
}

double llm_backoff(double base, int done, double random) {
    double wait = base * (double)(1 << (done < 5 ? done - 1 : 4));
    return wait * (1 - 0.25 * random);
}

static void sleep_for(double seconds) {
    struct timespec t = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
    while (nanosleep(&t, &t)) continue;
}

/* Append to the sentence in a->why; cut it at the buffer's end. */
__attribute__((format(printf, 2, 3))) static void more(struct llm_answer *a, const char *format,
                                                       ...) {
    size_t n = strlen(a->why);
    va_list ap;
    va_start(ap, format);
    vsnprintf(a->why + n, sizeof a->why - n, format, ap);
    va_end(ap);
}

/* Judge an error status: what the server says, and whether to retry. */
static void judge_status(const struct http_reply *reply, struct verdict *v) {
    struct fault f = {0};
    if (reply->status < 400) {
        const char *to = *reply->redirect ? reply->redirect : "nowhere";
        v->answer =
            answer_failed(KP_USAGE,
                          "status %ld points to %s, and redirects are not followed: if that is "
                          "right, put it into the base URL",
                          reply->status, to);
        return;
    }
    fault_body(&f, reply->status, reply->body.s ? reply->body.s : "", reply->body.n);
    v->answer = fault_answer(&f);
    v->again = fault_retry(&f);
    v->wait = http_wait(json_text(reply->headers, "retry-after-ms", ""),
                        json_text(reply->headers, "retry-after", ""), time(NULL));
    /* Follow the server's x-should-retry, except that a wrong key or prompt stays wrong. */
    const char *should = json_text(reply->headers, "x-should-retry", "");
    if (!strcasecmp(should, "false")) v->again = false;
    bool wrong = (f.status >= 400 && f.status <= 404) || f.status == 413 || f.status == 422;
    if (!strcasecmp(should, "true")) v->again = !wrong;
}

/* Judge one response. */
static struct verdict judge(const struct http_reply *reply, struct llm_reader *r) {
    struct verdict v = {.wait = NAN};
    const char *body = reply->body.s ? reply->body.s : "";
    if (reply->status == 0) {
        v.answer = answer_failed(KP_MACHINE, "%s: check the base URL and the server", reply->error);
        v.again = reply->again;
        v.answer->maybe_billed = reply->sent; /* the model may have started on it */
    } else if (reply->status < 200 || reply->status > 299) {
        judge_status(reply, &v);
    } else if (reply->foreign) {
        char says[160];
        text_excerpt(says, sizeof says, body, reply->body.n);
        v.answer = answer_failed(
            KP_MACHINE, "answers with %s, neither a stream nor JSON (%s): check the base URL",
            json_text(reply->headers, "content-type", ""), says);
    } else {
        r->torn = *reply->error;
        if (!reply->sse && reply->body.n && !r->torn) reader_whole(r, body, reply->body.n);
        bool stream_says = r->fault.any || r->broken;
        v.answer = reader_end(r);
        v.again = r->again;
        v.starved = v.answer->outcome == LLM_CUT && r->stop == STOP_CAP && !*v.answer->text;
        /* A model may think for long before its first word, and that is billed. */
        if (v.answer->outcome == LLM_FAILED && !stream_says) v.answer->maybe_billed = 1;
        if (*reply->error && v.answer->outcome == LLM_FAILED && !stream_says) {
            snprintf(v.answer->why, sizeof v.answer->why, "the answer broke off: %s", reply->error);
            v.again = reply->again;
        }
        return v;
    }
    struct llm_answer *none = reader_end(r); /* frees the reader */
    llm_answer_free(none);
    return v;
}

/* Remove a key from an answer.  The body is clean already, unless the server split the key over
 * several pieces (`leaked`): then the body is dropped because it holds them. */
static void redact(struct llm_answer *a, bool leaked, struct http_reply *reply) {
    key_redact(a->text, strlen(a->text));
    key_redact(a->reasoning, strlen(a->reasoning));
    key_redact(a->why, strlen(a->why));
    key_redact(a->model, strlen(a->model));
    if (!leaked) return;
    text_clear(&reply->body);
    a->outcome = LLM_INVALID;
    snprintf(a->why, sizeof a->why,
             "the answer holds the key: this server is not to be trusted with it");
}

/* Seconds to wait before the next try, or that there is none. */
static double next_wait(const struct call *k, struct verdict *v) {
    double wait =
        isnan(v->wait) ? llm_backoff(k->c->backoff_seconds, k->of_body, random_unit()) : v->wait;
    if (!v->again) return 0;
    v->again = false;
    if (now() - k->began + wait >= k->c->call_seconds)
        more(v->answer, " (LLM_SECONDS=%g are over%s)", k->c->call_seconds,
             isnan(v->wait) ? "" : ", or would be: it asks to wait");
    else if (v->wait > 120)
        more(v->answer, " (it asks to wait %.0f s)", v->wait);
    else if (k->of_body >= k->c->tries)
        more(v->answer, " (%d %s)", k->tries, k->tries == 1 ? "try" : "tries");
    else
        v->again = true;
    return wait;
}

static const char usage_field[] = ",\"stream_options\":{\"include_usage\":true}";

/* Warn where the server counts far fewer tokens than the body must have: it has cut the prompt. */
static void check_prompt(const struct call *k, const char *body, const struct llm_answer *a) {
    enum { SHORT = 8192, BYTES_A_TOKEN = 8 };
    size_t n = strlen(body);
    if (a->outcome != LLM_FAILED && a->usage.known && n > SHORT &&
        a->usage.input * BYTES_A_TOKEN < (double)n)
        warn("%s counts %.0f tokens in a request of %zu bytes, so it has cut the prompt: raise the "
             "context length of the server",
             k->c->host, a->usage.input, n);
}

/* Send a body once, hand the try to the caller to record, and wait if another try follows. */
static struct verdict try_once(struct call *k, const char *body, bool may_double) {
    struct llm_reader r;
    struct http_reply reply;
    reader_start(&r, k->c->api);
    http_post(k->c, body, fmax(0.001, k->c->call_seconds - (now() - k->began)), &r, k->progress,
              k->context, &reply);
    if (reply.body.s) reply.body.n = key_redact(reply.body.s, reply.body.n);
    struct verdict v = judge(&reply, &r);
    struct llm_answer *a = v.answer;
    redact(a, r.leaked, &reply);
    k->tries++;
    k->of_body++;
    if (a->outcome == LLM_FAILED) {
        char *says = strdup(a->why);
        if (!says) die(KP_MACHINE, "out of memory");
        snprintf(a->why, sizeof a->why, "%s: %s", k->c->host, says);
        free(says);
    }
    v.refuses_field = a->outcome == LLM_FAILED && (reply.status == 400 || reply.status == 422) &&
                      strstr(body, usage_field) && reply.body.n &&
                      strstr(reply.body.s, "stream_options");
    double wait = next_wait(k, &v);
    v.starved &= may_double && a->outcome == LLM_CUT;
    k->unknown |= a->outcome != LLM_FAILED && !a->usage.known;
    usage_add(&k->sum, &a->usage);
    check_prompt(k, body, a);
    a->tries = k->tries;
    a->maybe_billed = k->maybe_billed += a->maybe_billed;
    a->seconds = reply.seconds;
    a->will_retry = v.again || v.starved || v.refuses_field;
    const struct llm_try t = {.number = k->tries,
                              .request = body,
                              .status = reply.status,
                              .headers = reply.headers,
                              .response = reply.body.s ? reply.body.s : "",
                              .response_size = reply.body.n,
                              .sse = reply.sse,
                              .error = reply.error,
                              .seconds = reply.seconds,
                              .answer = a,
                              .next_cap = may_double && !v.starved ? 1 : 2};
    if (k->keep) k->keep(k->context, &t);
    http_free(&reply);
    if (v.again) sleep_for(wait);
    return v;
}

/* Send a body until it is answered.  *starved: reasoning used up the token cap. */
static struct llm_answer *try_on(struct call *k, const char *body, bool may_double, bool *starved) {
    char *bare = NULL; /* the body without the field that the server refuses */
    for (k->of_body = 0;;) {
        struct verdict v = try_once(k, bare ? bare : body, may_double);
        *starved = v.starved;
        if (v.refuses_field) {
            const char *at = strstr(body, usage_field);
            bare = text_format("%.*s%s", (int)(at - body), body, at + strlen(usage_field));
        } else if (!v.again) {
            free(bare);
            return v.answer;
        }
        llm_answer_free(v.answer);
    }
}

/* The request with twice the token cap; NULL if it has none.  Free it. */
static char *doubled(const char *request) {
    static const char *const names[] = {"max_completion_tokens", "max_output_tokens", "max_tokens"};
    cJSON *json = cJSON_ParseWithOpts(request, NULL, 1);
    char *text = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !text; i++) {
        cJSON *cap = cJSON_GetObjectItemCaseSensitive(json, names[i]);
        if (!cJSON_IsNumber(cap)) continue;
        cJSON_SetNumberValue(cap, cap->valuedouble * 2);
        text = cJSON_PrintUnformatted(json);
        if (!text) die(KP_MACHINE, "out of memory");
    }
    cJSON_Delete(json);
    return text;
}

struct llm_answer *llm_call(const struct llm_config *c, const char *request, llm_keep *keep,
                            llm_progress *progress, void *context) {
    struct call k = {
        .c = c, .keep = keep, .progress = progress, .context = context, .began = now()};
    if (!llm_wire(c->api))
        return answer_failed(KP_USAGE, "LLM=replay:%s answers no requests", c->model);
    if (key_within(request, strlen(request)))
        return answer_failed(KP_USAGE, "the prompt holds the key in %s: take it out", c->key_env);
    bool starved = false;
    struct llm_answer *a = try_on(&k, request, true, &starved);
    char *larger = starved ? doubled(request) : NULL;
    if (larger) {
        struct llm_answer *second = try_on(&k, larger, false, &starved);
        bool better = second->outcome != LLM_FAILED;
        llm_answer_free(better ? a : second);
        if (better) a = second;
        free(larger);
    }
    a->usage = k.sum;
    a->usage.known = k.sum.known && !k.unknown;
    if (!k.sum.known) a->usage.cost = NAN;
    a->seconds = now() - k.began;
    a->tries = k.tries;
    a->maybe_billed = k.maybe_billed;
    a->will_retry = false;
    return a;
}
