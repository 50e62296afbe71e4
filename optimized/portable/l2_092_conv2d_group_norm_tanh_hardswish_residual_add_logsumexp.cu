// provenance: shipped
/* log(sum over channels of exp(conv + hardswish(tanh(group norm (16 groups) of conv)))), conv a
 * convolution over two axes with bias: x [128][8][128][128], weight [64][8][3][3] ->
 * [128][64][126][126] -> [128][1][126][126].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh) stores its
 * results in scratch memory, and gathers the moments of each channel (convolve_norm.cuh). A thread
 * then has all channels of a pixel in registers.
 * Floor: 0.06 GiB read, 0.48 GiB written and read, 245 us; products in TF32, 137 us.
 * Measured: 630 us on an H200, 39 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve_norm.cuh"

using Width = kp::Axis<X_DIM3, CONV_WEIGHT_DIM3>;
using Height = kp::Axis<X_DIM2, CONV_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_WEIGHT_DIM0, 1, Width, Height>;
using Tile = kp::TileFor<Conv, 64>;
using Groups = kp::Parts<Conv, 1, CONV_WEIGHT_DIM0 / 16>;
constexpr int FILTERS = Conv::FILTERS, AREA = Conv::OUT_AREA;
constexpr int THREADS = 128, BLOCKS = (AREA + THREADS - 1) / THREADS; /* of an image */

/* A thread a pixel. */
__global__ void __launch_bounds__(THREADS)
    log_sum_exp_kernel(const float *__restrict__ results, const kp::Spread *__restrict__ spread,
                       const float *__restrict__ weight, const float *__restrict__ bias,
                       float *__restrict__ out) {
    __shared__ float4 norm[FILTERS]; /* mean, scale, weight, bias */
    const int image = blockIdx.x / BLOCKS, pixel = blockIdx.x % BLOCKS * THREADS + threadIdx.x;
    for (int c = threadIdx.x; c < FILTERS; c += THREADS) {
        const kp::Spread s = spread[Groups::of(image * FILTERS + c)];
        norm[c] = make_float4(s.mean, s.scale, weight[c], bias[c]);
    }
    __syncthreads();
    if (pixel >= AREA) return;
    const float *from = results + image * FILTERS * AREA + pixel;
    float v[FILTERS], top = -INFINITY, sum = 0.0f;
#pragma unroll
    for (int c = 0; c < FILTERS; c++) v[c] = __ldg(from + c * AREA);
#pragma unroll
    for (int c = 0; c < FILTERS; c++) {
        const float4 n = norm[c];
        const float normal = (v[c] - n.x) * n.y * n.z + n.w;
        v[c] += kp::Hardswish()(kp::Tanh()(normal));
        top = fmaxf(top, v[c]);
    }
#pragma unroll
    for (int c = 0; c < FILTERS; c++) sum += expf(v[c] - top);
    out[image * AREA + pixel] = top + logf(sum);
}

using Scratch = kp::NormScratch<Conv, Tile, Groups::COUNT, true>;

extern "C" size_t scratch_bytes(void) {
    return Scratch::bytes();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const Scratch own = Scratch::in(scratch);
    const kp::AddBias add = {in->conv_bias};
    kp::convolve_moments<Conv, Tile>(in->x, in->conv_weight, own.results, add, own.moments, scratch,
                                     stream);
    kp::join_moments<Groups>(own.moments, 1e-5, own.spread, stream);
    log_sum_exp_kernel<<<X_DIM0 * BLOCKS, THREADS, 0, stream>>>(
        own.results, own.spread, in->group_norm_weight, in->group_norm_bias, out->out);
}
