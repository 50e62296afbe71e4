/* few_rows.cuh: a linear layer of a few short rows, in fp32: too little for a product by tiles.
 *
 * Idea: a warp has one row of the weight and all rows of x, so that a weight is read once. What
 * limits it: the bytes of the weight. Reaches: see l3_007 (no share of its own was measured). */
#pragma once
#include "reduce.cuh"

namespace kp {

constexpr int FEW_ROWS_WARPS = 4; /* of a block */

template <int IMAGES, int FROM, int TO, int PITCH, class F>
__global__ void __launch_bounds__(32 * FEW_ROWS_WARPS)
    few_rows_kernel(const float *__restrict__ x, const float *__restrict__ weight, F f,
                    float *__restrict__ out) {
    const int feature = blockIdx.x * FEW_ROWS_WARPS + threadIdx.x / 32;
    if (feature >= TO) return;
    float sum[IMAGES] = {};
#pragma unroll 8
    for (int k = threadIdx.x % 32; k < FROM; k += 32) {
        const float w = __ldg(weight + feature * FROM + k);
#pragma unroll
        for (int m = 0; m < IMAGES; m++) sum[m] += w * __ldg(x + m * PITCH + k);
    }
#pragma unroll
    for (int m = 0; m < IMAGES; m++) {
        sum[m] = warp_reduce(sum[m], Add());
        if (threadIdx.x % 32 == 0) out[m * TO + feature] = f(sum[m], m, feature);
    }
}

/* Enqueues out[image][feature] = f(x[image] * weight[feature], image, feature); rows of x are PITCH
 * apart. */
template <int IMAGES, int FROM, int TO, int PITCH = FROM, class F>
static void few_rows(const float *x, const float *weight, const F &f, float *out,
                     cudaStream_t stream) {
    few_rows_kernel<IMAGES, FROM, TO, PITCH>
        <<<(TO + FEW_ROWS_WARPS - 1) / FEW_ROWS_WARPS, 32 * FEW_ROWS_WARPS, 0, stream>>>(x, weight,
                                                                                         f, out);
}

} // namespace kp
