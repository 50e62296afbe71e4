/* conv_cublas.c: convolutions as matrix products.
 *
 * A convolution gathers patches of the operand and multiplies the filters with them (im2col).  A
 * transposed one goes that way back: the filters times the operand are, for each output channel and
 * tap, what each place adds through it, and each place of the result gathers what is its own.  As
 * much is done at a time as fits. */
#include "cuda_products/conv_parts.h"
#include "cuda_base/check.h"

#include <cublas_v2.h>

enum {
    CUBLAS_BYTES = 32 << 20, /* cuBLAS workspace: what it asks for on Hopper */
    CHUNK_BYTES = 256 << 20, /* patches, or what is gathered from, at a time */
    JOINED_BYTES = 512 << 20 /* of several worlds, whose products are small */
};

/* How much is done at a time: so many whole images, or a part of one.  A part is so many positions
 * of the result or, transposed, channels of a group. */
struct chunk {
    int64_t images, part;
};

/* Whether the operand is its own patches: a filter of one tap meets each element once.  Float64
 * alone, so that baselines stay as they are. */
static bool is_plain(const struct kp_conv *g, enum kp_dtype dtype) {
    bool plain = dtype == KP_F64 && !g->transposed;
    for (int i = 0; i < 3; i++)
        plain = plain && g->kernel[i] == 1 && g->stride[i] == 1 && g->pad[i] == 0;
    return plain;
}

/* Elements in the scratch for one position, or channel; *all: how many of these a group has. */
static int64_t least_of(const struct kp_conv *g, int64_t *all) {
    *all = g->transposed ? g->out_channels / g->groups : kp_conv_out(g);
    return kp_conv_taps(g) * (g->transposed ? kp_conv_in(g) : g->in_channels / g->groups);
}

/* As much as these bytes hold, at least one position or channel. */
static struct chunk chunk_of(const struct kp_conv *g, enum kp_dtype dtype, int worlds) {
    int64_t element = (int64_t)kp_dtype_size(dtype), total = worlds * g->batch;
    int64_t all, bytes = worlds > 1 ? JOINED_BYTES : CHUNK_BYTES;
    int64_t fit = bytes / (least_of(g, &all) * element);
    if (is_plain(g, dtype)) return (struct chunk){g->batch, all};
    if (fit >= all) return (struct chunk){fit / all < total ? fit / all : total, all};
    if (fit > 128 && !g->transposed) fit = fit / 128 * 128;
    return (struct chunk){1, fit < 1 ? 1 : fit};
}

/* See conv_parts.h. */
size_t kp_conv_products_bytes(const struct kp_conv *g, enum kp_dtype dtype, int worlds) {
    struct chunk k = chunk_of(g, dtype, worlds);
    int64_t all, elements = is_plain(g, dtype) ? 0 : k.images * k.part * least_of(g, &all);
    return CUBLAS_BYTES + (size_t)elements * kp_dtype_size(dtype);
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

/* For each of `images` images, from image `from` on: c[m,n] = a[m,k] b[k,n], row by row, where ld
 * is from row to row and step from image to image.  a is the same for all; across: it is stored as
 * [k,m]. */
struct product {
    enum kp_dtype dtype;
    enum kp_math math;
    int64_t from, images, m, n, k;
    int64_t apart; /* from an operand's first image in a world to the next world's */
    bool across;
    int64_t lda, ldb, ldc, step_b, step_c;
};

/* Enqueue it.  cuBLAS is column-major, so it sees the transposed product. */
static void multiply(cublasHandle_t blas, const struct product *p, const void *a, const void *b,
                     void *c) {
    static const cudaDataType_t types[] = {[KP_F64] = CUDA_R_64F,
                                           [KP_F32] = CUDA_R_32F,
                                           [KP_F16] = CUDA_R_16F,
                                           [KP_BF16] = CUDA_R_16BF};
    const double one64 = 1, zero64 = 0;
    const float one = 1, zero = 0;
    bool f64 = p->dtype == KP_F64;
    cudaDataType_t t = types[p->dtype];
    cublasComputeType_t compute = f64                       ? CUBLAS_COMPUTE_64F
                                  : p->math == KP_MATH_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                            : CUBLAS_COMPUTE_32F;

    KP_CUBLAS(cublasGemmStridedBatchedEx_64(
        blas, CUBLAS_OP_N, p->across ? CUBLAS_OP_T : CUBLAS_OP_N, p->n, p->m, p->k,
        f64 ? (const void *)&one64 : &one, b, t, p->ldb, p->step_b, a, t, p->lda, 0,
        f64 ? (const void *)&zero64 : &zero, c, t, p->ldc, p->step_c, p->images, compute,
        CUBLAS_GEMM_DEFAULT));
}

/* Where the first image begins in an operand. */
static const char *image_of(const struct kp_conv *g, const struct product *p, const char *x) {
    int64_t at =
        p->from / g->batch * p->apart + p->from % g->batch * g->in_channels * kp_conv_in(g);
    return x + at * (int64_t)kp_dtype_size(p->dtype);
}

/* Patches under p->n positions from `at` on. */
static void write_patches(const struct kp_conv *g, const struct product *p, const char *x,
                          int64_t at, char *patches, cudaStream_t stream) {
    if (p->dtype == KP_F64)
        kp_conv_patches_f64(g, (const double *)x, p->apart, p->from, p->images, at, p->n,
                            (double *)patches, stream);
    else
        kp_conv_patches(g, p->dtype, image_of(g, p, x), p->images, at, p->n, patches, stream);
}

/* A group's share of y[out channels, positions]: filters times patches.  x, w and y begin with that
 * group's; `part` positions at a time. */
static void run_patches(cublasHandle_t blas, const struct kp_conv *g, struct product *p,
                        const char *x, const char *w, char *y, char *patches, int64_t part,
                        cudaStream_t stream) {
    int64_t e = (int64_t)kp_dtype_size(p->dtype), out = kp_conv_out(g);
    p->m = g->out_channels / g->groups;
    p->k = p->lda = g->in_channels / g->groups * kp_conv_taps(g);
    p->ldc = out;
    p->step_c = g->out_channels * out;
    for (int64_t at = 0; at < out; at += part) {
        p->n = p->ldb = out - at < part ? out - at : part;
        p->step_b = p->k * p->n;
        write_patches(g, p, x, at, patches, stream);
        multiply(blas, p, w, patches, y + at * e);
    }
}

/* The same of an operand that is its own patches. */
static void run_plain(cublasHandle_t blas, const struct kp_conv *g, struct product *p,
                      const char *x, const char *w, char *y) {
    p->m = g->out_channels / g->groups;
    p->k = p->lda = g->in_channels / g->groups;
    p->n = p->ldb = p->ldc = kp_conv_out(g);
    p->step_b = g->in_channels * p->n;
    p->step_c = g->out_channels * p->n;
    multiply(blas, p, w, image_of(g, p, x), y);
}

/* The same, transposed: filters [in channels, out channels and taps] times the operand, gathered;
 * `part` channels at a time. */
static void run_columns(cublasHandle_t blas, const struct kp_conv *g, struct product *p,
                        const char *x, const char *w, char *y, char *columns, int64_t part,
                        cudaStream_t stream) {
    int64_t e = (int64_t)kp_dtype_size(p->dtype), taps = kp_conv_taps(g);
    int64_t channels = g->out_channels / g->groups;
    p->across = true;
    p->lda = channels * taps;
    p->k = g->in_channels / g->groups;
    p->n = p->ldb = p->ldc = kp_conv_in(g);
    p->step_b = g->in_channels * p->n;
    for (int64_t at = 0; at < channels; at += part) {
        int64_t count = channels - at < part ? channels - at : part;
        p->m = count * taps;
        p->step_c = p->m * p->n;
        multiply(blas, p, w + at * taps * e, image_of(g, p, x), columns);
        kp_conv_gather(g, p->dtype, columns, p->images, count, y + at * kp_conv_out(g) * e, stream);
    }
}

/* See conv_parts.h.  A group's filters are neighbours, transposed or not.  Where cuBLAS reads the
 * operand itself, it does one world's at a time: images are evenly apart there alone. */
void kp_conv_products(const struct kp_conv *g, enum kp_dtype dtype, enum kp_math math, int worlds,
                      int64_t apart, const void *x_, const void *w_, void *y_, void *scratch,
                      cudaStream_t stream) {
    int64_t e = (int64_t)kp_dtype_size(dtype), total = worlds * g->batch, step;
    int64_t ci = g->in_channels / g->groups, co = g->out_channels / g->groups;
    bool plain = is_plain(g, dtype);
    struct chunk most = chunk_of(g, dtype, worlds);
    cublasHandle_t blas = cublas_for(scratch, stream);
    char *parts = (char *)scratch + CUBLAS_BYTES;
    for (int64_t n = 0; n < total; n += step) {
        step = total - n < most.images ? total - n : most.images;
        int64_t left = g->batch - n % g->batch;
        if ((plain || g->transposed) && left < step) step = left;
        for (int64_t group = 0; group < g->groups; group++) {
            struct product p = {.dtype = dtype, .math = math, .from = n, .images = step};
            p.apart = apart;
            const char *x = (const char *)x_ + group * ci * kp_conv_in(g) * e;
            const char *w = (const char *)w_ + group * ci * co * kp_conv_taps(g) * e;
            char *y = (char *)y_ + (n * g->out_channels + group * co) * kp_conv_out(g) * e;
            if (plain)
                run_plain(blas, g, &p, x, w, y);
            else
                (g->transposed ? run_columns : run_patches)(blas, g, &p, x, w, y, parts, most.part,
                                                            stream);
        }
    }
}
