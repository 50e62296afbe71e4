/* layer_norm_pairs.cuh: layer norm of rows of 64 values, which a warp holds, two neighbours a lane,
 * so that a kernel can go on with them in registers.
 * Reaches: see l2_003 (no share of its own was measured). */
#pragma once
#include "states.cuh"

namespace kp {

/* What a lane needs of weight and bias: those of its two values. */
struct PairNorm {
    float2 weight, bias;

    __device__ __forceinline__ PairNorm(const float *w, const float *b)
        : weight(__ldg((const float2 *)w + threadIdx.x % 32)),
          bias(__ldg((const float2 *)b + threadIdx.x % 32)) {}

    /* The lane's two values, normalised by the biased variance of the warp's row. Deviations are
     * squared in units of 2^-50, so that squares of 2^110 do not overflow. */
    __device__ __forceinline__ float2 operator()(float2 v, float eps) const {
        const float mean = lanes_sum(v.x * (1.0f / 64) + v.y * (1.0f / 64));
        v.x = (v.x - mean) * 0x1p-50f, v.y = (v.y - mean) * 0x1p-50f;
        const float square = lanes_sum(v.x * v.x + v.y * v.y) * (1.0f / 64);
        const float scale = rsqrtf(square + eps * 0x1p-100f);
        return make_float2(v.x * scale * weight.x + bias.x, v.y * scale * weight.y + bias.y);
    }
};

} // namespace kp
