/* strided.h: loops over up to two strided operands of a dense result.
 *
 * On the host a walk is built: axes that lie evenly in memory for every operand
 * become one, so most walks end with one to three axes.  On the device a result
 * index is split into axis indices by multiplication instead of division, in 32
 * bits: walks of 2^31 items or more are cut in two by the host. */
#ifndef KP_STRIDED_H
#define KP_STRIDED_H

#include "cuda_base/array.h"
#include <string.h>

enum { KP_WALKERS = 2, KP_THREADS = 256, KP_UNROLL = 4 };

struct kp_walk { /* outermost axis first; strides in elements */
    int n;
    int64_t count;
    int64_t dim[KP_MAX_DIMS];
    int64_t stride[KP_WALKERS][KP_MAX_DIMS];
};

struct kp_divisor { /* exact for numerators below 2^31 */
    uint32_t d, multiplier, shift;
};

struct kp_loop { /* a walk in device form, innermost axis first, counted in items */
    int n;
    struct kp_divisor dim[KP_MAX_DIMS];
    int64_t stride[KP_WALKERS][KP_MAX_DIMS];
};

/* Stride of operand x along axis i of a result with n axes, as NumPy broadcasts. */
static inline int64_t kp_stride_along(const struct kp_array *x, int n, int i) {
    int mine = i - (n - x->n);
    return mine < 0 || x->dim[mine] == 1 ? 0 : x->stride[mine];
}

/* The walk over all of `out`; an operand may be NULL. */
static inline struct kp_walk kp_walk_make(const struct kp_array *out,
                                          const struct kp_array *const x[KP_WALKERS]) {
    struct kp_walk w = {};
    w.count = 1;
    for (int i = 0; i < out->n; i++) {
        if (out->dim[i] == 1) continue;
        int64_t s[KP_WALKERS];
        bool even = w.n > 0; /* this axis continues the one before, for every operand */
        for (int k = 0; k < KP_WALKERS; k++) {
            s[k] = x[k] ? kp_stride_along(x[k], out->n, i) : 0;
            even = even && w.stride[k][w.n - 1] == s[k] * out->dim[i];
        }
        if (!even) w.dim[w.n++] = 1;
        w.dim[w.n - 1] *= out->dim[i];
        for (int k = 0; k < KP_WALKERS; k++) w.stride[k][w.n - 1] = s[k];
        w.count *= out->dim[i];
    }
    if (w.n == 0) w.dim[w.n++] = 1;
    return w;
}

/* The multiplier and shift that divide by d. */
static inline struct kp_divisor kp_divisor_make(int64_t d) {
    struct kp_divisor r = {(uint32_t)d, 0, 0};
    while (((int64_t)1 << r.shift) < d) r.shift++;
    r.multiplier =
        (uint32_t)(((uint64_t)1 << 32) * (((uint64_t)1 << r.shift) - (uint64_t)d) / (uint64_t)d +
                   1);
    return r;
}

/* The device form, for items of `pack` elements along the last axis. */
static inline struct kp_loop kp_loop_make(const struct kp_walk *w, int pack) {
    struct kp_loop l;
    l.n = w->n;
    for (int i = 0; i < w->n; i++) {
        int from = w->n - 1 - i, scale = i == 0 ? pack : 1;
        l.dim[i] = kp_divisor_make(w->dim[from] / scale);
        for (int k = 0; k < KP_WALKERS; k++) l.stride[k][i] = w->stride[k][from] * scale;
    }
    return l;
}

/* Cut the outermost axis in two: `w` keeps the first part, the second is
 * returned.  The caller moves the pointers by *at elements of the result and
 * shift[k] of operand k. */
static inline struct kp_walk kp_walk_split(struct kp_walk *w, int64_t *at,
                                           int64_t shift[KP_WALKERS]) {
    while (w->n > 1 && w->dim[0] == 1) { /* left over from an earlier cut */
        w->n--;
        memmove(w->dim, w->dim + 1, (size_t)w->n * sizeof *w->dim);
        for (int k = 0; k < KP_WALKERS; k++)
            memmove(w->stride[k], w->stride[k] + 1, (size_t)w->n * sizeof *w->stride[k]);
    }
    struct kp_walk rest = *w;
    int64_t inner = w->count / w->dim[0], half = w->dim[0] / 2;
    w->dim[0] = half;
    w->count = half * inner;
    rest.dim[0] -= half;
    rest.count = rest.dim[0] * inner;
    *at = w->count;
    for (int k = 0; k < KP_WALKERS; k++) shift[k] = half * w->stride[k][0];
    return rest;
}

/* True if operand k can be read in packs: evenly along the last axis, or not
 * moving along it at all, and aligned. */
static inline bool kp_walk_packs(const struct kp_walk *w, int k, const void *data, int pack,
                                 size_t size) {
    int last = w->n - 1;
    if (w->stride[k][last] == 0) return true;
    if (w->stride[k][last] != 1 || (uintptr_t)data % (pack * size)) return false;
    for (int i = 0; i < last; i++)
        if (w->stride[k][i] % pack) return false;
    return true;
}

/* Blocks that cover `items`, KP_UNROLL a thread. */
static inline unsigned kp_blocks(int64_t items) {
    return (unsigned)((items + KP_THREADS * KP_UNROLL - 1) / (KP_THREADS * KP_UNROLL));
}

#ifdef __CUDACC__
/* Operand offsets of item i. */
__device__ __forceinline__ void kp_loop_at(const struct kp_loop &l, uint32_t i,
                                           int64_t (&at)[KP_WALKERS]) {
    for (int k = 0; k < KP_WALKERS; k++) at[k] = 0;
    for (int d = 0; d < l.n; d++) {
        struct kp_divisor v = l.dim[d];
        uint32_t q = d + 1 < l.n ? (__umulhi(i, v.multiplier) + i) >> v.shift : 0;
        uint32_t r = i - q * v.d;
        for (int k = 0; k < KP_WALKERS; k++) at[k] += r * l.stride[k][d];
        i = q;
    }
}

template <typename T, int V> struct alignas(sizeof(T) * V) kp_pack { T v[V]; };
#endif

#endif
