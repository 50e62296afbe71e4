/* short_rows.cuh: layer norm of rows that a warp holds in its registers.
 *
 * Idea: a warp reads a row, reduces it by shuffles, twice (the mean, then the squares of what is
 * left), maps and writes it. Rows of more than some thousand values are for row_ring.cuh.
 * What limits it: 8 bytes a value over the copy bandwidth; weight and bias stay in the cache.
 * Reaches: see l3_044 (no share of its own was measured). */
#pragma once
#include "states.cuh"

namespace kp {

constexpr int SHORT_ROWS = 8; /* of a block, a warp each */

/* y = (x - mean) / sqrt(variance + eps) * weight + bias, by the biased variance of each row; the
 * bias where a square overflows. */
template <long long ROWS, int WIDTH>
__global__ void __launch_bounds__(32 * SHORT_ROWS)
    layer_norm_kernel(const float *__restrict__ x, const float *__restrict__ weight,
                      const float *__restrict__ bias, float *__restrict__ y, float eps) {
    constexpr int FOURS = WIDTH / 128; /* float4 of a lane */
    constexpr float SHARE = 1.0f / WIDTH;
    const long long row = (long long)blockIdx.x * SHORT_ROWS + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (ROWS % SHORT_ROWS && row >= ROWS) return;
    float4 v[FOURS];
    float sum = 0.0f, square = 0.0f;
#pragma unroll
    for (int j = 0; j < FOURS; j++) v[j] = __ldg((const float4 *)(x + row * WIDTH) + j * 32 + lane);
#pragma unroll
    for (int j = 0; j < FOURS; j++) /* shares, whose sum does not overflow */
        sum += (v[j].x * SHARE + v[j].y * SHARE) + (v[j].z * SHARE + v[j].w * SHARE);
    const float mean = lanes_sum(sum);
#pragma unroll
    for (int j = 0; j < FOURS; j++) {
        v[j].x -= mean, v[j].y -= mean, v[j].z -= mean, v[j].w -= mean;
        square += (v[j].x * v[j].x + v[j].y * v[j].y) + (v[j].z * v[j].z + v[j].w * v[j].w);
    }
    const float scale = 1.0f / sqrtf(lanes_sum(square) * SHARE + eps);
#pragma unroll
    for (int j = 0; j < FOURS; j++) {
        const float4 w = __ldg((const float4 *)weight + j * 32 + lane);
        const float4 b = __ldg((const float4 *)bias + j * 32 + lane);
        ((float4 *)(y + row * WIDTH))[j * 32 + lane] =
            make_float4(v[j].x * scale * w.x + b.x, v[j].y * scale * w.y + b.y,
                        v[j].z * scale * w.z + b.z, v[j].w * scale * w.w + b.w);
    }
}

/* Enqueues y = layer norm of ROWS rows of WIDTH values; all are aligned to 16 bytes. */
template <long long ROWS, int WIDTH>
static void layer_norm_rows(const float *x, const float *weight, const float *bias, float *y,
                            float eps, cudaStream_t stream) {
    static_assert(WIDTH % 128 == 0 && WIDTH <= 4096, "whole float4 of lanes, in registers");
    layer_norm_kernel<ROWS, WIDTH>
        <<<(ROWS + SHORT_ROWS - 1) / SHORT_ROWS, 32 * SHORT_ROWS, 0, stream>>>(x, weight, bias, y,
                                                                               eps);
}

} // namespace kp
