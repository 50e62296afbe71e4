/* search_repair.c: a chain of turns that mends what failed, and improves what works.
 *
 * Chain A is the attempts rR aA of all rounds.  A turn that failed is shown with its evidence, to
 * be mended; after `turns` failures in a row the chain leaves that line and goes back to the best
 * it knows.  What works is improved from the chain's best, which need not be its last. */
#include "gen/search.h"
#include "base/error.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

struct chain {
    int n;
    const struct attempt **turn;   /* as they were asked, by round */
    const struct attempt **result; /* what was measured for each; NULL if that is not known */
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

/* Number of the first turn of the failures that the chain ends in: the one after which only repairs
 * were asked for, and none worked. */
static int line_start(const struct chain *c) {
    int i = c->n - 1;
    while (i > 0 && !strcmp(json_text(c->turn[i]->gen, "ask", ""), "repair") && !worked(c, i - 1))
        i--;
    return i;
}

/* What is to be mended: the last failure, or the last that has code if an answer since then had
 * none (the ledger tells of that one). */
static const struct attempt *to_mend(const struct chain *c, int start) {
    for (int i = c->n - 1; i >= start; i--)
        if (c->result[i] && !strcmp(c->result[i]->outcome, "code")) return c->result[i];
    return c->result[c->n - 1];
}

/* The best that worked in the chain; NULL if nothing did. */
static const struct attempt *best_of(const struct chain *c) {
    const struct attempt *best = NULL;
    for (int i = 0; i < c->n; i++)
        if (worked(c, i) && (!best || attempt_better(c->result[i], best))) best = c->result[i];
    return best;
}

/* The best that worked in any chain of the mode; NULL if nothing did. */
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
