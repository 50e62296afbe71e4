/* conv_parts.h: what the parts of the convolution share.  conv.c chooses between cuDNN
 * (conv_cudnn.c), cuBLAS (conv_cublas.c) and the direct depthwise kernel, which is in conv_gemm.cu
 * with the other kernels. */
#ifndef KP_CONV_PARTS_H
#define KP_CONV_PARTS_H

#include "cuda_base/impl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A convolution of 1 to 3 spatial axes, always described with 3: absent ones
 * come first and have size 1.  A transposed one is the way back of a convolution from `out` to
 * `in`. */
struct kp_conv {
    int axes; /* spatial axes of the op */
    bool transposed;
    int64_t batch, in_channels, out_channels, groups;
    int64_t in[3], kernel[3], out[3], stride[3], pad[3], dilation[3];
};

/* Elements of one channel of the input, of the output, and of one filter's plane. */
static inline int64_t kp_conv_in(const struct kp_conv *g) {
    return g->in[0] * g->in[1] * g->in[2];
}
static inline int64_t kp_conv_out(const struct kp_conv *g) {
    return g->out[0] * g->out[1] * g->out[2];
}
static inline int64_t kp_conv_taps(const struct kp_conv *g) {
    return g->kernel[0] * g->kernel[1] * g->kernel[2];
}

/* cuDNN with its own choice of engine.  Returns NULL if there is no cuDNN or it
 * has no engine for this convolution; *workspace: bytes for each run. */
struct kp_conv_plan;
struct kp_conv_plan *kp_conv_plan(const struct kp_conv *g, enum kp_dtype dtype, enum kp_math math,
                                  size_t *workspace);
void kp_conv_plan_run(struct kp_conv_plan *p, const void *x, const void *w, void *y,
                      void *workspace, cudaStream_t stream);
void kp_conv_plan_destroy(struct kp_conv_plan *p);

/* cuBLAS.  scratch: kp_conv_products_bytes.  Inputs of so many worlds, which share the filters, lie
 * `apart` elements from each other; their results are neighbours.  Several worlds are for float64.
 */
size_t kp_conv_products_bytes(const struct kp_conv *g, enum kp_dtype dtype, int worlds);
void kp_conv_products(const struct kp_conv *g, enum kp_dtype dtype, enum kp_math math, int worlds,
                      int64_t apart, const void *x, const void *w, void *y, void *scratch,
                      cudaStream_t stream);

/* Write the patches under output positions [first, first + count) of `images`
 * images as matrices [in_channels/groups * taps, count], one after the other.
 * `x` points to the first image's first channel of the group. */
void kp_conv_patches(const struct kp_conv *g, enum kp_dtype dtype, const void *x, int64_t images,
                     int64_t first, int64_t count, void *patches, cudaStream_t stream);

/* The same in float64, from image `from` on: number n % batch of world n / batch.  `x` points to
 * the first image of the first world. */
void kp_conv_patches_f64(const struct kp_conv *g, const double *x, int64_t apart, int64_t from,
                         int64_t images, int64_t first, int64_t count, double *patches,
                         cudaStream_t stream);

/* Write what the patches of a transposed convolution add up to: columns are matrices
 * [channels * taps, places of the operand] of `images` images, one after the other, and y is the
 * first image's first of these channels. */
void kp_conv_gather(const struct kp_conv *g, enum kp_dtype dtype, const void *columns,
                    int64_t images, int64_t channels, void *y, cudaStream_t stream);

/* The whole convolution for groups == in_channels; bias may be NULL. */
void kp_conv_depthwise(const struct kp_conv *g, enum kp_dtype dtype, const void *x, const void *w,
                       const void *bias, void *y, cudaStream_t stream);

/* y[n,c,...] += bias[c]. */
void kp_conv_bias(const struct kp_conv *g, enum kp_dtype dtype, const void *bias, void *y,
                  cudaStream_t stream);

/* Make NaN what channels have whose filter holds an infinity: where a filter reaches beyond the
 * input, an implementation may multiply it by zero. */
void kp_conv_unknown(const struct kp_conv *g, const double *w, double *y, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
