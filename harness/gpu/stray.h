/* stray.h: how far an output strays from the float64 oracle, element by element, in spreads.
 *
 * The spread of an element is the root mean square of what the oracle's noise did to it
 * (cuda_base/noise.h), and what rounding the result to its type costs.  What a class allows is in
 * measure/tolerance.h.  Compiled for the GPU (stray.cu) and for the host (the pretend GPU, and
 * tests). */
#ifndef KP_STRAY_H
#define KP_STRAY_H

#include "cuda_base/arithmetic.h"
#include "gpu/values.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KP_PARTS = 64, KP_LEAST_PART = 1024 }; /* parts of an output, and elements of one */

struct kp_stray { /* of an output y from the oracle o; t = |y - o| / spread.  Summed over slices */
    double part_t2[KP_PARTS]; /* t^2, by contiguous parts of the output */
    unsigned long long part_count[KP_PARTS];
    double bias; /* sum of t, negative where |y| < |o| */
    double largest;
    unsigned long long bad;       /* elements with t above the limit, or lost */
    unsigned long long first_bad; /* its index, ~0 if none */
    unsigned long long lost;      /* finite where the oracle is infinite */
    unsigned long long infinite;  /* not finite where the oracle and the spread are */
    unsigned long long unwritten; /* off, and still poison, bit for bit */
    double first_expected, first_found;
};

struct kp_spread { /* of the oracle's own draws, from themselves, and of the spread */
    double t2[KP_DRAWS], bias[KP_DRAWS];
    unsigned long long count;
    double sum_s2, sum_o2;
    double largest; /* spread / (|o| + rms) */
};

struct kp_stray_rule {
    double limit; /* t above this is bad */
    bool lost;    /* whether a lost infinity is bad */
    double rms;   /* of the output */
    uint32_t poison;
};

/* What a type does to a result: its unit roundoff (0: integers, which are exact), the error that
 * underflow may have, and its largest finite number. */
struct kp_type_limits {
    double unit, under, largest;
};
KP_BOTH struct kp_type_limits kp_limits_of(enum kp_dtype type) {
    struct kp_type_limits f32 = {0x1p-24, 0x1p-126, 0x1.fffffep127};
    struct kp_type_limits f16 = {0x1p-11, 0x1p-25, 65504}, bf16 = {0x1p-8, 0x1p-126, 0x1.fep127};
    struct kp_type_limits f64 = {0x1p-53, 0x1p-1022, 0x1.fffffffffffffp1023}, exact = {0, 0, 0};
    return type == KP_F32    ? f32
           : type == KP_F16  ? f16
           : type == KP_BF16 ? bf16
           : type == KP_F64  ? f64
                             : exact;
}

/* The spread of an element; it may be infinite or NaN, if the element depends on an infinity. */
KP_BOTH double kp_spread_of(double o, const double *rough, struct kp_type_limits type) {
    double s2 = 0;
    for (int d = 0; d < KP_DRAWS; d++) s2 += (rough[d] - o) * (rough[d] - o);
    return sqrt(s2 / (KP_DRAWS * KP_AMPLIFIED * KP_AMPLIFIED) + type.unit * type.unit * o * o / 3 +
                type.under * type.under);
}

/* Element i of the oracle with its draws.  Returns whether noise has an effect on it. */
KP_BOTH bool kp_draws_at(const struct kp_draws *oracle, uint64_t i, double *o, double *rough) {
    bool any = false;
    *o = oracle->exact[i];
    for (int d = 0; d < KP_DRAWS; d++) {
        rough[d] = oracle->rough[d][i];
        any |= rough[d] != *o;
    }
    return any;
}

/* The spread that an element without one may have: of those around it, and of some all over the
 * slice of `count`, the larger.  Noise has no effect on a relu's zero, but an honest error may
 * still carry it over the kink, by as much as its neighbours are off. */
enum { KP_AROUND = 128 };
KP_BOTH double kp_spread_around(const struct kp_draws *oracle, uint64_t i, uint64_t count,
                                struct kp_type_limits type) {
    double o, rough[KP_DRAWS], most = 0;
    for (int pass = 0; pass < 2; pass++) {
        uint64_t step = pass ? count / (2 * KP_AROUND) + 1 : 1;
        uint64_t from = pass || i < KP_AROUND ? 0 : i - KP_AROUND;
        double sum = 0, n = 0;
        for (uint64_t k = 0, at = from; k < 2 * KP_AROUND && at < count; k++, at += step) {
            if (!kp_draws_at(oracle, at, &o, rough)) continue;
            double s = kp_spread_of(o, rough, type);
            if (isfinite(s)) sum += s * s, n++;
        }
        if (n > 0) most = fmax(most, sqrt(sum / n));
    }
    return most;
}

struct kp_strayed { /* one element */
    double t;       /* |y - o| / spread */
    bool counted;   /* t counts: the oracle and the spread are finite */
    bool lost;      /* the oracle is infinite and y is finite */
};

/* How far y strays from o.  An o beyond the type's numbers counts as infinite.  Where o is not
 * finite, or the spread is not, y may be anything; but see lost. */
KP_BOTH struct kp_strayed kp_stray_of(double y, double o, double spread,
                                      struct kp_type_limits type) {
    struct kp_strayed e = {0, false, false};
    if (type.unit == 0) { /* integers */
        e.counted = true;
        e.t = y == o ? 0 : (double)INFINITY;
    } else if (isnan(o) || fabs(o) > type.largest) {
        e.lost = !isnan(o) && fabs(y) < type.largest * (1 - 2 * type.unit);
    } else if (isfinite(spread)) {
        e.counted = true;
        e.t = y == o ? 0 : fabs(y - o) / spread;
        if (!isfinite(y)) e.t = (double)INFINITY;
    }
    return e;
}

/* An element with all that it is judged by. */
struct kp_judged {
    double o, rough[KP_DRAWS], spread;
    struct kp_strayed e;
};

/* How far y strays from element i of a slice of `count`.  One on which noise has no effect, and
 * that is off, may stray as far as those around it. */
KP_BOTH struct kp_judged kp_judged_at(double y, const struct kp_draws *oracle, uint64_t i,
                                      uint64_t count, struct kp_type_limits type, double limit) {
    struct kp_judged j;
    bool any = kp_draws_at(oracle, i, &j.o, j.rough);
    j.spread = kp_spread_of(j.o, j.rough, type);
    j.e = kp_stray_of(y, j.o, j.spread, type);
    if (j.e.counted && !any && j.e.t > limit && type.unit > 0)
        j.e = kp_stray_of(y, j.o, fmax(j.spread, kp_spread_around(oracle, i, count, type)), type);
    return j;
}

/* Elements of each part of an output of n; and the part in which element i lies. */
KP_BOTH uint64_t kp_part_size(uint64_t n) {
    uint64_t parts = n / KP_LEAST_PART;
    if (parts > KP_PARTS) parts = KP_PARTS;
    return parts < 2 ? n : (n + parts - 1) / parts;
}
KP_BOTH int kp_part_of(uint64_t i, uint64_t n) {
    return (int)(i / kp_part_size(n));
}

#ifdef __cplusplus
}
#endif
#endif
