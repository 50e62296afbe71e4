/* call.c: one question to a model; see billed_answer in llm.h. */
#define _GNU_SOURCE
#include "llm/budget.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "llm/transcript.h"
#include "llm/wire.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char ledger[] = "build/attempts/ledger", prices[] = "harness/llm/prices.json";

struct call {
    const struct billed_call *p;
    const struct llm_config *c;
    struct price price;
    double began, cost;    /* cost: of the tries so far */
    int tries, of_request; /* requests sent; of_request: this one */
    int cap;               /* x the token cap: what this request may take */
    bool bare;             /* it has no stream_options, which the server does not know */
    bool answered;         /* a try had an answer, if a cut one */
};

struct verdict { /* what came of one try */
    struct llm_answer *answer;
    double wait;                 /* seconds that the server asks for; NAN: none */
    bool again;                  /* worth a retry */
    bool refuses_field, starved; /* starved: reasoning used up the cap */
};

/* Beyond ASCII a byte may be a token.  Each message adds a few for its role. */
double tokens_bound(const struct llm_message *m, int n) {
    double bound = 16;
    for (int i = 0; i < n; i++) {
        bound += 16;
        for (const char *p = m[i].text; *p; p++)
            bound += (unsigned char)*p < 0x80 ? 1.0 / BYTES_A_TOKEN : 1;
    }
    return ceil(bound);
}

/* ---- One try ---- */

/* Note what a killed call would have used, and show it.  A model that reasons in secret sends
 * nothing, so time counts, too. */
static void show_progress(void *context, double seconds, size_t bytes) {
    enum { TOKENS_A_SECOND = 100 };
    const struct call *k = context;
    double most = k->cap * k->c->max_tokens;
    budget_note(fmin(fmax((double)bytes / BYTES_A_TOKEN, seconds * TOKENS_A_SECOND), most));
    if (!k->p->progress) return;
    struct llm_usage so_far = {.known = true, .output = (double)bytes / 4, .cost = NAN};
    double cost = price_cost(&k->price, &so_far);
    fprintf(stderr, "\r%s/%s %s: about %.0f tokens, %.0f s", k->p->gpu, k->p->task, k->p->name,
            so_far.output, seconds);
    if (cost >= 0) fprintf(stderr, ", %.3f USD", k->cost + cost);
}

/* Judge a response that is not an answer. */
static void judge_status(const struct http_reply *reply, struct verdict *v) {
    const char *body = reply->body.s ? reply->body.s : "";
    if (reply->status == 0) {
        v->answer = answer_new(LLM_FAILED, KP_MACHINE, "%s: check the base URL and the server",
                               reply->error);
        v->again = reply->again;
        v->answer->maybe_billed = reply->sent; /* the model may have started on it */
    } else if (reply->foreign) {
        char says[160];
        text_excerpt(says, sizeof says, body, reply->body.n);
        v->answer =
            answer_new(LLM_FAILED, KP_MACHINE,
                       "answers with %s, neither a stream nor JSON (%s): check the base URL",
                       json_text(reply->headers, "content-type", ""), says);
    } else if (reply->status < 400) {
        v->answer = answer_new(LLM_FAILED, KP_USAGE,
                               "status %ld points to %s, and redirects are not followed: if that "
                               "is right, put it into the base URL",
                               reply->status, *reply->redirect ? reply->redirect : "nowhere");
    } else {
        struct fault f = {0};
        fault_body(&f, reply->status, body, reply->body.n);
        v->answer = fault_answer(&f);
        v->again = fault_retry(&f, json_text(reply->headers, "x-should-retry", ""));
        v->wait = reply->wait;
        v->refuses_field =
            (reply->status == 400 || reply->status == 422) && strstr(body, "stream_options");
    }
}

/* Judge one response. */
static struct verdict judge(const struct http_reply *reply, struct llm_reader *r) {
    struct verdict v = {.wait = NAN};
    r->torn = *reply->error;
    if (!reply->sse && !reply->foreign && reply->status / 100 == 2 && reply->body.n && !r->torn)
        reader_whole(r, reply->body.s, reply->body.n);
    bool says = r->fault.any || r->broken; /* the stream itself says why it has no answer */
    v.answer = reader_end(r);
    if (reply->foreign || reply->status / 100 != 2) {
        llm_answer_free(v.answer);
        judge_status(reply, &v);
        return v;
    }
    v.again = r->again;
    v.starved = v.answer->outcome == LLM_CUT && r->stop == STOP_CAP && !*v.answer->text;
    if (v.answer->outcome != LLM_FAILED || says) return v;
    /* A model may think for long before its first word, and that is billed. */
    v.answer->maybe_billed = true;
    if (*reply->error) {
        snprintf(v.answer->why, sizeof v.answer->why, "the answer broke off: %s", reply->error);
        v.again = reply->again;
    }
    return v;
}

/* Remove a key from an answer.  The body is clean already, unless the server split the key over
 * several pieces (`leaked`): then the body is dropped because it holds them. */
static void redact(struct llm_answer *a, bool leaked, struct http_reply *reply) {
    key_redact(a->text, strlen(a->text));
    key_redact(a->why, strlen(a->why));
    if (!leaked) return;
    text_clear(&reply->body);
    a->outcome = LLM_INVALID;
    snprintf(a->why, sizeof a->why,
             "the answer holds the key: this server is not to be trusted with it");
}

double llm_backoff(double base, int done, double random) {
    double wait = base * (double)(1 << (done < 5 ? done - 1 : 4));
    return wait * (1 - 0.25 * random);
}

/* Find the seconds to wait before the next try, or say in the answer why there is none. */
static void plan(const struct call *k, struct verdict *v) {
    char why[128] = "", *said = v->answer->why;
    unsigned x = 0;
    if (!v->again) return;
    bool asks = !isnan(v->wait);
    if (getrandom(&x, sizeof x, 0) != sizeof x) x = (unsigned)getpid() * 2654435761u;
    if (!asks) v->wait = llm_backoff(k->c->backoff_ms / 1000, k->of_request, x / 4294967296.0);
    if (seconds_now() - k->began + v->wait >= k->c->call_seconds)
        snprintf(why, sizeof why, " (LLM_SECONDS=%g are over%s)", k->c->call_seconds,
                 asks ? ", or would be: it asks to wait" : "");
    else if (asks && v->wait > 120)
        snprintf(why, sizeof why, " (it asks to wait %.0f s)", v->wait);
    else if (k->of_request >= k->c->tries)
        snprintf(why, sizeof why, " (%d %s)", k->tries, k->tries == 1 ? "try" : "tries");
    v->again = !*why;
    snprintf(said + strlen(said), sizeof v->answer->why - strlen(said), "%s", why);
}

/* Warn where the server counts far fewer tokens than the request must have: it has cut the prompt.
 */
static void check_prompt(const struct call *k, size_t n, const struct llm_answer *a) {
    enum { SHORT = 8192, BYTES = 8 };
    if (a->outcome != LLM_FAILED && a->usage.known && n > SHORT &&
        a->usage.input * BYTES < (double)n)
        warn("%s counts %.0f tokens in a request of %zu bytes, so it has cut the prompt: raise the "
             "context length of the server",
             k->c->host, a->usage.input, n);
}

/* Reserve the worst case of a request, send it, record what came, and settle.  The disk comes
 * first: a failure there leaves no entry in the ledger. */
static struct verdict try_once(struct call *k, const char *request) {
    const struct billed_call *p = k->p;
    struct llm_reader r;
    struct http_reply reply;
    double cap = k->cap * k->c->max_tokens;
    transcript_reserve(strlen(request), cap);
    budget_reserve(ledger, p->gpu, p->task, p->name, &k->price, tokens_bound(p->message, p->n),
                   cap);
    reader_start(&r, k->c->api);
    http_post(k->c, request, fmax(0.001, k->c->call_seconds - (seconds_now() - k->began)), &r,
              show_progress, k, &reply);
    if (reply.body.s) reply.body.n = key_redact(reply.body.s, reply.body.n);
    struct verdict v = judge(&reply, &r);
    struct llm_answer *a = v.answer;
    redact(a, r.leaked, &reply);
    a->tries = ++k->tries;
    k->of_request++;
    if (a->outcome == LLM_FAILED) {
        char *why = text_format("%s: %s", k->c->host, a->why);
        snprintf(a->why, sizeof a->why, "%s", why);
        free(why);
    }
    plan(k, &v);
    check_prompt(k, strlen(request), a);
    bool unknown = a->maybe_billed || (a->outcome != LLM_FAILED && !a->usage.known);
    double cost = a->usage.known ? price_cost(&k->price, &a->usage) : unknown ? NAN : 0;
    const struct llm_usage none = {.known = !unknown};
    transcript_append(k->c, request, &reply, a, cost);
    budget_settle(ledger, a->usage.known ? &a->usage : &none, cost, reply.seconds);
    k->cost += cost;
    k->answered |= a->outcome != LLM_FAILED;
    http_free(&reply);
    return v;
}

/* ---- One call ---- */

/* The request, without the field that the server refuses. */
static char *request_of(const struct call *k) {
    char *request = llm_request(k->c, k->p->message, k->p->n, k->cap);
    char *field = k->bare ? strstr(request, WIRE_USAGE_FIELD) : NULL, *rest;
    if (!field) return request;
    rest = field + strlen(WIRE_USAGE_FIELD);
    memmove(field, rest, strlen(rest) + 1);
    return request;
}

/* Change the request or wait, as another try needs it; false if there is none. */
static bool goes_on(struct call *k, const struct verdict *v) {
    if (v->refuses_field && k->c->api == LLM_CHAT && !k->bare) {
        k->bare = true;
    } else if (v->starved && k->cap == 1) {
        k->cap = 2;
        k->of_request = 0;
    } else if (v->again) {
        struct timespec t = {(time_t)v->wait, (long)(fmod(v->wait, 1) * 1e9)};
        while (nanosleep(&t, &t)) continue;
    } else {
        return false;
    }
    return true;
}

/* Call the model; end the program if there is no answer. */
static void call(struct billed_call *p) {
    struct call k = {.p = p, .c = p->llm, .cap = 1, .began = seconds_now()};
    llm_need_key(k.c);
    for (const char *folder = "build"; folder;
         folder = strchr(folder, '/') ? NULL : "build/attempts")
        if (mkdir(folder, 0777) && errno != EEXIST)
            die(KP_IO, "%s: cannot be made: %s", folder, strerror(errno));
    if (p->asked_path) file_replace(p->asked_path, p->asked);
    k.price = price_find(prices, k.c);
    for (bool on = true; on;) {
        char *request = request_of(&k);
        if (key_within(request, strlen(request)))
            die(KP_USAGE, "%s/%s %s: the prompt holds the key in %s: take it out", p->gpu, p->task,
                p->name, k.c->key_env);
        struct verdict v = try_once(&k, request);
        on = goes_on(&k, &v);
        if (!on && p->progress) fprintf(stderr, "\r\033[K");
        if (!on && !k.answered && v.answer->for_all) budget_stop(ledger);
        if (!on && !k.answered)
            die(v.answer->exit_code, "%s/%s %s: %s", p->gpu, p->task, p->name, v.answer->why);
        llm_answer_free(v.answer);
        free(request);
    }
}

/* ---- Answers ---- */

/* The transcript's answer to this question or, with `any`, to another one; NULL if there is none.
 */
static struct llm_answer *recorded(struct billed_call *p, const char *path, bool any) {
    struct transcript t = transcript_read(path);
    if (!t.answer) return NULL;
    bool same = p->llm->api == LLM_REPLAY || !strncmp(t.model, p->llm->model, sizeof t.model - 1);
    for (int i = 0; i < p->n; i++) same &= transcript_asked(&t, &p->message[i]);
    if (!same && !any) {
        transcript_free(&t);
        return NULL;
    }
    if (!same) warn("%s answers an earlier prompt; it is used all the same", path);
    p->other = !same;
    strcpy(p->request_sha256, t.request_sha256);
    strcpy(p->date, t.date);
    strcpy(p->model, t.model);
    p->cost = t.cost;
    p->seconds = t.seconds;
    cJSON_Delete(t.request);
    return t.answer;
}

/* The answer in a transcript of LLM=replay, which becomes this attempt's.  A different one there is
 * moved aside: its answers were billed. */
static struct llm_answer *replayed(struct billed_call *p) {
    char *from = text_format("%s/%s", p->llm->model, p->replay);
    struct llm_answer *a = recorded(p, from, true);
    if (!a) die(KP_INPUT, "%s: no transcript of this to replay", from);
    char *text = file_read(from, NULL), *there = file_read(p->transcript, NULL);
    char *aside = text_format("%s.before", p->transcript);
    if (*there && strcmp(text, there)) {
        if (rename(p->transcript, aside))
            die(KP_IO, "%s: cannot be kept as %s: %s", p->transcript, aside, strerror(errno));
        warn("%s was of another call: it is %s now", p->transcript, aside);
    }
    file_update(p->transcript, text);
    free(aside);
    free(there);
    free(text);
    free(from);
    return a;
}

struct llm_answer *billed_answer(struct billed_call *p) {
    transcript_hold(p->transcript);
    if (p->llm->api == LLM_REPLAY) return replayed(p);
    struct llm_answer *a = recorded(p, p->transcript, p->any);
    if (a) return a;
    call(p);
    /* Read it from the transcript, as the next run would. */
    if (!(a = recorded(p, p->transcript, true)))
        die(KP_BUG, "%s: the answer was not kept", p->transcript);
    return a;
}
