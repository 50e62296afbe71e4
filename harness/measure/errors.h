/* errors.h: what verify finds of the candidate and of the baselines, and which classes they are of.
 */
#ifndef KP_ERRORS_H
#define KP_ERRORS_H

#include "measure/accuracy.h"

/* In the spreads of a class: the worst over the samples of a distribution. */
struct class_errors {
    struct kp_judgment candidate[KP_DIST_COUNT], baseline[KP_MAX_BASELINES][KP_DIST_COUNT];
    struct kp_error spread[KP_DIST_COUNT];
    int judged[KP_DIST_COUNT]; /* so many baselines */
};

struct errors {
    const struct accuracy *acc; /* whose these are */
    struct class_errors of[KP_CLASS_COUNT];
    bool applies[KP_DIST_COUNT]; /* and the baseline can compute it */
};

/* The first distribution in which the candidate is beyond the limits of a class, or -1. */
int errors_missed(const struct errors *e, enum kp_class class);

/* Leave out distributions on which the candidate misses the first class and is excused
 * (accuracy.h): "excused" of the verdict has by how much. */
void errors_leave_out(struct errors *e, enum kp_class first, enum kp_class last, cJSON *verdict);

/* Note the baselines that are of this class and of no better one: a library's choice may be of
 * another than it is meant to be. */
void errors_add_baselines(const struct errors *e, enum kp_class class, cJSON *to);

/* Why the candidate is not of a class: by how much it is beyond the limits, by distribution. */
void errors_add_missed(const struct errors *e, enum kp_class class, cJSON *to);

/* "error" of the verdict: the errors in the spreads of one class, and how large these are. */
void errors_add(const struct errors *e, enum kp_class class, cJSON *verdict);

#endif
