/* tolerance.c: see tolerance.h. */
#include "measure/tolerance.h"
#include "base/error.h"
#include "task/op.h"

#include <math.h>
#include <string.h>

const char *class_name(const struct kp_task *t, enum kp_class c) {
    switch (c) {
    case KP_CLASS_FP32: return "fp32";
    case KP_CLASS_NORMWISE: return "fp32-normwise";
    case KP_CLASS_TF32: return "tf32";
    case KP_CLASS_HALF: return task_float_type(t) == KP_BF16 ? "bf16" : "f16";
    case KP_CLASS_COUNT: break;
    }
    die(KP_BUG, "class %d has no name", (int)c);
}

enum kp_class class_find(const struct kp_task *t, const char *name) {
    for (int c = 0; c < KP_CLASS_COUNT; c++)
        if (!strcmp(class_name(t, (enum kp_class)c), name)) return (enum kp_class)c;
    return KP_CLASS_FP32;
}

enum kp_class class_of_math(enum kp_math m) {
    return m == KP_MATH_TF32 ? KP_CLASS_TF32 : m == KP_MATH_HALF ? KP_CLASS_HALF : KP_CLASS_FP32;
}

int classes_of(const struct kp_task *t, enum kp_class out[KP_CLASS_COUNT]) {
    int n = 0;
    if (task_float_type(t) != KP_F32) {
        out[n++] = KP_CLASS_HALF;
        return n;
    }
    out[n++] = KP_CLASS_FP32;
    bool products = false;
    for (int i = 0; i < t->nops; i++) products |= t->ops[i].def->tensor_cores;
    if (!products) return n;
    out[n++] = KP_CLASS_NORMWISE;
    out[n++] = KP_CLASS_TF32;
    return n;
}

/* ---- Against the oracle ----------------------------------------------------------------- */

/* The larger of two; NaN if either is. */
static double worse(double a, double b) {
    return a <= b || isnan(b) ? b : a; /* a NaN in `a` is not <= b, so it stays */
}

/* The largest root mean square, and the largest mean, of the oracle's draws. */
static void of_draws(const struct kp_spread *own, double *rms, double *bias) {
    double n = (double)own->count;
    *rms = *bias = 0;
    for (int d = 0; d < KP_DRAWS && n > 0; d++) {
        *rms = fmax(*rms, sqrt(own->t2[d] / n));
        *bias = fmax(*bias, fabs(own->bias[d]) / n);
    }
}

/* Whether noise takes the meaning from what it is on. */
static bool swamped(const struct kp_spread *own) {
    return kp_swamps(own->sum_s2 * KP_AMPLIFIED * KP_AMPLIFIED, own->sum_o2);
}

struct kp_judgment judge_output(const struct kp_stray *s, const struct kp_spread *own,
                                enum kp_class class) {
    if (class == KP_CLASS_NORMWISE && swamped(own)) return (struct kp_judgment){0};
    struct kp_judgment j = {.element = s->largest};
    double t2 = 0, n = 0, draws_rms, draws_bias;
    int parts = 0;
    for (int p = 0; p < KP_PARTS; p++) {
        double here = (double)s->part_count[p];
        if (here <= 0) continue;
        parts++;
        j.part = worse(j.part, sqrt(s->part_t2[p] / here));
        t2 += s->part_t2[p], n += here;
    }
    if (parts < 2) j.part = 0;
    j.rms = n > 0 ? sqrt(t2 / n) : 0;
    j.bias = n > 0 ? fabs(s->bias) / n : 0;
    of_draws(own, &draws_rms, &draws_bias);
    double errors = own->varied ? n : 1; /* elements that are all the same number have one error */
    double luck = n > 0 && isfinite(j.rms) ? KP_LUCK * j.rms / sqrt(errors) : 0;
    j.of_limit = j.rms / (KP_RMS_LIMIT * fmax(1, draws_rms));
    j.of_limit = worse(j.of_limit, j.part / KP_PART_LIMIT);
    j.of_limit = worse(j.of_limit, j.element / KP_ELEMENT_LIMIT);
    j.of_limit = worse(j.of_limit, j.bias / (KP_BIAS_LIMIT * (1 + draws_bias) + luck));
    if (class != KP_CLASS_NORMWISE && s->lost) j.of_limit = INFINITY;
    return j;
}

double suspect_from(int64_t count) {
    return fmin(KP_ELEMENT_LIMIT, KP_RMS_LIMIT * sqrt((double)count));
}

struct kp_judgment judgment_worst(struct kp_judgment a, struct kp_judgment b) {
    return (struct kp_judgment){worse(a.rms, b.rms), worse(a.part, b.part),
                                worse(a.element, b.element), worse(a.bias, b.bias),
                                worse(a.of_limit, b.of_limit)};
}

bool judgment_passes(const struct kp_judgment *j) {
    return j->of_limit <= 1;
}

/* ---- Against a baseline -------------------------------------------------------------------- */

double output_square(double sum, unsigned long long count, enum kp_dtype type) {
    double under = kp_limits_of(type).under;
    return fmax(sum, (double)count * under * under);
}

struct kp_error spread_as_error(const struct kp_spread *own, enum kp_dtype type) {
    double o2 = output_square(own->sum_o2, own->count, type);
    double norm = own->sum_s2 > 0 ? sqrt(own->sum_s2 / o2) : 0;
    return (struct kp_error){norm, own->largest};
}

struct kp_error tolerance_of(struct kp_error spread) {
    return (struct kp_error){KP_RMS_LIMIT * spread.norm, KP_ELEMENT_LIMIT * spread.element};
}

struct kp_error tolerance_when_timed(struct kp_error spread) {
    struct kp_error own = tolerance_of(spread);
    return (struct kp_error){KP_TIMED_FACTOR * own.norm, KP_TIMED_FACTOR * own.element};
}

/* No error at all is within a tolerance of 0. */
struct kp_judgment judge_error(const struct kp_error *e, const struct kp_error *tolerance) {
    double norm = e->norm > 0 || isnan(e->norm) ? e->norm / tolerance->norm : 0;
    double element = e->element > 0 || isnan(e->element) ? e->element / tolerance->element : 0;
    return (struct kp_judgment){.of_limit = worse(norm, element)};
}

struct kp_error error_worst(struct kp_error a, struct kp_error b) {
    return (struct kp_error){worse(a.norm, b.norm), worse(a.element, b.element)};
}

/* Written as !(e <= tolerance), which a NaN on either side fails. */
const char *error_exceeds(const struct kp_error *e, const struct kp_error *tolerance) {
    if (!(e->element <= tolerance->element)) return "element";
    if (!(e->norm <= tolerance->norm)) return "norm";
    return NULL;
}
