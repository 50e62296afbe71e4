/* search.h: what to ask in the next attempt, given the earlier ones.
 *
 * The functions are pure: they depend on the attempts on disk, the mode, the round and the index.
 * So a search that was killed resumes and asks the same questions.  Of the attempts that the caller
 * passes as `past`, only earlier rounds of the mode and this round's ideas count, so the order in
 * which the attempts of a round finish changes nothing. */
#ifndef KP_SEARCH_H
#define KP_SEARCH_H

#include "gen/prompt.h"

struct search_options {
    int width;        /* attempts of a round */
    bool seed_kernel; /* best_of_n: start from the cell's kernel, as other modes do */
    int turns;        /* repair: consecutive failures before it returns to the best kernel; 3 */
    double tau;       /* contrastive: temperature for drawing buckets, in log2 of speedup */
    int buckets;      /* contrastive: number of performance buckets */
    int ideas;        /* branching: ideas per round */
    const char *seed; /* SEARCH_SEED, "0" unless set */
};

/* Read the options: defaults, overridden by WIDTH, SEED_KERNEL (0 or 1), TURNS, TAU, BUCKETS, IDEAS
 * and SEARCH_SEED of the environment (empty: unset).  KP_USAGE if one is malformed.
 *
 * The default of TAU is 0.5: a bucket whose kernels are twice as fast as another's is drawn e^2
 * = 7.4 times as often.  No published value exists.  Speedups are ratios, so buckets and means
 * use their logarithm, and a single kernel that is 100 times as fast does not decide alone.
 * With this value, speedups that differ by less (all within 20 %, say) are drawn almost evenly:
 * none is much better than the others, and only their contrast helps.  A kernel that is eight
 * times slower is almost never shown. */
void search_options_read(struct search_options *o);

/* Fill in every field of the turn of attempt MODE.rROUNDaINDEX.  `past` are the attempts of the
 * mode in earlier rounds, and for branching also this round's call for ideas (index 0).  New
 * strings live until the program ends.  Shown attempts point into `past`, to cell->current, or
 * to attempts of other modes with the same code as one of `past`, which are loaded from
 * cell->root.  KP_USAGE for an unknown mode or index. */
void search_turn(const struct search_options *o, const char *mode, int round, int index,
                 const struct attempts *past, const struct prompt_cell *cell,
                 struct prompt_turn *turn);

/* The ideas in an answer: a JSON array of {"idea","why","gain","risk"} or of strings, fenced or
 * bare, the last one if there are several.  Returns an array of at most 32 strings, empty if there is
 * none.  Delete it. */
cJSON *search_ideas(const char *answer);

/* ---- Shared by the parts of the search ---- */

struct search {
    const struct search_options *o;
    const char *mode;
    int round, index;
    const struct attempts *past;
    const struct prompt_cell *cell;
    struct prompt_turn *turn;
};

/* One part for each mode; it fills in s->turn. */
void search_repair(struct search *s);
void search_contrastive(struct search *s);
void search_branching(struct search *s);

/* Whether `a` is of this mode and an earlier round, and its outcome is known. */
bool search_earlier(const struct search *s, const struct attempt *a);

/* The attempt whose measurement counts for `a`: itself, or the earlier one with the same code.
 * NULL if that one is not measured. */
const struct attempt *search_resolve(const struct search *s, const struct attempt *a);

/* The ok kernels so far, no two with the same code, then `current` if it is ok.  Returns their
 * number; the caller frees *pool. */
int search_pool(const struct search *s, const struct attempt ***pool);

/* The outcome of an attempt in one line.  Lives until the program ends. */
const char *search_outcome(const struct search *s, const struct attempt *a);

/* The newest 40 attempts: the name, ask and outcome of each, and the analysis that its answer gave.
 * NULL if n is 0. */
const char *search_ledger(const struct search *s, const struct attempt *const *a, int n);

/* search_fresh asks for a new kernel and shows none; search_optimise asks to make `a` faster. */
void search_fresh(struct search *s);
void search_optimise(struct search *s, const struct attempt *a);

#endif
