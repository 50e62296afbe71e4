/* tolerance.c: see tolerance.h. */
#include "measure/tolerance.h"

#include <math.h>

/* One unit in the last place of a value near 1; 0 for types that are compared exactly. */
static double unit_of(enum kp_dtype type) {
    switch (type) {
    case KP_F32: return 0x1p-23;
    case KP_F16: return 0x1p-10;
    case KP_BF16: return 0x1p-7;
    default: return 0;
    }
}

/* Of the coarsest output. */
static double coarsest_unit(const struct kp_task *t) {
    double unit = 0;
    for (int k = 0; k < t->noutputs; k++)
        unit = fmax(unit, unit_of(t->values[t->outputs[k]].dtype));
    return unit;
}

/* Elements of the smallest output. */
static double fewest_elements(const struct kp_task *t) {
    double n = INFINITY;
    for (int k = 0; k < t->noutputs; k++)
        n = fmin(n, (double)kp_shape_count(&t->values[t->outputs[k]].shape));
    return n;
}

/* At least `least`; a NaN becomes `least`, so that a broken baseline allows nothing. */
static double at_least(double least, double x) {
    return x >= least ? x : least;
}

struct kp_error tolerance_of_class(const struct kp_task *t, const struct kp_error *b) {
    double unit = coarsest_unit(t);
    /* A baseline's mean error may be small by luck: n unbiased errors may have this one. */
    double luck = KP_LUCK * b->norm / sqrt(fewest_elements(t));
    double mean = KP_CLASS_FACTOR * b->mean;
    if (luck > mean) mean = luck;
    return (struct kp_error){at_least(KP_NORM_ULPS * unit, KP_CLASS_FACTOR * b->norm),
                             at_least(KP_ELEMENT_ULPS * unit, KP_CLASS_FACTOR * b->element),
                             at_least(KP_NORM_ULPS * unit, mean)};
}

/* The mean gets the norm's tolerance: it is never larger than the norm, and varies too much from
 * sample to sample for the few samples of verify to bound it.  verify itself judges the mean. */
struct kp_error tolerance_when_timed(struct kp_error allowed, struct kp_error reference) {
    double norm = KP_TIMED_FACTOR * (allowed.norm + reference.norm);
    double element = KP_TIMED_FACTOR * (allowed.element + reference.element);
    return (struct kp_error){norm, element, norm};
}

struct kp_error tolerance_to_oracle(struct kp_error allowed) {
    return tolerance_when_timed(allowed, (struct kp_error){0, 0, 0});
}

/* The larger of two; NaN if either is. */
static double worse(double a, double b) {
    return a <= b || isnan(b) ? b : a; /* a NaN in `a` is not <= b, so it stays */
}

struct kp_error error_worst(struct kp_error a, struct kp_error b) {
    return (struct kp_error){worse(a.norm, b.norm), worse(a.element, b.element),
                             worse(a.mean, b.mean)};
}

/* Written as !(e <= tolerance), which a NaN on either side fails. */
const char *error_exceeds(const struct kp_error *e, const struct kp_error *tolerance) {
    if (!(e->element <= tolerance->element)) return "element";
    if (!(e->norm <= tolerance->norm)) return "norm";
    if (!(e->mean <= tolerance->mean)) return "mean";
    return NULL;
}
