// provenance: shipped
/* 10 times the log of the sum of exponentials, over the filters, of (the mean over each filter of
 * conv, plus a number for each filter), conv a transposed convolution over two axes with bias: x
 * [16][64][512][512], weight [64][128][3][3] -> [16][128][514][514] -> [16][1].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh), and whose
 * stores gather the means of each channel: no result goes to memory (convolve_means.cuh). A warp
 * joins those of an image.
 * Floor: three products in TF32, 4570 us; 1.00 GiB read, 236 us.
 * Measured on an H200: 4952 us, 92 % of the floor (predicted: 4850), in seven runs of eight; in one
 * a scaled sample was at 1.28 of class fp32's limit. With the rests of x cut off it took 4755 us,
 * and with the weight's in bf16 4317 us, 88 % of 3800. */
#include "task.h"
#include "convolve_means.cuh"
#include "row_ops.cuh"

using Width = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3>;
using Height = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height>;

/* A mean shows what rests in bf16 and longer runs lose; and one huge pixel is in all outputs of its
 * image, as one huge weight is, so that its rest is the nearest of TF32, too, and not cut off. */
struct NearestRest : kp::Tf32Rest {};
using Tile = kp::Tile<128, NearestRest>;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
template <>
__device__ __forceinline__ void kp::split_part<Tile>(float (&v)[4][4], kp::Splits &to) {
#pragma unroll
    for (int s = 0; s < 4; s++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const float big = kp::nearest_tf32(v[s][e]), rest = v[s][e] - big;
            to.big[s][e] = __float_as_uint(big);
            to.small[s][e] = __float_as_uint(rest == rest ? kp::nearest_tf32(rest) : rest);
        }
}
#endif

struct AddToMean {
    const float *bias;
    __device__ __forceinline__ float operator()(float mean, int channel) const {
        return mean + __ldg(bias + channel % Conv::FILTERS);
    }
};

/* out[image] = 10 logsumexp of the image's filters. A warp an image. */
__global__ void __launch_bounds__(32)
    logsumexp_kernel(const float *__restrict__ x, float *__restrict__ out) {
    kp::LogSumExp::State s = kp::LogSumExp::none();
    for (int c = threadIdx.x; c < Conv::FILTERS; c += 32)
        s = kp::LogSumExp::join(s, {x[blockIdx.x * Conv::FILTERS + c], 1.0f});
    s = kp::warp_join<kp::LogSumExp>(s);
    if (threadIdx.x == 0) out[blockIdx.x] = kp::LogSumExp::value(s) * 10.0f;
}

extern "C" size_t scratch_bytes(void) {
    return kp::MeansScratch<Conv, Tile>::bytes() + (size_t)X_DIM0 * Conv::FILTERS * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *means = (float *)((char *)scratch + kp::MeansScratch<Conv, Tile>::bytes());
    kp::convolve_means<Conv, Tile>(in->x, in->conv_transpose_weight, means,
                                   kp::AddBias{in->conv_transpose_bias}, AddToMean{in->bias},
                                   scratch, stream);
    logsumexp_kernel<<<X_DIM0, 32, 0, stream>>>(means, out->out);
}
