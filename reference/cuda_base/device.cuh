/* device.cuh: what the kernels of reference/cuda_ops share.
 *
 * Every kernel is a template over the storage type T (double, float, half,
 * bfloat16) and computes in Acc<T>: double for double, float for the rest.
 * Dense data is read and written in packs of 16 bytes where shapes allow. */
#ifndef KP_DEVICE_CUH
#define KP_DEVICE_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "cuda_base/check.h"
#include "cuda_base/impl.h"

/* Run the statement list with T naming the storage type of `dtype`. */
#define KP_BY_TYPE(dtype_, ...)                                                          \
    switch (dtype_) {                                                                    \
    case KP_F64: {                                                                       \
        using T = double;                                                                \
        __VA_ARGS__;                                                                     \
        break;                                                                           \
    }                                                                                    \
    case KP_F32: {                                                                       \
        using T = float;                                                                 \
        __VA_ARGS__;                                                                     \
        break;                                                                           \
    }                                                                                    \
    case KP_F16: {                                                                       \
        using T = __half;                                                                \
        __VA_ARGS__;                                                                     \
        break;                                                                           \
    }                                                                                    \
    case KP_BF16: {                                                                      \
        using T = __nv_bfloat16;                                                         \
        __VA_ARGS__;                                                                     \
        break;                                                                           \
    }                                                                                    \
    default: die(KP_BUG, "%s: no kernel for dtype %s", __func__, kp_dtype_name(dtype_)); \
    }

namespace kp {

template <class T> struct Accumulate { using type = float; };
template <> struct Accumulate<double> { using type = double; };
template <class T> using Acc = typename Accumulate<T>::type;

/* A stored value in the type it is computed in, and back (rounding to nearest). */
__device__ inline double widen(double x) {
    return x;
}
__device__ inline float widen(float x) {
    return x;
}
__device__ inline float widen(__half x) {
    return __half2float(x);
}
__device__ inline float widen(__nv_bfloat16 x) {
    return __bfloat162float(x);
}

template <class T> __device__ inline T narrow(Acc<T> x) {
    return x;
}
template <> __device__ inline __half narrow<__half>(float x) {
    return __float2half_rn(x);
}
template <> __device__ inline __nv_bfloat16 narrow<__nv_bfloat16>(float x) {
    return __float2bfloat16_rn(x);
}

/* Loads that a thread has in flight at once, where it walks a row. */
constexpr int kInFlight = 4;

/* A dense tensor as [outer, n, inner]: n along one axis. */
struct Axis {
    int64_t outer, n, inner;
};

/* Host: a call's operand, split at the axis that `dim` names; 1, 1, 1 for a scalar. */
inline Axis axis_of(const struct kp_call *c) {
    const struct kp_array *x = &c->in[0];
    int dim = op_axis(c->op, "dim", x->n);
    if (dim < 0) dim = x->n - 1;
    Axis s = {1, x->n ? x->dim[dim] : 1, 1};
    for (int i = 0; i < dim; i++) s.outer *= x->dim[i];
    for (int i = dim + 1; i < x->n; i++) s.inner *= x->dim[i];
    return s;
}

/* V neighbours that move as one load or store. */
template <class T, int V> struct alignas(sizeof(T) * V) Pack { T v[V]; };
template <class T> constexpr int kPack = 16 / (int)sizeof(T);

/* Read and write one pack. */
template <int V, class T> __device__ inline Pack<T, V> load(const T *p) {
    return *reinterpret_cast<const Pack<T, V> *>(p);
}
template <int V, class T> __device__ inline void store(T *p, Pack<T, V> x) {
    *reinterpret_cast<Pack<T, V> *>(p) = x;
}

/* Host: true if runs of `count` elements that start at `p` can move in packs of T. */
template <class T> inline bool packs(const void *p, int64_t count) {
    return count % kPack<T> == 0 && (uintptr_t)p % 16 == 0;
}

/* The value that lane (own lane XOR mask) of the warp holds; S in 4-byte words. */
template <class S> __device__ inline S shuffle_xor(S s, int mask) {
    static_assert(sizeof(S) % 4 == 0, "shuffled in words");
    int word[sizeof(S) / 4];
    memcpy(word, &s, sizeof s);
#pragma unroll
    for (int i = 0; i < (int)(sizeof(S) / 4); i++)
        word[i] = __shfl_xor_sync(0xffffffffu, word[i], mask);
    memcpy(&s, word, sizeof s);
    return s;
}

/* Combine over groups of `width` neighbouring lanes (a power of two).  Every lane
 * must call it.  Each lane gets a result; their last bits agree only if `combine`
 * is commutative to the bit. */
template <class S, class F> __device__ inline S warp_reduce(S s, F combine, int width = 32) {
    for (int mask = width / 2; mask > 0; mask /= 2) s = combine(s, shuffle_xor(s, mask));
    return s;
}

/* Combine over a one-dimensional block (a multiple of 32 threads); every thread
 * gets the same result.  May be called repeatedly. */
template <class S, class F> __device__ inline S block_reduce(S s, S identity, F combine) {
    __shared__ S part[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;

    s = warp_reduce(s, combine);
    __syncthreads(); /* an earlier call's result may still be being read */
    if (lane == 0) part[warp] = s;
    __syncthreads();
    if (warp == 0) {
        s = warp_reduce(lane < warps ? part[lane] : identity, combine);
        if (lane == 0) part[0] = s;
    }
    __syncthreads();
    return part[0];
}

struct Add {
    template <class S> __device__ S operator()(S a, S b) const { return a + b; }
};

/* Softmax's running state: the largest value so far, and the sum of exp(x - max). */
template <class A> struct Online { A max, sum; };

/* What exp() is taken relative to: the maximum, or 0 while nothing but -inf was
 * seen, which keeps -inf - -inf out of the sums. */
template <class A> __device__ inline A online_origin(A max) {
    return max == -INFINITY ? A(0) : max;
}

/* The state before any value. */
template <class A> __device__ inline Online<A> online_empty() {
    return {A(-INFINITY), A(0)};
}

struct Join { /* two parts of one row */
    template <class A> __device__ Online<A> operator()(Online<A> a, Online<A> b) const {
        A max = fmax(a.max, b.max), origin = online_origin(max);
        return {max, a.sum * exp(a.max - origin) + b.sum * exp(b.max - origin)};
    }
};

/* Add n values to a running state: one rescaling for all of them. */
template <int N, class A> __device__ inline Online<A> online_add(Online<A> s, const A (&x)[N]) {
    A max = s.max;
#pragma unroll
    for (int i = 0; i < N; i++) max = fmax(max, x[i]);
    A origin = online_origin(max), sum = 0;
#pragma unroll
    for (int i = 0; i < N; i++) sum += exp(x[i] - origin);
    return {max, s.sum * exp(s.max - origin) + sum};
}

/* One thread's share of n packs of a row, every `step`-th from `first`: their
 * maximum and sum of exponentials. */
template <class T, int V>
__device__ inline Online<Acc<T>> online_scan(const T *row, int64_t n, int64_t first, int64_t step) {
    using A = Acc<T>;
    Online<A> s = online_empty<A>();
    int64_t i = first;
    for (; i + (kInFlight - 1) * step < n; i += kInFlight * step) {
        A x[kInFlight * V];
#pragma unroll
        for (int u = 0; u < kInFlight; u++) {
            Pack<T, V> p = load<V>(row + (i + u * step) * V);
#pragma unroll
            for (int e = 0; e < V; e++) x[u * V + e] = widen(p.v[e]);
        }
        s = online_add(s, x);
    }
    for (; i < n; i += step) {
        A x[V];
        Pack<T, V> p = load<V>(row + i * V);
#pragma unroll
        for (int e = 0; e < V; e++) x[e] = widen(p.v[e]);
        s = online_add(s, x);
    }
    return s;
}

} // namespace kp
#endif
