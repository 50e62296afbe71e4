/* conv.c: conv1d, conv2d and conv3d.
 *
 * The ways are PyTorch's defaults.  A direct kernel does depthwise convolutions; cuDNN does the
 * others, with the first engine that its heuristic offers; a launch of its own adds the bias.
 * Float64, and builds without cuDNN, gather patches and multiply (im2col and cuBLAS). */
#include "cuda_ops/conv_parts.h"
#include "cuda_base/check.h"

#include <cublas_v2.h>
#include <stdlib.h>
#include "base/error.h"

enum {
    CUBLAS_BYTES = 32 << 20, /* cuBLAS workspace: what it asks for on Hopper */
    PATCH_BYTES = 256 << 20  /* patches gathered at a time */
};

struct state {
    struct kp_conv_plan *plan;        /* NULL: patches and cuBLAS */
    size_t at_x, at_w, at_q, at_most; /* F64: what rough() has in the scratch, behind patches */
};

/* The geometry of a call; its batch may differ from the task's (slices). */
static struct kp_conv geometry(const struct kp_call *c) {
    const struct kp_array *x = &c->in[0], *w = &c->in[1], *y = &c->out[0];
    int axes = x->n - 2, skip = 3 - axes;
    int64_t stride[3], pad[3], dilation[3];
    struct kp_conv g = {.axes = axes,
                        .batch = x->dim[0],
                        .in_channels = x->dim[1],
                        .out_channels = w->dim[0],
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

/* Whether each input channel has filters of its own. */
static bool is_depthwise(const struct kp_conv *g) {
    return g->groups > 1 && g->groups == g->in_channels;
}

/* How much is gathered at a time: `images` whole images, or `positions` of one. */
struct chunk {
    int64_t rows, images, positions;
};

/* As many whole images as fit PATCH_BYTES, or else as many positions of one image. */
static struct chunk chunk_of(const struct kp_conv *g, size_t element) {
    struct chunk k = {g->in_channels / g->groups * kp_conv_taps(g), 1, kp_conv_out(g)};
    int64_t fit = PATCH_BYTES / (k.rows * (int64_t)element); /* positions */
    if (fit < 1) fit = 1;
    if (fit >= k.positions)
        k.images = fit / k.positions < g->batch ? fit / k.positions : g->batch;
    else
        k.positions = fit > 128 ? fit / 128 * 128 : fit;
    return k;
}

/* Sets up cuBLAS for a run: stream first, since setting it resets the workspace. */
static cublasHandle_t cublas_for(void *workspace, cudaStream_t stream) {
    cublasHandle_t blas = kp_cublas();
    KP_CUBLAS(cublasSetStream(blas, stream));
    KP_CUBLAS(cublasSetWorkspace(blas, workspace, CUBLAS_BYTES));
    KP_CUBLAS(cublasSetMathMode(blas, CUBLAS_DEFAULT_MATH));
    KP_CUBLAS(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_HOST));
    return blas;
}

/* For each of `images` images: out[co, positions] = w[co, rows] x patches[rows,
 * positions].  cuBLAS is column-major, so it sees the transposed product. */
static void multiply(cublasHandle_t blas, const struct kp_conv *g, enum kp_dtype dtype,
                     enum kp_math math, const struct chunk *k, int64_t images, int64_t positions,
                     const void *patches, const void *w, void *y) {
    static const cudaDataType_t types[] = {[KP_F64] = CUDA_R_64F,
                                           [KP_F32] = CUDA_R_32F,
                                           [KP_F16] = CUDA_R_16F,
                                           [KP_BF16] = CUDA_R_16BF};
    const double one64 = 1, zero64 = 0;
    const float one = 1, zero = 0;
    bool f64 = dtype == KP_F64;
    cudaDataType_t t = types[dtype];
    cublasComputeType_t compute = f64                    ? CUBLAS_COMPUTE_64F
                                  : math == KP_MATH_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                         : CUBLAS_COMPUTE_32F;

    KP_CUBLAS(cublasGemmStridedBatchedEx(
        blas, CUBLAS_OP_N, CUBLAS_OP_N, (int)positions, (int)(g->out_channels / g->groups),
        (int)k->rows, f64 ? (const void *)&one64 : &one, patches, t, (int)positions,
        k->rows * positions, w, t, (int)k->rows, 0, f64 ? (const void *)&zero64 : &zero, y, t,
        (int)kp_conv_out(g), g->out_channels * kp_conv_out(g), (int)images, compute,
        CUBLAS_GEMM_DEFAULT));
}

/* The convolution without bias by patches and products. */
static void run_patches(const struct kp_conv *g, enum kp_dtype dtype, enum kp_math math,
                        const char *x, const char *w, char *y, char *scratch, cudaStream_t stream) {
    int64_t e = (int64_t)kp_dtype_size(dtype), in = kp_conv_in(g), out = kp_conv_out(g);
    int64_t ci = g->in_channels / g->groups, co = g->out_channels / g->groups;
    struct chunk k = chunk_of(g, (size_t)e);
    cublasHandle_t blas = cublas_for(scratch, stream);
    char *patches = scratch + CUBLAS_BYTES;

    for (int64_t n = 0; n < g->batch; n += k.images) {
        int64_t images = g->batch - n < k.images ? g->batch - n : k.images;
        for (int64_t group = 0; group < g->groups; group++) {
            const char *from = x + (n * g->in_channels + group * ci) * in * e;
            char *to = y + (n * g->out_channels + group * co) * out * e;
            for (int64_t p = 0; p < out; p += k.positions) {
                int64_t count = out - p < k.positions ? out - p : k.positions;
                kp_conv_patches(g, dtype, from, images, p, count, patches, stream);
                multiply(blas, g, dtype, math, &k, images, count, patches,
                         w + group * co * k.rows * e, to + p * e);
            }
        }
    }
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

/* Ask cuDNN for a plan; plan patches if it has none, or must not be asked. */
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
    if (!s->plan) {
        struct chunk k = chunk_of(&g, kp_dtype_size(dtype));
        *scratch = CUBLAS_BYTES + (size_t)(k.images * k.positions * k.rows) * kp_dtype_size(dtype);
    }
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
        run_patches(&g, dtype, c->math, x, w, y, scratch, stream);
    if (bias) kp_conv_bias(&g, dtype, bias, y, stream);
}

/* A convolution in float64 by patches, or directly; no bias. */
static void run_f64(const struct kp_conv *g, const void *x, const void *w, void *y, void *scratch,
                    cudaStream_t stream) {
    if (is_depthwise(g))
        kp_conv_depthwise(g, KP_F64, x, w, NULL, y, stream);
    else
        run_patches(g, KP_F64, KP_MATH_F64, x, w, y, scratch, stream);
}

/* Input and filters as copies, in the scratch. */
static void copy_operands(const struct kp_call *c, double *const copy[2], cudaStream_t stream) {
    for (int i = 0; i < 2; i++)
        KP_CUDA(cudaMemcpyAsync(copy[i], c->in[i].data, kp_array_bytes(&c->in[i]),
                                cudaMemcpyDeviceToDevice, stream));
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
    int64_t terms = g.in_channels / g.groups * kp_conv_taps(&g);
    if (c->first) {
        for (int i = 0; i < 2; i++)
            kp_noise_square(c->in[i].data, copy[i], kp_array_count(&c->in[i]), stream);
        run_f64(&g, copy[0], copy[1], q, scratch, stream);
    }
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
    kp_noise_product(y, q, kp_array_count(&c->out[0]), (double)terms, c->noise, stream);
}

/* Free the cuDNN plan. */
static void destroy(void *state) {
    struct state *s = state;
    kp_conv_plan_destroy(s->plan);
    free(s);
}

KP_IMPL(conv1d, prepare, run, rough, destroy, KP_DENSE | KP_BY_CUDNN);
KP_IMPL(conv2d, prepare, run, rough, destroy, KP_DENSE | KP_BY_CUDNN);
KP_IMPL(conv3d, prepare, run, rough, destroy, KP_DENSE | KP_BY_CUDNN);
