// provenance: shipped
/* gelu(layer norm, over the last axis, of conv), conv a transposed convolution over three axes
 * with bias, stride 2 and padding 1: x [32][32][16][32][32], weight [32][64][4][4][4] ->
 * [32][64][32][64][64].
 *
 * Idea: a product at fp32 accuracy whose rows are places of x, and its columns the taps along x of
 * 32 filters: a tile has both phases of a line, a warp whole lines (both_phases.cuh), which it
 * normalises in registers before it stores them.
 * Floor: three products in TF32, 1005 us; 0.06 GiB read and 1.00 GiB written, 241 us.
 * Measured: 1566 us on an H200, 64 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "both_phases.cuh"

using Width = kp::TransposedAxis<X_DIM4, CONV_TRANSPOSE_WEIGHT_DIM4, 2, 1>;
using Height = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 2, 1>;
using Depth = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 2, 1>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height, Depth>;
static_assert(Width::IN == 32 && Width::OUT == 64, "eight lanes have a line");

struct NormAndGelu {
    const float *conv_transpose_bias, *weight, *bias;
};

/* A line, normalised by its biased variance. Deviations are squared in units of 2^-50, so that
 * squares of 2^110 do not overflow. */
__device__ __forceinline__ void finish(const NormAndGelu &f, float (&v)[8], int, int filter) {
    const float added = __ldg(f.conv_transpose_bias + filter);
    float sum = 0.0f, square = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] += added, sum += v[i] * (1.0f / 64);
    const float mean = kp::sum_rows(sum);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = (v[i] - mean) * 0x1p-50f, square += v[i] * v[i];
    const float scale = rsqrtf(kp::sum_rows(square) * (1.0f / 64) + 1e-5f * 0x1p-100f);
    const int first = threadIdx.x % 32 / 4 * 8;
#pragma unroll
    for (int i = 0; i < 8; i++)
        v[i] = kp::Gelu()(v[i] * scale * __ldg(f.weight + first + i) + __ldg(f.bias + first + i));
}

extern "C" size_t scratch_bytes(void) {
    return kp::both_phases::scratch_bytes<Conv>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const NormAndGelu f = {in->conv_transpose_bias, in->layer_norm_weight, in->layer_norm_bias};
    kp::both_phases::convolve<Conv>(in->x, in->conv_transpose_weight, out->out, f, scratch, stream);
}
