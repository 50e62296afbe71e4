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
    struct kp_conv_plan *plan; /* NULL: cuBLAS */
    bool joined;               /* F64: all worlds are one product */
    /* F64: what rough() and together() have in the scratch, behind cuBLAS's. */
    size_t at_x, at_w, at_q, at_most, at_y;
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

/* Elements of a result above which a convolution fills the GPU by itself. */
enum { MOST_JOINED = 1 << 21 };

/* Whether the draws, which have operands of their own, suit one product: that of one alone is a few
 * tiles, each a sum of thousands of terms, and most of the GPU would wait. */
static bool suits_joining(const struct kp_call *c, const struct kp_conv *g) {
    return !is_depthwise(g) && !c->exact_operands && kp_array_count(&c->out[0]) <= MOST_JOINED;
}

/* Room in the scratch for what float64 needs. */
static void reserve_f64(struct state *s, const struct kp_call *c, const struct kp_conv *g,
                        size_t *scratch) {
    s->joined = suits_joining(c, g);
    *scratch = is_depthwise(g) ? 0 : kp_conv_products_bytes(g, KP_F64, s->joined ? KP_WORLDS : 1);
    size_t *const at[] = {&s->at_x, &s->at_w, &s->at_q, &s->at_most, &s->at_y};
    const size_t out = kp_array_bytes(&c->out[0]);
    const size_t bytes[] = {kp_array_bytes(&c->in[0]), kp_array_bytes(&c->in[1]), out,
                            sizeof(double), s->joined ? KP_WORLDS * out : 0};
    for (int i = 0; i < 5; i++) {
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
    if (c->math == KP_MATH_F64) {
        reserve_f64(s, c, &g, scratch);
    } else if (!is_depthwise(&g)) {
        s->plan = kp_conv_plan(&g, dtype, c->math, scratch);
        if (!s->plan) *scratch = kp_conv_products_bytes(&g, dtype, 1);
    }
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
        kp_conv_products(&g, dtype, c->math, 1, 0, x, w, y, scratch, stream);
    if (bias) kp_conv_bias(&g, dtype, bias, y, stream);
}

/* A convolution in float64 by cuBLAS, or directly; no bias. */
static void run_f64(const struct kp_conv *g, const void *x, const void *w, void *y, void *scratch,
                    cudaStream_t stream) {
    if (is_depthwise(g))
        kp_conv_depthwise(g, KP_F64, x, w, NULL, y, stream);
    else
        kp_conv_products(g, KP_F64, KP_MATH_F64, 1, 0, x, w, y, scratch, stream);
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
static void draw_from_exact(const struct kp_conv *g, const struct kp_call *c, const struct state *s,
                            char *scratch, cudaStream_t stream) {
    run(c, (void *)s, scratch, stream);
    const double *q = run_squares(g, c, s, scratch, stream);
    struct kp_noisy draws = kp_noisy_of(c);
    kp_noise_products(&draws, c->out[0].data, 0, q, kp_array_count(&c->out[0]), terms_of(g),
                      c[1].noise, stream);
}

/* Whether only inputs differ between worlds, and lie evenly in memory: *apart elements. */
static bool inputs_apart(const struct kp_call *c, int64_t *apart) {
    const double *x = c[0].in[0].data;
    *apart = (const double *)c[1].in[0].data - x;
    for (int w = 1; w < KP_WORLDS; w++) {
        if ((const double *)c[w].in[0].data != x + w * *apart) return false;
        for (int k = 1; k <= 2; k++)
            if (c->present[k] && c[w].in[k].data != c[0].in[k].data) return false;
    }
    return true;
}

/* All worlds as one product of more images.  The squares are those of the first draw, as in
 * rough().
 */
static void run_joined(const struct kp_conv *g, const struct kp_call *c, const struct state *s,
                       int64_t apart, char *scratch, cudaStream_t stream) {
    int64_t count = kp_array_count(&c->out[0]);
    double *y = (double *)(scratch + s->at_y);
    const double *q = run_squares(g, &c[1], s, scratch, stream);
    struct kp_noisy draws = kp_noisy_of(c);
    struct kp_conv all = *g;
    all.batch *= KP_WORLDS;
    kp_conv_products(g, KP_F64, KP_MATH_F64, KP_WORLDS, apart, c->in[0].data, c->in[1].data, y,
                     scratch, stream);
    if (c->present[2]) kp_conv_bias(&all, KP_F64, c->in[2].data, y, stream);
    KP_CUDA(cudaMemcpyAsync(c->out[0].data, y, kp_array_bytes(&c->out[0]), cudaMemcpyDeviceToDevice,
                            stream));
    kp_noise_products(&draws, y + count, count, q, count, terms_of(g), c[1].noise, stream);
}

/* All draws from the exact result, or from a product of their own. */
static bool together(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    struct kp_conv g = geometry(c);
    const struct state *s = state;
    int64_t apart;
    if (kp_noise_is_last(c))
        draw_from_exact(&g, c, s, scratch, stream);
    else if (s->joined && !(c[1].noise->largest > 0) && inputs_apart(c, &apart))
        run_joined(&g, c, s, apart, scratch, stream);
    else
        return false;
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
    const double *from[2] = {c->in[0].data, c->in[1].data};
    struct kp_noise n = *c->noise;
    if (c->first) run_squares(&g, c, s, scratch, stream);
    if (c->exact_operands && !(n.largest > 0)) {
        KP_CUDA(cudaMemcpyAsync(y, c->exact[0], kp_array_bytes(&c->out[0]),
                                cudaMemcpyDeviceToDevice, stream));
    } else {
        if (n.largest > 0) copy_operands(c, copy, stream);
        for (int i = 0; i < 2 && n.largest > 0; i++) {
            n.seed = kp_noise_seed(c->noise->seed, i + 1);
            kp_noise_largest(copy[i], kp_array_count(&c->in[i]), &n, most, stream);
            from[i] = copy[i];
        }
        run_f64(&g, from[0], from[1], y, scratch, stream);
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
