/* billed_call.c: see billed_call.h. */
#include "llm/billed_call.h"
#include "llm/budget.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "llm/transcript.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char ledger[] = "build/attempts/ledger", prices[] = "harness/llm/prices.json";

struct call {
    const struct billed_call *p;
    const char *request;
    struct price price;
    bool open;         /* a try is reserved */
    int billed;        /* tries so far that may have been billed without a stated usage */
    double cost, most; /* most: tokens of the next try's answer */
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

/* Reserve the worst case of a try with this cap.  The disk comes first: a failure there leaves
 * no entry in the ledger. */
static void reserve(struct call *c, double cap) {
    const struct billed_call *p = c->p;
    if (p->transcript) transcript_reserve(strlen(c->request), cap);
    c->most = cap;
    budget_reserve(ledger, p->gpu, p->task, p->name, &c->price, tokens_bound(p->message, p->n),
                   cap);
    c->open = true;
}

static void settle(struct call *c, bool unknown, const struct llm_usage *u, double cost,
                   double seconds) {
    const struct llm_usage none = {.known = !unknown, .cost = NAN};
    budget_settle(ledger, u->known ? u : &none, cost, seconds);
    c->open = false;
}

/* After each try: record it, settle its cost, and reserve for the next try if there is one. */
static void keep(void *context, const struct llm_try *t) {
    struct call *c = context;
    const struct llm_answer *a = t->answer;
    bool unknown = a->maybe_billed > c->billed || (a->outcome != LLM_FAILED && !a->usage.known);
    double cost = a->usage.known ? price_cost(&c->price, &a->usage) : unknown ? NAN : 0;
    if (c->p->transcript) transcript_append(c->p->transcript, c->p->llm, t, cost);
    settle(c, unknown, &a->usage, cost, t->seconds);
    c->billed = a->maybe_billed;
    c->cost += cost;
    if (a->will_retry) reserve(c, t->next_cap * (double)c->p->llm->max_tokens);
}

/* Note what a killed call would have used, and show it.  A model that reasons in secret sends
 * nothing, so time counts, too. */
static void show_progress(void *context, double seconds, size_t bytes) {
    enum { TOKENS_A_SECOND = 100 };
    const struct call *c = context;
    budget_note(fmin(fmax((double)bytes / BYTES_A_TOKEN, seconds * TOKENS_A_SECOND), c->most));
    if (!c->p->progress) return;
    struct llm_usage so_far = {.known = true, .output = (double)bytes / 4, .cost = NAN};
    double cost = price_cost(&c->price, &so_far);
    fprintf(stderr, "\r%s/%s %s: about %.0f tokens, %.0f s", c->p->gpu, c->p->task, c->p->name,
            so_far.output, seconds);
    if (cost >= 0) fprintf(stderr, ", %.3f USD", c->cost + cost);
}

/* The transcript's answer to this question or, with `any`, to another one; NULL if there is none.
 */
static struct llm_answer *recorded(struct billed_call *p, const char *path, bool any) {
    char sha[65], date[32], model[128];
    struct llm_answer *a = transcript_answer(path, sha, date, model);
    if (!a) return NULL;
    bool same = p->llm->api == LLM_REPLAY || !strncmp(model, p->llm->model, sizeof model - 1);
    for (int i = 0; i < p->n; i++) same &= transcript_asked(path, &p->message[i]);
    if (!same && !any) {
        llm_answer_free(a);
        return NULL;
    }
    if (!same) warn("%s answers an earlier prompt; it is used all the same", path);
    p->other = !same;
    strcpy(p->request_sha256, sha);
    strcpy(p->date, date);
    strcpy(p->model, model);
    transcript_sums(path, &p->cost, &p->seconds);
    return a;
}

/* Call the model; end the program if there is no answer. */
static struct llm_answer *called(struct billed_call *p) {
    llm_need_key(p->llm);
    for (const char *folder = "build"; folder;
         folder = strchr(folder, '/') ? NULL : "build/attempts")
        if (mkdir(folder, 0777) && errno != EEXIST)
            die(KP_IO, "%s: cannot be made: %s", folder, strerror(errno));
    if (p->asked_path) file_replace(p->asked_path, p->asked);
    char *request = llm_request(p->llm, p->message, p->n, 1);
    struct call c = {.p = p, .request = request, .price = price_find(prices, p->llm)};
    reserve(&c, (double)p->llm->max_tokens);
    struct llm_answer *a = llm_call(p->llm, request, keep, show_progress, &c);
    if (p->progress) fprintf(stderr, "\r\033[K");
    if (c.open) settle(&c, false, &(struct llm_usage){.cost = NAN}, 0, 0); /* nothing was sent */
    if (a->for_all) budget_stop(ledger);
    if (a->outcome == LLM_FAILED)
        die(a->exit_code, "%s/%s %s: %s", p->gpu, p->task, p->name, a->why);
    text_sha256(request, strlen(request), p->request_sha256);
    snprintf(p->model, sizeof p->model, "%.127s", p->llm->model);
    p->cost = c.cost;
    p->seconds = a->seconds;
    free(request);
    return a;
}

/* The answer in a transcript of LLM=replay, which becomes this attempt's.  A different one there is
 * moved aside: its answers were billed. */
static struct llm_answer *replayed(struct billed_call *p) {
    char *from = text_format("%s/%s", p->llm->model, p->replay);
    struct llm_answer *a = recorded(p, from, true);
    if (!a) die(KP_INPUT, "%s: no transcript of this to replay", from);
    if (p->transcript && strcmp(from, p->transcript)) {
        char *text = file_read(from, NULL), *there = file_read(p->transcript, NULL);
        char *aside = text_format("%s.before", p->transcript);
        if (*there && strcmp(text, there)) {
            if (rename(p->transcript, aside))
                die(KP_IO, "%s: cannot be kept as %s: %s", p->transcript, aside, strerror(errno));
            warn("%s was of another call: it is %s now", p->transcript, aside);
        }
        file_replace(p->transcript, text);
        free(aside);
        free(there);
        free(text);
    }
    free(from);
    return a;
}

struct llm_answer *billed_answer(struct billed_call *p) {
    if (p->transcript) transcript_hold(p->transcript);
    if (p->llm->api == LLM_REPLAY) return replayed(p);
    struct llm_answer *a = p->transcript ? recorded(p, p->transcript, p->any) : NULL;
    if (a) return a;
    a = called(p);
    if (!p->transcript) return a;
    llm_answer_free(a); /* read it from the transcript, as the next run would */
    if (!(a = recorded(p, p->transcript, true)))
        die(KP_BUG, "%s: the answer was not kept", p->transcript);
    return a;
}
