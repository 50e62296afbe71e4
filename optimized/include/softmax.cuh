/* softmax.cuh: softmax over the last axis, for rows too long for registers.
 *
 * A block owns a row. First pass: each thread keeps the largest value it has seen and the sum of
 * exp(value - largest), rescaled when the largest grows; the block joins them. Second pass: the
 * row again, last part first because it is still in L2, and the result.
 * No result is of it: the H200 and the H100 take drawn_rows.cuh, for short rows cluster_rows.cuh.
 */
#pragma once
#include <float.h>
#include "reduce.cuh"

constexpr int SOFTMAX_BATCH = 4; /* float4 that a thread has in flight */

/* The running maximum and sum of exponentials of the values one thread has seen. The maximum begins
 * at the least finite number: -inf counts as 0, and -inf - -inf, which is no number, is not met. A
 * row of -inf has the sum 0, so it becomes NaN, as it should. */
struct SoftmaxState {
    float top = -FLT_MAX, sum = 0;

    __device__ __forceinline__ void take(const float4 (&v)[SOFTMAX_BATCH]) {
        float t = top;
#pragma unroll
        for (int j = 0; j < SOFTMAX_BATCH; j++)
            t = fmaxf(t, fmaxf(fmaxf(v[j].x, v[j].y), fmaxf(v[j].z, v[j].w)));
        if (t > top) {
            sum *= expf(top - t);
            top = t;
        }
        float s = 0;
#pragma unroll
        for (int j = 0; j < SOFTMAX_BATCH; j++)
            s += (expf(v[j].x - t) + expf(v[j].y - t)) + (expf(v[j].z - t) + expf(v[j].w - t));
        sum += s;
    }
};

/* One row of COLUMNS values a block. */
template <int COLUMNS, int THREADS>
__global__ void __launch_bounds__(THREADS)
    softmax_kernel(const float *__restrict__ x, float *__restrict__ y) {
    constexpr int STEP = SOFTMAX_BATCH * THREADS, FOURS = COLUMNS / 4;
    static_assert(FOURS % STEP == 0, "whole batches");
    const float4 *in = (const float4 *)(x + (long long)blockIdx.x * COLUMNS) + threadIdx.x;
    float4 *out = (float4 *)(y + (long long)blockIdx.x * COLUMNS) + threadIdx.x;
    float4 v[SOFTMAX_BATCH];

    SoftmaxState state;
    for (int i = 0; i < FOURS; i += STEP) {
#pragma unroll
        for (int j = 0; j < SOFTMAX_BATCH; j++) v[j] = in[i + j * THREADS];
        state.take(v);
    }
    const float top = block_reduce<THREADS>(state.top, Max());
    const float sum = block_reduce<THREADS>(state.sum * expf(state.top - top), Add());
    const float factor = 1.0f / sum;

    for (int i = FOURS - STEP; i >= 0; i -= STEP) {
#pragma unroll
        for (int j = 0; j < SOFTMAX_BATCH; j++) v[j] = __ldcs(in + i + j * THREADS);
#pragma unroll
        for (int j = 0; j < SOFTMAX_BATCH; j++)
            __stcs(out + i + j * THREADS,
                   make_float4(expf(v[j].x - top) * factor, expf(v[j].y - top) * factor,
                               expf(v[j].z - top) * factor, expf(v[j].w - top) * factor));
    }
}
