/* search.h: what the next attempt is asked, given those before it.
 *
 * Pure functions of the attempts on disk, the mode, the round and the index: a search that was
 * killed goes on where it was, and asks the same things.  Whatever the caller passes as `past`,
 * only earlier rounds of the mode count, and this round's ideas, so the order in which the attempts
 * of a round end changes nothing. */
#ifndef KP_SEARCH_H
#define KP_SEARCH_H

#include "gen/prompt.h"

struct search_options {
    int width;        /* attempts of a round */
    int rounds;       /* best_of_n: samples are numbered over all rounds */
    int turns;        /* repair: failures in a row until it goes back to the best; 3 */
    double tau;       /* contrastive: temperature of the choice of buckets, in log2 of speedup */
    int buckets;      /* contrastive: number of performance buckets */
    int ideas;        /* branching: ideas asked for in a round */
    const char *seed; /* SEARCH_SEED, "0" unless set */
};

/* Defaults, overruled by WIDTH, ROUNDS, TURNS, TAU, BUCKETS, IDEAS, SEARCH_SEED of the environment
 * (empty: not set).  KP_USAGE if malformed.
 *
 * TAU is 0.5 unless set: a bucket whose kernels are twice as fast as another's is drawn e^2 = 7.4
 * times as often.  No value was published.  Speedups are ratios, so their logarithm is what buckets
 * and means are made of: one kernel that is 100 times as fast does not decide alone.  A spread
 * below that (all within 20 %, say) is drawn from almost evenly, since nothing there is much better
 * than the rest and contrast is all that can be had; a kernel that is eight times slower is next to
 * never shown. */
void search_options_read(struct search_options *o);

/* Fill in the turn of attempt MODE.rROUNDaINDEX, all of it.  `past` are the attempts of the mode in
 * earlier rounds, and for branching this round's call for ideas (index 0), too.  Strings that it
 * makes are kept until the program ends; shown attempts point into `past`, to cell->current, or to
 * attempts of other modes that one of `past` repeats, which are loaded from cell->root.  KP_USAGE
 * for an unknown mode or place. */
void search_turn(const struct search_options *o, const char *mode, int round, int index,
                 const struct attempts *past, const struct prompt_cell *cell,
                 struct prompt_turn *turn);

/* The ideas in an answer: a JSON array of {"idea","why","gain","risk"} or of strings, found in a
 * fence or bare, the last if there are several; else a numbered list, the longest.  Returns an
 * array of strings (cJSON), at most 32, empty if there is none.  Delete it. */
cJSON *search_ideas(const char *answer);

/* ---- Between the parts of the search ---- */

struct search {
    const struct search_options *o;
    const char *mode;
    int round, index;
    const struct attempts *past;
    const struct prompt_cell *cell;
    struct prompt_turn *turn;
};

/* One part a mode; each fills in s->turn. */
void search_repair(struct search *s);
void search_contrastive(struct search *s);
void search_branching(struct search *s);

/* Whether `a` is of this mode and of an earlier round, and what became of it is known. */
bool search_earlier(const struct search *s, const struct attempt *a);

/* The attempt that was measured in place of `a`: itself, or the one that it repeats.  NULL where
 * that was not measured before. */
const struct attempt *search_resolve(const struct search *s, const struct attempt *a);

/* The ok kernels so far, no two with the same code, and `current` after them if it is ok.  Returns
 * their number; the caller frees *pool. */
int search_pool(const struct search *s, const struct attempt ***pool);

/* What came of an attempt, in one line.  Kept until the program ends. */
const char *search_outcome(const struct search *s, const struct attempt *a);

/* One line an attempt, the newest 40: its name, what it was asked and its outcome.  NULL if n is 0.
 */
const char *search_ledger(const struct search *s, const struct attempt *const *a, int n);

/* Ask for a kernel anew, showing none; ask to make `a` faster. */
void search_fresh(struct search *s);
void search_optimise(struct search *s, const struct attempt *a);

#endif
