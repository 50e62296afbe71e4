/* tolerance.h: how far off an output may be.  Every number of that rule stands here.
 *
 * An error is three measures of one output against another.  verify compares the candidate's
 * errors against the float64 oracle with those of a baseline on the same inputs.  time compares
 * every timed output with that of the most accurate baseline in the same round.
 *
 * This file needs no CUDA: tests/unit/measure tests it alone. */
#ifndef KP_TOLERANCE_H
#define KP_TOLERANCE_H

#include "task/taskfile.h"

struct kp_error {   /* of an output y against another o; the worst over a task's outputs */
    double norm;    /* |y - o| / |o|, Euclidean */
    double element; /* largest |y - o| / (|o| + rms(o)) */
    double mean;    /* |mean(y - o)| / rms(o), less what luck explains: KP_LUCK |y - o| / n */
};

enum {
    KP_CLASS_FACTOR = 4, /* x the baseline's error: another honest order of sums stays below it */
    KP_LUCK = 4,         /* standard deviations that independent errors may add up to by luck */
    KP_NORM_ULPS = 2,    /* units in the last place: what rounding the result alone may cost */
    KP_ELEMENT_ULPS = 4, /* the same for a single element */
    KP_TIMED_FACTOR = 2  /* x both errors: the worst of many new samples exceeds that of a few */
};

/* The errors up to which a candidate is of the class of a baseline with error `b`. */
struct kp_error tolerance_of_class(const struct kp_task *t, const struct kp_error *b);

/* How far a timed output may differ from the most accurate baseline's, when its own error may be
 * `allowed` and the baseline's is `reference`; and how far it may differ from the oracle. */
struct kp_error tolerance_when_timed(struct kp_error allowed, struct kp_error reference);
struct kp_error tolerance_to_oracle(struct kp_error allowed);

/* The worse of two, measure by measure.  NaN is worst of all. */
struct kp_error error_worst(struct kp_error a, struct kp_error b);

/* Name of the first measure that exceeds the tolerance ("element", "norm", "mean"); NULL if all
 * three hold.  NaN exceeds everything. */
const char *error_exceeds(const struct kp_error *e, const struct kp_error *tolerance);

#endif
