/* accuracy.h: one sample judged against the float64 oracle, for the candidate and for
 * the baselines alike. */
#ifndef KP_JUDGE_H
#define KP_JUDGE_H

#include "measure/referee.h"

enum { KP_MAX_BASELINES = 2 };

struct judge { /* everything that judging needs beside the referee's buffers */
    struct referee *r;
    int nbaselines;
    enum kp_math math[KP_MAX_BASELINES]; /* most accurate first */
    struct kp_exec *exec[KP_MAX_BASELINES], *oracle;
    void *out[KP_MAX_BASELINES][4]; /* the baselines' outputs */
    void *workspace;
    struct kp_compare *found; /* device: [who * 4 + output], who 0 is the candidate */
};

struct sample_errors {
    struct kp_error candidate, baseline[KP_MAX_BASELINES];
    struct kp_compare found[4]; /* the candidate's, an entry an output */
};

/* Device memory that judging takes beside the buffers, without the oracle's slices. */
size_t accuracy_bytes(const struct kp_task *t);

/* Prepare; `oracle_limit` is what the oracle's slices may take.  Returns false if
 * memory is short. */
bool accuracy_open(struct judge *j, struct referee *r, size_t oracle_limit);

/* Run baseline `which` on the contents of a placement, into out[which]. */
void accuracy_baseline(struct judge *j, int placement, int which);

/* Judge the outputs that lie in a placement.  An element counts as bad if its error
 * exceeds `tolerance`. */
void accuracy_sample(struct judge *j, int placement, double tolerance, struct sample_errors *out);

/* The errors up to which a candidate is of the class of a baseline with error `b`. */
struct kp_error accuracy_tolerance(const struct kp_task *t, const struct kp_error *b);

/* Worst of two, measure by measure; NaN is worst of all. */
struct kp_error error_worst(struct kp_error a, struct kp_error b);

/* Name of the first measure that exceeds the tolerance ("norm", "element", "mean"), or
 * NULL if all hold. */
const char *error_exceeds(const struct kp_error *e, const struct kp_error *tolerance);

#endif
