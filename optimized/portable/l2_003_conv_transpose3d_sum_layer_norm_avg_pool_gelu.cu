// provenance: shipped
/* gelu(the mean of windows of 2 x 2 x 2 of layer norm, over the last axis, of conv + a number),
 * conv a transposed convolution over three axes with bias, stride 2 and padding 1: x
 * [32][32][16][32][32], weight [32][64][3][3][3] -> [32][64][32][64][64] -> [32][64][16][32][32].
 *
 * Idea: a product at fp32 accuracy, whose tiles have both phases of a line (both_phases.cuh),
 * stores its results in scratch memory. A warp normalises four rows in registers, and takes the
 * means of their windows (layer_norm_pairs.cuh). Floor: three products in TF32, 424 us; 0.06 GiB
 * read, 1.00 GiB written and read, 487 us. Measured: 983 us on an H200, 50 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "both_phases.cuh"
#include "layer_norm_pairs.cuh"

using Width = kp::TransposedAxis<X_DIM4, CONV_TRANSPOSE_WEIGHT_DIM4, 2, 1, 1, 1>;
using Height = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 2, 1, 1, 1>;
using Depth = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 2, 1, 1, 1>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height, Depth>;

struct Biased {
    const float *conv_transpose_bias, *sum_weight;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        return v + __ldg(conv_transpose_bias + filter) + __ldg(sum_weight);
    }
};

constexpr int THREADS = 256, WIDTH = Width::OUT, PLANES = X_DIM0 * Conv::FILTERS;
static_assert(WIDTH == 64, "two values a lane");

/* A warp a row of the result: four rows are normalised, a lane has the neighbours of a window. */
__global__ void __launch_bounds__(THREADS)
    norm_pool_kernel(const float *__restrict__ results, const float *__restrict__ weight,
                     const float *__restrict__ bias, float *__restrict__ out) {
    const int row = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    const int y = row % OUT_DIM3, z = row / OUT_DIM3 % OUT_DIM2;
    const int plane = row / (OUT_DIM3 * OUT_DIM2);
    if (plane >= PLANES) return;
    const kp::PairNorm norm(weight, bias);
    const float *from = results + (long long)plane * Conv::OUT_AREA;
    float2 v[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        v[i] =
            __ldg((const float2 *)(from + ((2 * z + i / 2) * Height::OUT + 2 * y + i % 2) * WIDTH) +
                  lane);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        v[i] = norm(v[i], 1e-5f);
        sum += v[i].x + v[i].y;
    }
    out[row * 32LL + lane] = kp::Gelu()(sum * 0.125f);
}

/* The split weight; the convolution's results. */
constexpr size_t SPLIT = kp::both_phases::scratch_bytes<Conv>();
constexpr size_t RESULTS = (size_t)X_DIM0 * Conv::FILTERS * Conv::OUT_AREA * sizeof(float);

extern "C" size_t scratch_bytes(void) {
    return SPLIT + RESULTS;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *results = (float *)((char *)scratch + SPLIT);
    const Biased biased = {in->conv_transpose_bias, in->sum_weight};
    kp::both_phases::convolve<Conv>(in->x, in->conv_transpose_weight, results, biased, scratch,
                                    stream);
    constexpr int BLOCKS = (PLANES * OUT_DIM2 * OUT_DIM3 + THREADS / 32 - 1) / (THREADS / 32);
    norm_pool_kernel<<<BLOCKS, THREADS, 0, stream>>>(results, in->norm_weight, in->norm_bias,
                                                     out->out);
}
