/* pool.cuh: maxima and means of windows over two axes.
 *
 * A block owns a plane, a thread every POOL_THREADS-th value of its result; neighbouring windows
 * overlap in L1. */
#pragma once
#include "reduce.cuh"

constexpr int POOL_THREADS = 256;

/* The constants of a pooling of K x K windows. Stride and padding are the same on both axes; every
 * window has a value that is no padding. */
template <int H_, int W_, int K_, int STRIDE_, int PAD_> struct PoolShape {
    static constexpr int H = H_, W = W_, K = K_, STRIDE = STRIDE_, PAD = PAD_, TAPS = K * K;
    static constexpr int OH = (H + 2 * PAD - K) / STRIDE + 1, OW = (W + 2 * PAD - K) / STRIDE + 1;
    static_assert(2 * PAD <= K && OH > 0 && OW > 0, "no window of padding alone");
};

/* What is made of a window: its values one by one, where padding counts as IDENTITY, then `finish`.
 * Passes over NaN, as fmaxf does. */
struct MaxPool : Max {
    template <int TAPS> static __device__ __forceinline__ float finish(float v) { return v; }
};

/* A NaN in the window wins, as in PyTorch. */
struct MaxOrNanPool {
    static constexpr float IDENTITY = -INFINITY;
    __device__ __forceinline__ float operator()(float a, float b) const {
        float c;
        asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
        return c;
    }
    template <int TAPS> static __device__ __forceinline__ float finish(float v) { return v; }
};

/* Padding counts as zeros. */
struct MeanPool : Add {
    template <int TAPS> static __device__ __forceinline__ float finish(float v) { return v / TAPS; }
};

/* The t-th value of the window at p, whose first row and column are given. */
template <class S, class Pool>
__device__ __forceinline__ float pool_value(const float *p, int top, int left, int t) {
    const int r = t / S::K, c = t % S::K;
    if (S::PAD > 0 &&
        ((unsigned)(top + r) >= (unsigned)S::H || (unsigned)(left + c) >= (unsigned)S::W))
        return Pool::IDENTITY;
    return p[r * S::W + c];
}

/* One plane a block. */
template <class S, class Pool>
__global__ void __launch_bounds__(POOL_THREADS)
    pool_kernel(const float *__restrict__ x, float *__restrict__ y) {
    constexpr int OUT = S::OH * S::OW;
    const Pool pool;
    const float *plane = x + (long long)blockIdx.x * (S::H * S::W);
    for (int i = threadIdx.x; i < OUT; i += POOL_THREADS) {
        const int top = i / S::OW * S::STRIDE - S::PAD;
        const float *p = plane + top * S::W;
        const int left = i % S::OW * S::STRIDE - S::PAD;
        p += left;
        float v = pool_value<S, Pool>(p, top, left, 0);
#pragma unroll
        for (int t = 1; t < S::TAPS; t++) v = pool(v, pool_value<S, Pool>(p, top, left, t));
        y[(long long)blockIdx.x * OUT + i] = Pool::template finish<S::TAPS>(v);
    }
}

/* Enqueues y = pool of each of `planes` planes of x. */
template <class S, class Pool>
static void pool2d(const float *x, float *y, int planes, cudaStream_t stream) {
    pool_kernel<S, Pool><<<planes, POOL_THREADS, 0, stream>>>(x, y);
}
