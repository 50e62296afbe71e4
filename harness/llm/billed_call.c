/* billed_call.c: see billed_call.h. */
#include "llm/billed_call.h"
#include "llm/budget.h"
#include "base/error.h"
#include "llm/transcript.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char ledger[] = "build/attempts/ledger", prices[] = "harness/llm/prices.json";

struct call {
    const struct billed_call *p;
    const char *request;
    struct price price;
    long ticket;      /* of the next try; 0: none */
    int billed;       /* tries so far that may have been billed without a stated usage */
    double cost, cap; /* cap: of the next try, in tokens */
};

/* English and code average four bytes of ASCII a token, and no tokenizer in use makes less than
 * three of our prompts; beyond ASCII a byte may be a token.  Each message adds a few tokens for its
 * role. */
double tokens_bound(const struct llm_message *m, int n) {
    double bound = 16;
    for (int i = 0; i < n; i++) {
        bound += 16;
        for (const char *p = m[i].text; *p; p++) bound += (unsigned char)*p < 0x80 ? 1 / 3.0 : 1;
    }
    return ceil(bound);
}

static const struct llm_usage nothing = {.known = true, .cost = NAN}, unsaid = {.cost = NAN};

/* Reserve the worst case of a try with this cap.  The disk comes first: a failure there leaves
 * no entry in the ledger. */
static void reserve(struct call *c, double cap) {
    const struct billed_call *p = c->p;
    if (p->transcript) transcript_reserve(strlen(c->request), cap);
    c->cap = cap;
    c->ticket = budget_reserve(ledger, p->gpu, p->task, p->name, &c->price,
                               tokens_bound(p->message, p->n), cap);
}

/* After each try: record it, settle its cost, and reserve for the next try if there is one. */
static void keep(void *context, const struct llm_try *t) {
    struct call *c = context;
    const struct llm_answer *a = t->answer;
    bool unknown = a->maybe_billed > c->billed || (a->outcome != LLM_FAILED && !a->usage.known);
    double cost = a->usage.known ? price_cost(&c->price, &a->usage) : unknown ? NAN : 0;
    if (c->p->transcript) transcript_append(c->p->transcript, c->p->llm, t, cost);
    budget_settle(ledger, c->ticket,
                  a->usage.known ? &a->usage
                  : unknown      ? &unsaid
                                 : &nothing,
                  cost, t->seconds);
    c->billed = a->maybe_billed;
    c->cost += cost;
    c->ticket = 0;
    if (a->will_retry) reserve(c, t->next_cap * (double)c->p->llm->max_tokens);
}

/* Note what a killed call would have used, and show it.  A model that reasons in secret sends
 * nothing, so time counts, too. */
static void show_progress(void *context, double seconds, size_t bytes) {
    enum { TOKENS_A_SECOND = 100 };
    const struct call *c = context;
    budget_note(fmin(fmax((double)bytes / 3, seconds * TOKENS_A_SECOND), c->cap));
    if (!c->p->progress) return;
    struct llm_usage so_far = {.known = true, .output = (double)bytes / 4, .cost = NAN};
    double cost = price_cost(&c->price, &so_far);
    fprintf(stderr, "\r%s/%s %s: about %.0f tokens, %.0f s", c->p->gpu, c->p->task, c->p->name,
            so_far.output, seconds);
    if (cost >= 0) fprintf(stderr, ", %.3f USD", c->cost + cost);
}

struct llm_answer *billed_call(const struct billed_call *p, const char *request, double *cost) {
    struct call c = {.p = p, .request = request, .price = price_find(prices, p->llm)};
    reserve(&c, (double)p->llm->max_tokens);
    struct llm_answer *a = llm_call(p->llm, request, keep, show_progress, &c);
    if (p->progress) fprintf(stderr, "\r\033[K");
    if (c.ticket) budget_settle(ledger, c.ticket, &nothing, 0, 0); /* no request was sent */
    if (a->for_all) budget_stop(ledger);
    *cost = c.cost;
    return a;
}

struct llm_answer *billed_before(const struct billed_call *p, const char *path,
                                 char request_sha256[65], char date[32], char model[128]) {
    struct llm_answer *a = transcript_answer(path, request_sha256, date, model);
    for (int i = 0; a && i < p->n; i++)
        if (!transcript_asked(path, p->message[i].text)) {
            warn("%s no longer matches its prompt (%s message): the answer is used all the same",
                 path, p->message[i].role);
            break;
        }
    return a;
}
