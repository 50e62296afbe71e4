/* extreme_op.cuh: the largest or the smallest value of a line, as an Op (row_ops.cuh) of
 * reducing_stores.cuh. */
#pragma once
#include "extremes.cuh"
#include <math.h>

namespace kp {

/* The largest value of a line, or the smallest; NaN if there is one. */
template <bool LARGEST> struct Extreme {
    struct State {
        float v;
    };
    static constexpr float NEUTRAL = LARGEST ? -INFINITY : INFINITY;

    static __device__ __forceinline__ float of(float a, float b) {
        return LARGEST ? larger(a, b) : smaller(a, b);
    }
    static __device__ __forceinline__ State none() { return {NEUTRAL}; }
    template <int N> static __device__ __forceinline__ void take(State &s, const float4 (&v)[N]) {
#pragma unroll
        for (int j = 0; j < N; j++) s.v = of(s.v, of(of(v[j].x, v[j].y), of(v[j].z, v[j].w)));
    }
    static __device__ __forceinline__ State join(State a, State b) {
        return {of(a.v, b.v)};
    }
    static __device__ __forceinline__ float value(State s) {
        return s.v;
    }
};

} // namespace kp
