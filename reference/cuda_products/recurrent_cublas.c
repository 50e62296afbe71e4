/* recurrent_cublas.c: the products of x of a recurrent network in float64, in all worlds. */
#include "cuda_products/recurrent_parts.h"
#include "cuda_base/check.h"

#include <cublas_v2.h>

/* Steps at once: enough rows for cuBLAS, in little memory. */
enum { STEPS = 64, CUBLAS_BYTES = 32 << 20 };

/* See recurrent_parts.h. */
struct kp_x_strides kp_x_strides_of(const struct kp_recurrent *r) {
    struct kp_x_strides s = {r->steps < STEPS ? r->steps : STEPS, r->gates * r->hidden, 0, 0};
    s.row = s.steps * s.time;
    s.world = r->batch * s.row;
    return s;
}

/* What lies in the scratch behind cuBLAS's own: the products of each direction, the squares of a
 * layer's x, and those of a direction's weights. */
struct places {
    size_t products, x2, w2, end;
};
static struct places places_of(const struct kp_recurrent *r) {
    struct kp_x_strides s = kp_x_strides_of(r);
    int64_t wide = r->directions * r->hidden, widest = r->input > wide ? r->input : wide;
    int64_t products = r->directions * (KP_WORLDS + 1) * s.world;
    struct places at = {.products = CUBLAS_BYTES};
    at.x2 = at.products + kp_align((size_t)products * sizeof(double));
    at.w2 = at.x2 + kp_align((size_t)(r->steps * r->batch * widest) * sizeof(double));
    at.end = at.w2 + kp_align((size_t)(s.time * widest) * sizeof(double));
    return at;
}
size_t kp_x_bytes(const struct kp_recurrent *r) {
    return places_of(r).end;
}

/* Sets up cuBLAS for a run. */
static void begin(void *workspace, cudaStream_t stream) {
    KP_CUBLAS(cublasSetStream(kp_cublas(), stream));
    KP_CUBLAS(cublasSetWorkspace(kp_cublas(), workspace, CUBLAS_BYTES));
    KP_CUBLAS(cublasSetMathMode(kp_cublas(), CUBLAS_DEFAULT_MATH));
}

/* Enqueue a direction's products in one world, of `times` rows of each sample, x the first of them.
 * cuBLAS is column-major: the rows of x and of the weights are its columns. */
static void multiply(const struct kp_recurrent *r, int64_t times, int64_t width, const double *x,
                     const double *weight, double *to) {
    struct kp_x_strides s = kp_x_strides_of(r);
    struct kp_strides in = kp_strides_of(r, width);
    const double one = 1, zero = 0;
    KP_CUBLAS(cublasDgemmStridedBatched_64(kp_cublas(), CUBLAS_OP_T, CUBLAS_OP_N, s.time, times,
                                           width, &one, weight, width, 0, x, in.time, in.row, &zero,
                                           to, s.time, s.row, r->batch));
}

/* See recurrent_parts.h.  In both directions products lie in the order of time. */
struct kp_x_at kp_x_multiply(const struct kp_recurrent *r, const struct kp_call *c, int layer,
                             int64_t t, const double *const x[KP_WORLDS], char *scratch,
                             cudaStream_t stream) {
    struct kp_x_strides s = kp_x_strides_of(r);
    struct places at = places_of(r);
    double *x2 = (double *)(scratch + at.x2), *w2 = (double *)(scratch + at.w2);
    int64_t width = recurrent_width(r, layer), begun = t - t % s.steps;
    int64_t times = r->steps - begun < s.steps ? r->steps - begun : s.steps;
    struct kp_x_at found = {{NULL, NULL}};
    if (t == begun) begin(scratch, stream);
    if (t == 0) kp_noise_square(x[0], x2, r->steps * r->batch * width, stream);
    for (int d = 0; d < r->directions; d++) {
        const double *weight = c->in[recurrent_slot(r, layer, d, KP_W_IH)].data;
        double *to = (double *)(scratch + at.products) + d * (KP_WORLDS + 1) * s.world;
        int64_t first = kp_time_of(r, d, d ? begun + times - 1 : begun);
        int64_t from = first * kp_strides_of(r, width).time;
        found.of[d] = to + (kp_time_of(r, d, t) - first) * s.time;
        if (t != begun) continue;
        for (int w = 0; w < KP_WORLDS; w++, to += s.world)
            multiply(r, times, width, x[w] + from, weight, to);
        kp_noise_square(weight, w2, s.time * width, stream);
        multiply(r, times, width, x2 + from, w2, to);
    }
    return found;
}
