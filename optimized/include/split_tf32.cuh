/* split_tf32.cuh: products of a warp at fp32 accuracy on the TF32 tensor cores (sm_80), for kernels
 * that load operands themselves (mma_tf32.cuh).
 *
 * Numbers are a big part of TF32 and what that leaves; three passes add up small * B, A * small and
 * big * big, as product.cuh does. Tensor cores cut off digits while they add: sums over more than
 * 32 of the depth are to be added in fp32. Numbers below 2^-115 lose digits, as their residuals are
 * below TF32's numbers; by METHOD.md those below 2^-102 may be off by 2^-126. Kernels with it reach
 * 37 to 67 % of their floor (l1_072, l1_075). */
#pragma once
#include "mma_tf32.cuh"

namespace kp {

template <int N> struct WarpSplit {
    float big[N], rest[N];
    __device__ __forceinline__ void set(int i, float v) {
        big[i] = __uint_as_float((__float_as_uint(v) + 0x1000) & 0xffffe000);
        rest[i] = v - big[i]; /* of an infinity NaN */
    }
};
using WarpLeft = WarpSplit<4>;  /* 16 x 8 */
using WarpRight = WarpSplit<2>; /* 8 x 8 */

/* sum[i] += a * b[i], for i of N. */
template <int N>
__device__ __forceinline__ void multiply(float (&sum)[N][4], const WarpLeft &a,
                                         const WarpRight (&b)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) mma_tf32(sum[i], a.rest, b[i].big);
#pragma unroll
    for (int i = 0; i < N; i++) mma_tf32(sum[i], a.big, b[i].rest);
#pragma unroll
    for (int i = 0; i < N; i++) mma_tf32(sum[i], a.big, b[i].big);
}

/* Four right operands whose depths t and t + 4 (t = lane % 4) are the rows at p and q: column n of
 * operand i, of lanes n = lane / 4, is the i-th of the four floats there. */
__device__ __forceinline__ void four_columns(const float *p, const float *q, WarpRight (&b)[4]) {
    const float4 low = *(const float4 *)p, high = *(const float4 *)q;
    b[0].set(0, low.x), b[1].set(0, low.y), b[2].set(0, low.z), b[3].set(0, low.w);
    b[0].set(1, high.x), b[1].set(1, high.y), b[2].set(1, high.z), b[3].set(1, high.w);
}

} // namespace kp
