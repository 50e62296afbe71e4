/* moments.cuh: means and variances, merged pairwise (Chan): never a difference of large sums. */
#ifndef KP_MOMENTS_CUH
#define KP_MOMENTS_CUH

#include "cuda_base/device.cuh"

namespace {

using namespace kp;

template <class A> struct Moments {
    A n, mean, m2; /* m2: sum of squared deviations from the mean */
};
struct Merge {
    template <class A> __device__ Moments<A> operator()(Moments<A> a, Moments<A> b) const {
        if (b.n == 0) return a;
        if (a.n == 0) return b;
        A n = a.n + b.n, share = b.n / n, delta = b.mean - a.mean;
        return {n, a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.n * share};
    }
};

/* The moments of N values by themselves, two passes over registers. */
template <int N, class A> __device__ inline Moments<A> moments_of(const A (&x)[N]) {
    A sum = 0, m2 = 0;
#pragma unroll
    for (int i = 0; i < N; i++) sum += x[i];
    A mean = sum / N;
#pragma unroll
    for (int i = 0; i < N; i++) m2 += (x[i] - mean) * (x[i] - mean);
    return {A(N), mean, m2};
}

} // namespace
#endif
