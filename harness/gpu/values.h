/* values.h: which value each element of a tensor has, under each distribution.
 *
 * An element depends on nothing but the seed, the tensor and its index, so that a sample can be
 * made again from its seed.  Compiled for the GPU (fill.cu) and for the host (the pretend GPU, and
 * tests). */
#ifndef KP_VALUES_H
#define KP_VALUES_H

#include "task/taskfile.h"

#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a sample's tensors hold.  All but the first keep to each tensor's domain, and have its
 * declared root mean square where they do not say otherwise. */
enum kp_distribution {
    KP_DIST_DECLARED, /* the task's own fill */
    KP_DIST_NORMAL,   /* signed: normal, or even where the declared fill is normal */
    KP_DIST_SCALED,   /* normal, each element times a power of two of its own */
    KP_DIST_ROWS,     /* normal, rows (axis 0) times powers of two */
    KP_DIST_COLUMNS,  /* the same along the last axis */
    KP_DIST_INNER,    /* a product's operands scaled against each other along the inner index */
    KP_DIST_OUTLIER,  /* normal, one element far larger */
    KP_DIST_LARGE,    /* the first tensor within a factor of four of the largest number */
    KP_DIST_TINY,     /* the first tensor around the smallest normal number */
    KP_DIST_INFINITE, /* normal, one element of one tensor infinite */
    KP_DIST_COUNT
};
extern const char *const kp_distribution_name[KP_DIST_COUNT];

/* Whether the distribution gives some tensor of the task other values than any earlier one does:
 * no row scales without rows, no inner index without a product of two tensors. */
bool kp_distribution_applies(const struct kp_task *t, enum kp_distribution d);

enum kp_values_kind {                           /* beside kp_fill_kind */
                      KP_VALUES_POSITIVE = 100, /* |normal|, above 0 */
                      KP_VALUES_UNIT            /* an even number in [0,1), to the power b */
};

struct kp_values { /* how one tensor is drawn */
    int kind, wrap;
    float a, b;           /* parameters of the fill */
    float factor;         /* times all of it */
    float low, spread;    /* each element times 2^e, e even in [low, low + spread]; spread 0: no */
    int64_t rows, cols;   /* last two axes, of the tensor that is filled */
    bool transposed;      /* the element is that of the source with the last two axes exchanged */
    const double *values; /* of KP_FILL_VALUES, on the host */
    uint64_t seed;
    /* Elements are scaled by 2^e, e a whole number in [step_low, step_low + steps), by their place
     * i / stride % size % period along one axis.  steps 0: no. */
    int64_t stride, size, period;
    int step_low, steps, step_sign;
    uint64_t step_seed;
    int64_t special; /* this element is times special_factor, which may be infinite; -1: none */
    float special_factor;
};

/* How tensor `index` of a task is drawn from a sample's seed. */
struct kp_values kp_values_of(const struct kp_task *t, int index, enum kp_distribution d,
                              uint64_t seed);

#ifdef __CUDACC__
#define KP_BOTH __host__ __device__ static inline
#else
#define KP_BOTH static inline
#endif

/* A seed made of a seed and a number (splitmix64). */
KP_BOTH uint64_t kp_mix(uint64_t seed, uint64_t index) {
    uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* An even number in [0,1), and a normal one, of 64 random bits. */
KP_BOTH float kp_even(uint64_t h) {
    return (float)(h >> 40) * 0x1p-24f;
}
KP_BOTH float kp_normal(uint64_t h) {
    float u = (float)((uint32_t)(h >> 32) >> 8) * 0x1p-24f + 0x1p-25f;
    float v = (float)((uint32_t)h >> 8) * 0x1p-24f;
    return sqrtf(-2.0f * logf(u)) * cosf(6.283185307f * v);
}

/* The least of positive values, times the root mean square. */
#define KP_LEAST_POSITIVE 1e-6f

/* A number of a continuous law, of 64 random bits: kind is UNIFORM, FAN_IN or NORMAL. */
KP_BOTH float kp_value_continuous(int kind, const struct kp_values *w, uint64_t h) {
    if (kind == KP_FILL_UNIFORM) return w->a + (w->b - w->a) * kp_even(h);
    if (kind == KP_FILL_FAN_IN) return (2.0f * kp_even(h) - 1.0f) * w->a;
    return w->a + w->b * kp_normal(h);
}

/* Element i without regard to scales, symmetry and triangles. */
KP_BOTH double kp_value_plain(const struct kp_values *w, uint64_t i) {
    uint64_t h = kp_mix(w->seed, i);
    switch (w->kind) {
    case KP_FILL_UNIFORM:
    case KP_FILL_FAN_IN:
    case KP_FILL_NORMAL: return kp_value_continuous(w->kind, w, h);
    case KP_FILL_CONSTANT: return w->a;
    case KP_FILL_INTEGERS: return w->a + (double)(h % (uint64_t)(w->b - w->a));
    case KP_FILL_BERNOULLI: return kp_even(h) < w->a ? 1.0 : 0.0;
    case KP_FILL_VALUES: return w->values[i];
    case KP_FILL_SIGNS: return h & 1 ? 1.0 : -1.0;
    case KP_VALUES_POSITIVE: return fabsf(w->b * kp_normal(h)) + KP_LEAST_POSITIVE * w->b;
    case KP_VALUES_UNIT: return powf(kp_even(h), w->b);
    }
    return 0;
}

/* The place of element i along the axis that steps go along.  Narrow divisions are much faster. */
KP_BOTH uint64_t kp_place_along(const struct kp_values *w, uint64_t i) {
    uint64_t stride = (uint64_t)w->stride, size = (uint64_t)w->size, period = (uint64_t)w->period;
    if ((i | stride | size | period) >> 32) return i / stride % size % period;
    return (uint32_t)i / (uint32_t)stride % (uint32_t)size % (uint32_t)period;
}

/* Element i with its scales. */
KP_BOTH double kp_value_scaled(const struct kp_values *w, uint64_t i) {
    double x = kp_value_plain(w, i) * w->factor;
    if (w->spread > 0) x *= exp2f(w->low + w->spread * kp_even(kp_mix(kp_mix(w->seed, i), 1)));
    if (w->steps) {
        uint64_t h = kp_mix(w->step_seed, kp_place_along(w, i));
        int e = w->step_low + (int)(h % (uint64_t)w->steps);
        x = ldexp(x, w->step_sign * e);
    }
    if ((int64_t)i == w->special) x = (x < 0 ? -1 : 1) * fmax(fabs(x), 0x1p-40) * w->special_factor;
    return x;
}

/* Element i. */
KP_BOTH double kp_value_at(const struct kp_values *w, uint64_t i) {
    if (!w->wrap && !w->transposed) return kp_value_scaled(w, i);
    uint64_t rows = (uint64_t)w->rows, cols = (uint64_t)w->cols, area = rows * cols;
    uint64_t m = i / area, r = i % area / cols, c = i % cols;
    uint64_t mirror = m * area + c * rows + r; /* the same element with its axes exchanged */
    if (w->transposed) return kp_value_scaled(w, mirror);
    if (w->wrap & KP_WRAP_UPPER && c < r) return 0;
    if (w->wrap & KP_WRAP_LOWER && c > r) return 0;
    double x = kp_value_scaled(w, i);
    if (w->wrap & KP_WRAP_SYMMETRIC) x = 0.5 * (x + kp_value_scaled(w, mirror));
    return x;
}

#ifdef __cplusplus
}
#endif
#endif
