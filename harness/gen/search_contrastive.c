/* search_contrastive.c: show exemplars of different speed side by side.
 *
 * All working kernels so far are put into buckets by the logarithm of their speedup.  Buckets are
 * drawn without replacement, with probabilities proportional to exp((mean - mean of all) / tau),
 * and one member of each is drawn uniformly.  The model sees code that differs in speed, with the
 * speeds. */
#define _GNU_SOURCE
#include "gen/search.h"
#include "base/error.h"
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXEMPLARS = 2 };

struct bucket {
    int n;
    const struct attempt **member;
    double mean; /* of the members' log2 of speedup */
};

/* Sort the pool into at most `most` buckets of equal width between the lowest and the highest
 * speedup, and drop empty ones.  Returns their number.  Kernels of one speed are one bucket. */
static int fill_buckets(const struct attempt *const *pool, int n, int most, struct bucket *bucket) {
    double low = INFINITY, high = -INFINITY;
    int kept = 0;
    for (int i = 0; i < n; i++) {
        low = fmin(low, log2(pool[i]->ratio));
        high = fmax(high, log2(pool[i]->ratio));
    }
    for (int b = 0; b < most; b++) {
        struct bucket *to = &bucket[kept];
        *to = (struct bucket){0, calloc((size_t)n, sizeof *to->member), 0};
        if (!to->member) die(KP_MACHINE, "out of memory");
        for (int i = 0; i < n; i++) {
            double x = log2(pool[i]->ratio);
            int at = high > low ? (int)((x - low) / (high - low) * most) : 0;
            if ((at < most ? at : most - 1) != b) continue;
            to->member[to->n++] = pool[i];
            to->mean += (x - to->mean) / to->n;
        }
        if (to->n > 0)
            kept++;
        else
            free(to->member);
    }
    return kept;
}

/* Draw one of n buckets.  Subtracts the largest mean instead of the mean of all: the ratios of
 * the weights are the same, and no weight overflows. */
static int draw(const struct bucket *bucket, int n, double tau, struct choice *c) {
    double top = -INFINITY, total = 0, at;
    int i = 0;
    for (int b = 0; b < n; b++) top = fmax(top, bucket[b].mean);
    for (int b = 0; b < n; b++) total += exp((bucket[b].mean - top) / tau);
    at = choice_uniform(c) * total;
    while (i < n - 1 && (at -= exp((bucket[i].mean - top) / tau)) >= 0) i++;
    return i;
}

static int by_speed(const void *x, const void *y) {
    const struct attempt *a = *(const struct attempt *const *)x,
                         *b = *(const struct attempt *const *)y;
    return a->ratio != b->ratio ? (a->ratio > b->ratio) - (a->ratio < b->ratio)
                                : strcmp(a->name, b->name);
}

/* Choose exemplars among n > 0 kernels, slowest first. */
static void choose(struct search *s, const struct attempt *const *pool, int n) {
    struct bucket *bucket = calloc((size_t)s->o->buckets, sizeof *bucket);
    char *text =
        text_format("%s %s/%s %s", s->o->seed, s->cell->gpu, s->cell->task->name, s->turn->attempt);
    struct choice c = choice_seed(text);
    if (!bucket) die(KP_MACHINE, "out of memory");
    int left = fill_buckets(pool, n, s->o->buckets, bucket);
    while (left > 0 && s->turn->nshown < EXEMPLARS) {
        int b = draw(bucket, left, s->o->tau, &c);
        int i = (int)(choice_uniform(&c) * bucket[b].n);
        s->turn->shown[s->turn->nshown++] = bucket[b].member[i];
        free(bucket[b].member);
        memmove(&bucket[b], &bucket[b + 1], (size_t)(--left - b) * sizeof *bucket);
    }
    while (left > 0) free(bucket[--left].member);
    qsort(s->turn->shown, (size_t)s->turn->nshown, sizeof *s->turn->shown, by_speed);
    free(bucket);
    free(text);
}

/* All earlier attempts, for a model that has no working kernel to learn from. */
static const char *all_failures(const struct search *s) {
    const struct attempt **failed = calloc((size_t)s->past->n + 1, sizeof *failed);
    int n = 0;
    if (!failed) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < s->past->n; i++)
        if (search_earlier(s, &s->past->a[i])) failed[n++] = &s->past->a[i];
    const char *text = search_ledger(s, failed, n);
    free(failed);
    return text;
}

void search_contrastive(struct search *s) {
    const struct attempt **pool;
    int n = search_pool(s, &pool);
    if (n > 0) {
        s->turn->ask = "contrastive";
        choose(s, pool, n);
    } else {
        search_fresh(s);
        s->turn->ledger = all_failures(s);
    }
    free(pool);
}
