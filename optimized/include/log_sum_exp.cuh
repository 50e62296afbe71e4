/* log_sum_exp.cuh: log(sum(exp(row))) for rows that a block holds in registers.
 *
 * A warp takes exponentials relative to its own maximum, so that the block meets only once. */
#pragma once
#include "reduce.cuh"

/* log(sum(exp)) = top + log(sum), where top is the largest value. */
struct alignas(8) LogSumExp {
    float top, sum;
};

/* Of a block's values, FOURS float4 a thread; `all` is thread 0's, for which it returns true.
 * -inf adds nothing, but if all values are -inf, or one is inf, the sum is NaN. Once in a kernel: a
 * second call would have to wait until the first one's shared memory was read. */
template <int THREADS, int FOURS>
__device__ __forceinline__ bool block_log_sum_exp(const float4 (&v)[FOURS], LogSumExp *all) {
    static_assert(THREADS % 32 == 0 && THREADS <= 1024, "a block is 1 to 32 whole warps");
    __shared__ LogSumExp part[THREADS / 32];
    float top = -INFINITY, sum = 0;
#pragma unroll
    for (int j = 0; j < FOURS; j++)
        top = fmaxf(top, fmaxf(fmaxf(v[j].x, v[j].y), fmaxf(v[j].z, v[j].w)));
    top = warp_reduce(top, Max());
    const float origin = top == -INFINITY ? 0.0f : top; /* -inf - -inf is no number */
#pragma unroll
    for (int j = 0; j < FOURS; j++)
        sum += (expf(v[j].x - origin) + expf(v[j].y - origin)) +
               (expf(v[j].z - origin) + expf(v[j].w - origin));
    sum = warp_reduce(sum, Add());
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = {top, sum};
    __syncthreads();
    if (threadIdx.x) return false;
    for (int w = 1; w < THREADS / 32; w++) top = fmaxf(top, part[w].top);
    sum = 0;
    for (int w = 0; w < THREADS / 32; w++) sum += part[w].sum * expf(part[w].top - top);
    *all = {top, sum};
    return true;
}
