/* tolerance.h: how far off an output may be.  Every number of that rule stands here.
 *
 * The unit of an error is the spread of its element: what honest arithmetic of the class does to
 * that element (gpu/stray.h).  verify, and time for a secret part of its samples, compare with the
 * float64 oracle: judge_output().  All other timed outputs are compared with a baseline's, which
 * has an error of its own and comes without spreads: tolerance_when_timed().
 *
 * This file needs no CUDA: tests/unit/measure tests it alone. */
#ifndef KP_TOLERANCE_H
#define KP_TOLERANCE_H

#include "gpu/stray.h"

/* The classes of arithmetic, most accurate first.  A class is a claim about error. */
enum kp_class {
    KP_CLASS_FP32,
    KP_CLASS_NORMWISE, /* fp32 accurate against the largest element of an operand only */
    KP_CLASS_TF32,     /* operands of products rounded to TF32 */
    KP_CLASS_HALF,     /* of a 16-bit task: sums in fp32, results rounded to the task's type */
    KP_CLASS_COUNT
};

/* "fp32", "fp32-normwise", "tf32", and for HALF "f16" or "bf16". */
const char *class_name(const struct kp_task *t, enum kp_class c);

/* The class of that name; FP32 if there is none. */
enum kp_class class_find(const struct kp_task *t, const char *name);

/* The class that a baseline of this arithmetic is meant to be of. */
enum kp_class class_of_math(enum kp_math m);

/* The classes that a kernel of this task may have, best first.  Returns how many. */
int classes_of(const struct kp_task *t, enum kp_class out[KP_CLASS_COUNT]);

/* In spreads.  Honest arithmetic has 0.05 to 1.5 over a whole output and up to 24 in a single
 * element of 10^8, since a spread is itself estimated from KP_DRAWS draws.  METHOD.md has what the
 * cheapest dishonest arithmetic has. */
enum {
    KP_RMS_LIMIT = 3,   /* root mean square over an output: x the draws' own, if that is above 1 */
    KP_PART_LIMIT = 16, /* over one of its parts, where it has several */
    KP_ELEMENT_LIMIT = 64, /* of an element */
    KP_BIAS_LIMIT = 2,     /* mean, signed: and as often the draws' own, and what luck explains */
    KP_LUCK = 4,           /* standard deviations that independent errors may add up to by luck */
    KP_TIMED_FACTOR = 2    /* against a baseline that may be off by as much, in other samples */
};

struct kp_judgment {                 /* of an output, or the worst over outputs and samples */
    double rms, part, element, bias; /* in spreads */
    double of_limit;                 /* the largest of them over its limit: above 1 fails */
};

/* Judge what was found of one output, in the spreads of a class.  Accuracy against the largest
 * element says nothing where that is infinite, or so large that the draws stray from the output by
 * a good part of it (kp_swamps): there NORMWISE holds. */
struct kp_judgment judge_output(const struct kp_stray *s, const struct kp_spread *own,
                                enum kp_class class);

/* From how many spreads on an element of an output of so many is a suspect: where it is off by more
 * than an element may be, or where it alone would be more than the rms may be. */
double suspect_from(int64_t count);

/* The worse of two, measure by measure.  NaN is worst of all. */
struct kp_judgment judgment_worst(struct kp_judgment a, struct kp_judgment b);

/* Whether it is within all limits.  NaN is not. */
bool judgment_passes(const struct kp_judgment *j);

struct kp_error {   /* of an output y against another o; the worst over a task's outputs */
    double norm;    /* |y - o| / |o|, Euclidean */
    double element; /* largest |y - o| / (|o| + rms(o)) */
};

/* The sum of an output's squares, as errors are divided by it: no less than that of the smallest
 * normal numbers.  Below them arithmetic may flush to zero, and an error says nothing. */
double output_square(double sum, unsigned long long count, enum kp_dtype type);

/* The size of the spreads of an output of this type, as an error. */
struct kp_error spread_as_error(const struct kp_spread *own, enum kp_dtype type);

/* The limits above as such an error, by the size of the spreads; and how far a timed output may
 * differ from the most accurate baseline's, by the spreads that verify found for the class and the
 * distribution. */
struct kp_error tolerance_of(struct kp_error spread);
struct kp_error tolerance_when_timed(struct kp_error spread);

/* Such an error, judged by such a tolerance: only of_limit is known. */
struct kp_judgment judge_error(const struct kp_error *e, const struct kp_error *tolerance);

/* The worse of two, measure by measure.  NaN is worst of all. */
struct kp_error error_worst(struct kp_error a, struct kp_error b);

/* Name of the first measure that exceeds the tolerance ("element", "norm"); NULL if both hold.
 * NaN exceeds everything. */
const char *error_exceeds(const struct kp_error *e, const struct kp_error *tolerance);

#endif
