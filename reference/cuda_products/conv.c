/* conv.c: convolutions over 1, 2 or 3 axes, and transposed ones.
 *
 * The ways are PyTorch's defaults.  A direct kernel does depthwise convolutions; cuDNN does the
 * others, with the first engine that its heuristic offers; a launch of its own adds the bias.
 * Float64, and builds without cuDNN, use cuBLAS. */
#include "cuda_products/conv_parts.h"
#include "cuda_base/check.h"

#include <stdlib.h>
#include "base/error.h"

struct state {
    struct kp_conv_plan *plan;        /* NULL: cuBLAS */
    size_t at_x, at_w, at_q, at_most; /* F64: what rough() has in the scratch, behind cuBLAS's */
};

/* The geometry of a call; its batch may differ from the task's (slices). */
static struct kp_conv geometry(const struct kp_call *c) {
    const struct kp_array *x = &c->in[0], *w = &c->in[1], *y = &c->out[0];
    int axes = x->n - 2, skip = 3 - axes;
    int64_t stride[3], pad[3], dilation[3];
    struct kp_conv g = {.axes = axes,
                        .transposed = c->op->def->transposed,
                        .batch = x->dim[0],
                        .in_channels = x->dim[1],
                        .out_channels = y->dim[1],
                        .groups = op_int(c->op, "groups", 1)};

    op_list(c->op, "stride", axes, 1, stride);
    op_list(c->op, "padding", axes, 0, pad);
    op_list(c->op, "dilation", axes, 1, dilation);
    for (int i = 0; i < 3; i++) {
        int k = i - skip; /* spatial axis of the op */
        g.in[i] = k < 0 ? 1 : x->dim[2 + k];
        g.out[i] = k < 0 ? 1 : y->dim[2 + k];
        g.kernel[i] = k < 0 ? 1 : w->dim[2 + k];
        g.stride[i] = k < 0 ? 1 : stride[k];
        g.pad[i] = k < 0 ? 0 : pad[k];
        g.dilation[i] = k < 0 ? 1 : dilation[k];
    }
    return g;
}

/* Whether a convolution's input channels have filters of their own. */
static bool is_depthwise(const struct kp_conv *g) {
    return !g->transposed && g->groups > 1 && g->groups == g->in_channels;
}

/* The most terms that an element of the result is a sum of.  Of a transposed convolution's taps
 * along an axis, an element meets those that its place leaves on the stride's grid. */
static double terms_of(const struct kp_conv *g) {
    double terms = (double)(g->in_channels / g->groups);
    for (int i = 0; i < 3; i++) {
        int64_t step = 1; /* from one tap that meets the grid to the next */
        while (g->transposed && step < g->kernel[i] && step * g->dilation[i] % g->stride[i]) step++;
        terms *= (double)((g->kernel[i] + step - 1) / step);
    }
    return terms;
}

/* Room for what rough() needs. */
static void reserve_rough(struct state *s, const struct kp_call *c, size_t *scratch) {
    size_t *const at[] = {&s->at_x, &s->at_w, &s->at_q, &s->at_most};
    const size_t bytes[] = {kp_array_bytes(&c->in[0]), kp_array_bytes(&c->in[1]),
                            kp_array_bytes(&c->out[0]), sizeof(double)};
    for (int i = 0; i < 4; i++) {
        *at[i] = kp_align(*scratch);
        *scratch = *at[i] + bytes[i];
    }
}

/* Ask cuDNN for a plan; plan products if it has none, or must not be asked. */
static void *prepare(const struct kp_call *c, size_t *scratch) {
    struct kp_conv g = geometry(c);
    enum kp_dtype dtype = c->in[0].dtype;
    struct state *s = calloc(1, sizeof *s);

    if (!s) die(KP_MACHINE, "%s: out of memory", c->op->def->name);
    *scratch = 0;
    if (is_depthwise(&g)) {
        if (c->math == KP_MATH_F64) reserve_rough(s, c, scratch);
        return s;
    }
    if (c->math != KP_MATH_F64) s->plan = kp_conv_plan(&g, dtype, c->math, scratch);
    if (!s->plan) *scratch = kp_conv_products_bytes(&g, dtype);
    if (c->math == KP_MATH_F64) reserve_rough(s, c, scratch);
    return s;
}

/* Enqueue the way that prepare() chose, then the bias. */
static void run(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    struct kp_conv g = geometry(c);
    struct state *s = state;
    enum kp_dtype dtype = c->in[0].dtype;
    const void *x = c->in[0].data, *w = c->in[1].data;
    const void *bias = c->present[2] ? c->in[2].data : NULL;
    void *y = c->out[0].data;

    if (is_depthwise(&g)) {
        kp_conv_depthwise(&g, dtype, x, w, bias, y, stream);
        return;
    }
    if (s->plan)
        kp_conv_plan_run(s->plan, x, w, y, scratch, stream);
    else
        kp_conv_products(&g, dtype, c->math, x, w, y, scratch, stream);
    if (bias) kp_conv_bias(&g, dtype, bias, y, stream);
}

/* A convolution in float64 by cuBLAS, or directly; no bias. */
static void run_f64(const struct kp_conv *g, const void *x, const void *w, void *y, void *scratch,
                    cudaStream_t stream) {
    if (is_depthwise(g))
        kp_conv_depthwise(g, KP_F64, x, w, NULL, y, stream);
    else
        kp_conv_products(g, KP_F64, KP_MATH_F64, x, w, y, scratch, stream);
}

/* Input and filters as copies, in the scratch. */
static void copy_operands(const struct kp_call *c, double *const copy[2], cudaStream_t stream) {
    for (int i = 0; i < 2; i++)
        KP_CUDA(cudaMemcpyAsync(copy[i], c->in[i].data, kp_array_bytes(&c->in[i]),
                                cudaMemcpyDeviceToDevice, stream));
}

/* The convolution of squares, in the scratch. */
static const double *run_squares(const struct kp_conv *g, const struct kp_call *c,
                                 const struct state *s, char *scratch, cudaStream_t stream) {
    double *copy[2] = {(double *)(scratch + s->at_x), (double *)(scratch + s->at_w)};
    double *q = (double *)(scratch + s->at_q);
    for (int i = 0; i < 2; i++)
        kp_noise_square(c->in[i].data, copy[i], kp_array_count(&c->in[i]), stream);
    run_f64(g, copy[0], copy[1], q, scratch, stream);
    return q;
}

/* Make unknown what an infinite filter may make NaN.  Products of patches have done it. */
static void mark_unknown(const struct kp_conv *g, const struct kp_call *c, cudaStream_t stream) {
    if (g->transposed || is_depthwise(g)) kp_conv_unknown(g, c->in[1].data, c->out[0].data, stream);
}

/* All draws from the exact result. */
static bool together(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    struct kp_conv g = geometry(c);
    if (!kp_noise_is_last(c)) return false;
    run(c, state, scratch, stream);
    const double *q = run_squares(&g, c, state, scratch, stream);
    struct kp_noisy draws = kp_noisy_of(c);
    kp_noise_products(&draws, c->out[0].data, q, kp_array_count(&c->out[0]), terms_of(&g),
                      c[1].noise, stream);
    for (int d = 1; d <= KP_DRAWS; d++) mark_unknown(&g, &c[d], stream);
    return true;
}

/* In float64 with noise (cuda_base/noise.h).  The first draw leaves the convolution of squares in
 * the scratch: noise on the operands changes it too little to matter. */
static void rough(const struct kp_call *c, void *state, void *scratch_, cudaStream_t stream) {
    struct kp_conv g = geometry(c);
    const struct state *s = state;
    char *scratch = scratch_;
    double *copy[2] = {(double *)(scratch + s->at_x), (double *)(scratch + s->at_w)};
    double *q = (double *)(scratch + s->at_q), *most = (double *)(scratch + s->at_most);
    double *y = c->out[0].data;
    struct kp_noise n = *c->noise;
    if (c->first) run_squares(&g, c, s, scratch, stream);
    if (c->exact_operands && !(n.largest > 0)) {
        KP_CUDA(cudaMemcpyAsync(y, c->exact[0], kp_array_bytes(&c->out[0]),
                                cudaMemcpyDeviceToDevice, stream));
    } else {
        copy_operands(c, copy, stream);
        for (int i = 0; i < 2 && n.largest > 0; i++) {
            n.seed = kp_noise_seed(c->noise->seed, i + 1);
            kp_noise_largest(copy[i], kp_array_count(&c->in[i]), &n, most, stream);
        }
        run_f64(&g, copy[0], copy[1], y, scratch, stream);
        if (c->present[2]) kp_conv_bias(&g, KP_F64, c->in[2].data, y, stream);
    }
    kp_noise_product(y, q, kp_array_count(&c->out[0]), terms_of(&g), c->noise, stream);
    mark_unknown(&g, c, stream);
}

/* Free the cuDNN plan. */
static void destroy(void *state) {
    struct state *s = state;
    kp_conv_plan_destroy(s->plan);
    free(s);
}

KP_IMPL(conv1d, prepare, run, rough, destroy, KP_DENSE | KP_BY_CUDNN, together);
KP_IMPL(conv2d, prepare, run, rough, destroy, KP_DENSE | KP_BY_CUDNN, together);
KP_IMPL(conv3d, prepare, run, rough, destroy, KP_DENSE | KP_BY_CUDNN, together);
KP_IMPL(conv_transpose1d, prepare, run, rough, destroy, KP_DENSE | KP_BY_CUDNN, together);
KP_IMPL(conv_transpose2d, prepare, run, rough, destroy, KP_DENSE | KP_BY_CUDNN, together);
KP_IMPL(conv_transpose3d, prepare, run, rough, destroy, KP_DENSE | KP_BY_CUDNN, together);
