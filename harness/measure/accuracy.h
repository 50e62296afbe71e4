/* accuracy.h: how a kernel is judged: its outputs and the baselines' against the float64 oracle
 * and its spreads, on the same inputs.  How far off an output may be is in tolerance.h. */
#ifndef KP_ACCURACY_H
#define KP_ACCURACY_H

#include "measure/referee.h"

#include <cjson/cJSON.h>

enum { KP_MAX_BASELINES = 2, KP_MAX_OTHERS = 8 };

struct accuracy { /* the referee, and what it compares with */
    struct referee r;
    int nbaselines, judged; /* the first so many of these are judged beside the candidate */
    enum kp_math math[KP_MAX_BASELINES]; /* most accurate first */
    struct kp_exec *exec[KP_MAX_BASELINES], *oracle;
    void *out[KP_MAX_BASELINES][KP_MAX_OUTPUTS]; /* the baselines' outputs */
    bool stand_in; /* there is no candidate: the first baseline's outputs are judged in its place */
    int others;    /* so many more outputs are judged beside these: see accuracy_others() */
    void *other[KP_MAX_OTHERS][KP_MAX_OUTPUTS];
    void *workspace;
    struct kp_stray *found; /* device: [who * noutputs + output]; who 0 is the candidate */
    struct kp_suspects *suspects, *seen; /* the same, on the device and on the host */
    struct kp_place *place;              /* of suspects that need more draws: room for all */
    struct kp_spread *spread;            /* device: [output] */
    CUgraphExec again; /* the first baseline, into the outputs of placement 0 (audit.c) */
};

struct sample_errors {
    struct kp_judgment candidate, baseline[KP_MAX_BASELINES], other[KP_MAX_OTHERS];
    struct kp_error spread;                /* their size */
    struct kp_stray found[KP_MAX_OUTPUTS]; /* the candidate's, one for each output */
    bool infinite; /* the most accurate baseline is, where the oracle is not */
};

/* Whether a sample's contents are outside what the task can compute in fp32: the most accurate
 * baseline is infinite where the oracle is not, or strays where values are large, since something
 * between overflowed.  The declared contents never are. */
bool sample_outside(const struct sample_errors *found, enum kp_distribution d);

/* Whether an error beyond the limits says nothing against the candidate, as chance decides: on
 * these contents the most accurate baseline is beyond those of the last class, too, by no less than
 * half of what it is beyond those of the `first`, as more noise does no more; and the candidate is
 * beyond them no more than twice as far.  A baseline that is only less accurate than fp32 excuses
 * nobody.  Never on the declared. */
bool sample_excused(const struct kp_judgment *candidate, const struct kp_judgment *baseline,
                    const struct kp_judgment *first, enum kp_distribution d);

/* What makes a wrong sample again, for the caller: contents and seed; and of the first output that
 * has one the first element that is off by too much. */
cJSON *sample_evidence(const struct kp_task *t, const struct sample_errors *found,
                       enum kp_distribution d, uint64_t seed);

/* The first output with an element that is off by too much, or -1: errors are small, but many. */
int sample_stray(const struct kp_task *t, const struct sample_errors *found);

/* Device memory that comparing takes beside the referee's buffers, without the oracle's slices. */
size_t accuracy_bytes(const struct kp_task *t);

/* Plan the baselines, after referee_open(&acc->r, ...); the rest of *acc is zero.  That takes no
 * memory, and says how much they will. */
void accuracy_plan(struct accuracy *acc);

/* Prepare, with or without accuracy_plan() before.  The oracle's slices may take `oracle_limit`
 * bytes.  False if memory is short; *needed is what all of this takes. */
bool accuracy_open(struct accuracy *acc, size_t oracle_limit, size_t *needed);

/* Take memory for up to n others, which the caller fills, as long as `spare` bytes stay free.  The
 * oracle then runs once for all that are judged.  acc->others says how many there are. */
void accuracy_others(struct accuracy *acc, int n, size_t spare);

/* Give everything back, the referee's, too, whether or not it was opened whole. */
void accuracy_close(struct accuracy *acc);

/* Run baseline `which` on the inputs of a placement, into out[which]. */
void accuracy_baseline(struct accuracy *acc, int placement, int which);

/* Of the outputs of a sample: SLICES judges at most so many elements against the oracle, in slices
 * drawn by lot.  SOME compares the others with the most accurate baseline's, and judges ALL where
 * they are not near it; where there are infinities, a baseline's output says little. */
enum how_much { KP_SLICES, KP_SOME, KP_ALL };
enum { KP_JUDGED_ELEMENTS = 1 << 24 };

/* Compare the outputs in a placement, those of the baselines that are judged, and others with the
 * oracle, in the spreads of a class.  `seed`: of the oracle's noise. */
void accuracy_sample(struct accuracy *acc, int placement, enum kp_class class, enum how_much much,
                     uint64_t seed, struct sample_errors *out);

/* Whether sample_excused() holds of the outputs in a placement: judges them in the first and in the
 * last class, beside the most accurate baseline alone. */
bool accuracy_excuses(struct accuracy *acc, int placement, enum how_much much, uint64_t seed,
                      enum kp_distribution d);

#endif
