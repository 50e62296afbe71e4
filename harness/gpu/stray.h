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
    int varied;     /* whether o is more than a spread from a range's first anywhere */
};

struct kp_stray_rule {
    double limit; /* t above this is bad */
    bool lost;    /* whether a lost infinity is bad */
    double rms;   /* of the output */
    uint32_t poison;
};

struct kp_compare {           /* of an output y with a baseline's b; t = |y - b| / (|b| + rms) */
    double sum_d2, sum_b2;    /* of y - b and b; d is infinite where t is */
    double largest;           /* t */
    unsigned long long count; /* elements compared */
    unsigned long long bad;   /* elements with t above the limit */
    unsigned long long first_bad; /* its index, ~0 if none */
    unsigned long long unwritten; /* elements that differ and still are poison, bit for bit */
    double first_expected, first_found;
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

/* The sum of what draws of noise did to an element, squared. */
KP_BOTH double kp_sum_of_draws(double o, const double *rough) {
    double s2 = 0;
    for (int d = 0; d < KP_DRAWS; d++) s2 += (rough[d] - o) * (rough[d] - o);
    return s2;
}

/* Noise swamps what it takes a quarter of.  Four times the noise would then do no more. */
enum { KP_SWAMPED = 4 };
KP_BOTH bool kp_swamps(double noise2, double o2) {
    return KP_SWAMPED * KP_SWAMPED * noise2 > o2;
}

/* The spread of an element of an output with this root mean square, from that sum over so many
 * draws; it may be infinite or NaN, if the element depends on an infinity. */
KP_BOTH double kp_spread_of(double o, double s2, int draws, double rms,
                            struct kp_type_limits type) {
    double noise2 = s2 / draws, most2 = fmax(o * o, rms * rms);
    if (!kp_swamps(noise2, most2)) noise2 /= KP_AMPLIFIED * KP_AMPLIFIED;
    return sqrt(noise2 + type.unit * type.unit * o * o / 3 + type.under * type.under);
}

struct kp_strayed { /* one element */
    double t;       /* |y - o| / spread */
    bool counted;   /* t counts: the oracle and the spread are finite */
    bool lost;      /* the oracle is infinite and y is finite */
};

/* How far y strays from o, the oracle's or a baseline's.  An o beyond the type's numbers counts as
 * infinite, and a finite y then as lost, unless it is within so many spreads.  Where o is not
 * finite, or the spread is not, y may be anything; but see lost. */
enum { KP_LOST = 64 };
KP_BOTH struct kp_strayed kp_stray_of(double y, double o, double spread,
                                      struct kp_type_limits type) {
    struct kp_strayed e = {0, false, false};
    if (type.unit == 0) { /* integers */
        e.counted = true;
        e.t = y == o ? 0 : (double)INFINITY;
    } else if (isnan(o) || fabs(o) > type.largest) {
        bool near = isfinite(o) && fabs(y - o) <= KP_LOST * spread;
        e.lost = !isnan(o) && fabs(y) < type.largest * (1 - 2 * type.unit) && !near;
    } else if (isfinite(spread)) {
        e.counted = true;
        e.t = y == o ? 0 : fabs(y - o) / spread;
        if (!isfinite(y)) e.t = (double)INFINITY;
    }
    return e;
}

/* The same of y from a baseline's b, by the unit of a comparison.  Returns t, infinite for a lost
 * infinity that is bad, and 0 where y may be anything. */
KP_BOTH double kp_apart(double y, double b, const struct kp_stray_rule *rule,
                        struct kp_type_limits type) {
    const struct kp_strayed e = kp_stray_of(y, b, fabs(b) + rule->rms, type);
    return e.lost && rule->lost ? (double)INFINITY : e.t;
}

/* An element that is off by more than the limit is a suspect: few draws can all miss a step or a
 * kink that an honest error crosses.  It gets more draws before it is judged.  Where there are more
 * than this, the output is wrong as it stands: where each element may as well lie on the other side
 * of a step (a ReLU of a batch norm of what an outlier in a bias has drowned), all KP_DRAWS draws
 * lie on the oracle's side and honest arithmetic on the other in 2^-9 of 2^24 elements. */
enum { KP_MOST_SUSPECTS = 1 << 15 };
struct kp_suspect {
    uint64_t at; /* in the output */
    double y, o;
    double s2;    /* kp_sum_of_draws() of all its draws so far */
    double least; /* what the draw that did least did to it */
    int draws;    /* how many: more where its slice was drawn again */
    bool poison;
};
struct kp_suspects { /* of an output, against the oracle */
    unsigned long long count;
    struct kp_suspect item[KP_MOST_SUSPECTS];
};

/* Whether an element is one.  Integers are right or wrong. */
KP_BOTH bool kp_is_suspect(const struct kp_strayed *e, struct kp_type_limits type, double limit) {
    return e->counted && !(e->t <= limit) && type.unit > 0;
}

/* A suspect with its first draws, or with more. */
KP_BOTH struct kp_suspect kp_suspect_of(uint64_t at, double y, double o, const double *rough,
                                        bool poison) {
    struct kp_suspect x = {at, y, o, kp_sum_of_draws(o, rough), 0, KP_DRAWS, poison};
    x.least = fabs(rough[0] - o);
    for (int d = 1; d < KP_DRAWS; d++) x.least = fmin(x.least, fabs(rough[d] - o));
    return x;
}
KP_BOTH void kp_redraw(struct kp_suspect *x, const double *rough) {
    const struct kp_suspect more = kp_suspect_of(x->at, x->y, x->o, rough, x->poison);
    x->s2 += more.s2;
    x->draws += more.draws;
    x->least = fmin(x->least, more.least);
}

/* Whether the element lies at a jump: some draws leave it where it is, others take it away.  With
 * an infinite operand tanh(x inf) is -1 or 1, and NaN for the x between them, which is 0. */
enum { KP_JUMP = 1024 };
KP_BOTH bool kp_jumps(const struct kp_suspect *x) {
    double most = sqrt(x->s2);
    return most > KP_JUMP * x->least && KP_JUMP * most > fabs(x->o);
}

/* How many times more an honest error may do to a suspect than noise does.  fp32 rounds in steps:
 * of numbers that lie few steps apart a layer norm makes elements that noise without steps never
 * makes, and a gelu hides from the draws how far they would go.  Noise says so by its size. */
enum { KP_STEPS = 16 };
KP_BOTH double kp_steps(const struct kp_suspect *x) {
    return KP_STEPS * KP_STEPS * x->s2 > x->draws * x->o * x->o ? KP_STEPS : 1;
}

/* A suspect after its draws.  At a jump y may be NaN. */
KP_BOTH struct kp_strayed kp_judge_suspect(const struct kp_suspect *x, double rms,
                                           struct kp_type_limits type) {
    double spread = kp_spread_of(x->o, x->s2, x->draws, rms, type);
    struct kp_strayed e = kp_stray_of(x->y, x->o, kp_steps(x) * spread, type);
    if (isnan(x->y) && kp_jumps(x)) e.counted = false;
    return e;
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

/* Add a suspect to what was found of an output of n. */
KP_BOTH void kp_settle(struct kp_stray *s, const struct kp_suspect *x, double rms, uint64_t n,
                       struct kp_type_limits type, double limit) {
    const struct kp_strayed e = kp_judge_suspect(x, rms, type);
    if (!e.counted) return;
    int part = kp_part_of(x->at, n);
    s->part_count[part]++;
    s->part_t2[part] += e.t * e.t;
    s->bias += fabs(x->y) < fabs(x->o) ? -e.t : e.t;
    s->largest = fmax(s->largest, e.t);
    s->infinite += !isfinite(x->y);
    if (e.t <= limit) return;
    s->bad++;
    s->unwritten += x->poison;
    if (x->at > s->first_bad) return;
    s->first_bad = x->at;
    s->first_expected = x->o, s->first_found = x->y;
}

#ifdef __cplusplus
}
#endif
#endif
