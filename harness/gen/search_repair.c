/* search_repair.c: a chain of turns that repairs failures and improves working kernels.
 *
 * Chain A is the attempts rR aA of all rounds.  A failed turn is shown with its evidence and
 * repaired.  After `turns` consecutive failures the chain abandons that line and returns to the
 * best kernel it knows.  Improvement starts from the chain's best kernel, which may not be its
 * last. */
#include "gen/search.h"
#include "base/error.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

struct chain {
    int n;
    const struct attempt **turn;   /* in order of rounds */
    const struct attempt **result; /* the measured result of each; NULL if unknown */
};

static struct chain chain_of(const struct search *s) {
    size_t room = (size_t)s->past->n + 1;
    struct chain c = {0, calloc(room, sizeof *c.turn), calloc(room, sizeof *c.result)};
    if (!c.turn || !c.result) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < s->past->n; i++) {
        const struct attempt *a = &s->past->a[i];
        if (a->index != s->index || !search_earlier(s, a)) continue;
        c.turn[c.n] = a;
        c.result[c.n++] = search_resolve(s, a);
    }
    return c;
}

static bool worked(const struct chain *c, int i) {
    return c->result[i] && attempt_ok(c->result[i]);
}

/* The first turn of the failures at the chain's end: since then only repairs were asked for, and
 * none worked. */
static int line_start(const struct chain *c) {
    int i = c->n - 1;
    while (i > 0 && !strcmp(json_text(c->turn[i]->gen, "ask", ""), "repair") && !worked(c, i - 1))
        i--;
    return i;
}

/* The attempt to repair: the last failure or, if its answer had no code, the last one with code
 * (the ledger reports the failure). */
static const struct attempt *to_mend(const struct chain *c, int start) {
    for (int i = c->n - 1; i >= start; i--)
        if (c->result[i] && !strcmp(c->result[i]->outcome, "code")) return c->result[i];
    return c->result[c->n - 1];
}

/* The best working kernel of the chain; NULL if there is none. */
static const struct attempt *best_of(const struct chain *c) {
    const struct attempt *best = NULL;
    for (int i = 0; i < c->n; i++)
        if (worked(c, i) && (!best || attempt_better(c->result[i], best))) best = c->result[i];
    return best;
}

/* The best working kernel of any chain of the mode; NULL if there is none. */
static const struct attempt *best_of_mode(const struct search *s) {
    const struct attempt *best = NULL;
    for (int i = 0; i < s->past->n; i++) {
        if (!search_earlier(s, &s->past->a[i])) continue;
        const struct attempt *a = search_resolve(s, &s->past->a[i]);
        if (a && attempt_ok(a) && (!best || attempt_better(a, best))) best = a;
    }
    return best;
}

void search_repair(struct search *s) {
    struct chain c = chain_of(s);
    const struct attempt *best = best_of(&c);
    int last = c.n - 1, start = c.n ? line_start(&c) : 0;
    s->turn->ledger = search_ledger(s, c.turn, c.n);
    if (c.n && c.result[last] && !worked(&c, last) && c.n - start < s->o->turns) {
        s->turn->ask = "repair";
        s->turn->failed = to_mend(&c, start);
    } else {
        if (!best && c.n) best = best_of_mode(s);
        if (best)
            search_optimise(s, best);
        else
            search_fresh(s);
    }
    free(c.turn);
    free(c.result);
}
