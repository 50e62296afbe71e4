/* search.c: options, and code that the modes share; see search.h. */
#define _GNU_SOURCE
#include "gen/search.h"
#include "gen/prompt_parts.h"
#include "base/code_normal.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Options ---------------------------------------------------------------------- */

/* A number from the environment; the default if it is unset or empty.  KP_USAGE unless it is in
 * [low,high]. */
static double number_of(const char *name, double otherwise, double low, double high, bool whole) {
    const char *text = getenv(name);
    if (!text || !*text) return otherwise;
    char *end;
    errno = 0;
    double x = strtod(text, &end);
    if (*end || errno || !(x >= low && x <= high) || (whole && x != floor(x)))
        die(KP_USAGE, "%s=%.40s: expected a %snumber from %g to %g", name, text,
            whole ? "whole " : "", low, high);
    return x;
}

void search_options_read(struct search_options *o) {
    o->width = (int)number_of("WIDTH", 6, 1, 10000, true);
    o->seed_kernel = number_of("SEED_KERNEL", 0, 0, 1, true) > 0;
    o->turns = (int)number_of("TURNS", 3, 1, 1000, true);
    o->tau = number_of("TAU", 0.5, 1e-6, 1e6, false);
    o->buckets = (int)number_of("BUCKETS", 5, 1, 1000, true);
    o->ideas = (int)number_of("IDEAS", 3, 1, 32, true);
    o->seed = getenv("SEARCH_SEED");
    if (!o->seed || !*o->seed) o->seed = "0";
}

/* ---- Earlier attempts ------------------------------------------------------------- */

bool search_earlier(const struct search *s, const struct attempt *a) {
    bool unknown = !strcmp(a->outcome, "code") && !*a->verdict;
    return !strcmp(a->mode, s->mode) && a->round < s->round && !unknown;
}

/* The first attempt with this name that the turn may depend on: of `past`, or of another mode. */
static const struct attempt *find(const struct search *s, const char *name) {
    char mode[24], why[300];
    int round, index;
    for (int i = 0; i < s->past->n; i++)
        if (!strcmp(s->past->a[i].name, name))
            return search_earlier(s, &s->past->a[i]) ? &s->past->a[i] : NULL;
    if (!s->cell->root || !attempt_parse(name, mode, &round, &index) || !strcmp(mode, s->mode))
        return NULL;
    struct attempt *other = malloc(sizeof *other);
    if (!other) die(KP_MACHINE, "out of memory");
    if (attempt_load(s->cell->root, name, s->cell->gpu, s->cell->task->name, other, why,
                     sizeof why))
        return other;
    warn("%s, which another attempt repeats, %s: left out", name, why);
    free(other);
    return NULL;
}

const struct attempt *search_resolve(const struct search *s, const struct attempt *a) {
    if (strcmp(a->outcome, "duplicate")) return a;
    const struct attempt *first = find(s, a->same_as);
    return first && !strcmp(first->outcome, "code") && *first->verdict ? first : NULL;
}

/* Whether the pool has a kernel with this hash; an unknown hash equals no other. */
static bool in_pool(const struct attempt *const *pool, int n, const char *hash) {
    for (int i = 0; i < n; i++)
        if (*hash && !strcmp(pool[i]->code_hash, hash)) return true;
    return false;
}

/* The hash of the current kernel, computed as for attempts; "" if it is unknown. */
static void current_hash(const struct search *s, char hash[65]) {
    strcpy(hash, s->cell->current->code_hash);
    if (*hash || !s->cell->kernel) return;
    char *normal = code_normal(s->cell->kernel);
    text_sha256(normal, strlen(normal), hash);
    free(normal);
}

int search_pool(const struct search *s, const struct attempt ***pool) {
    const struct attempt *current = s->cell->current;
    int n = 0;
    *pool = calloc((size_t)s->past->n + 1, sizeof **pool);
    if (!*pool) die(KP_MACHINE, "out of memory");
    for (int i = 0; i < s->past->n; i++) {
        if (!search_earlier(s, &s->past->a[i])) continue;
        const struct attempt *a = search_resolve(s, &s->past->a[i]);
        if (a && attempt_ok(a) && !in_pool(*pool, n, a->code_hash)) (*pool)[n++] = a;
    }
    if (current && attempt_ok(current)) {
        char hash[65];
        current_hash(s, hash);
        if (!in_pool(*pool, n, hash)) (*pool)[n++] = current;
    }
    return n;
}

/* ---- Ledgers ---------------------------------------------------------------------- */

const char *search_outcome(const struct search *s, const struct attempt *a) {
    const struct attempt *r = search_resolve(s, a);
    if (r && r != a) return text_format("the same kernel as %s: %s", r->name, search_outcome(s, r));
    if (attempt_ok(a))
        return text_format("ok, %.3fx (%.3f to %.3f), %s", a->ratio, a->low, a->high, a->class);
    char *line = text_format("%s%s%.200s", *a->verdict ? a->verdict : a->outcome,
                             *a->reason ? ": " : "", a->reason);
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < ' ') *p = ' ';
    return line;
}

enum { MOST_ANALYSIS = 600 };

const char *search_ledger(const struct search *s, const struct attempt *const *a, int n) {
    enum { MOST = 40 };
    int first = n > MOST ? n - MOST : 0;
    char *text = first ? text_format("- %d earlier ones are not listed\n", first) : NULL;
    for (int i = first; i < n; i++) {
        const char *analysis = json_text(a[i]->gen, "analysis", "");
        char *line = text_one_line(analysis, MOST_ANALYSIS);
        char *longer = text_format("%s- %s (%s): %s\n%s%s%s", text ? text : "", a[i]->name,
                                   json_text(a[i]->gen, "ask", "?"), search_outcome(s, a[i]),
                                   *line ? "  its analysis: " : "", line, *line ? "\n" : "");
        free(line);
        free(text);
        text = longer;
    }
    return text;
}

/* ---- Turns ------------------------------------------------------------------------ */

void search_fresh(struct search *s) {
    s->turn->ask = "one_shot";
    s->turn->nshown = 0;
}

void search_optimise(struct search *s, const struct attempt *a) {
    s->turn->ask = "optimise";
    s->turn->shown[0] = a;
    s->turn->nshown = 1;
}
