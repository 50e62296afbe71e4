/* row_ops.cuh: what rows become, or are mapped by once they are known: sums, softmax, norms.
 *
 * An Op has, beside what states.cuh wants,
 *   static constexpr float NEUTRAL       a value that changes no state; NaN if there is none
 *   static void take(State &, const float4 (&)[N])     takes in values
 *   struct Row; Row row(State, double count) const     what the state of a row of `count` means
 *   struct Mapper; Mapper mapper(Row, long long place) const   maps a value of that row at `place`
 *                                        of the tensor, and its neighbours in a float4
 * row_passes.cuh and row_ring.cuh apply them. Those that reducing_stores.cuh applies have, in place
 * of rows and mappers,
 *   static float value(State)            what is wanted of a row
 * Reaches: see cluster_rows.cuh, row_ring.cuh and row_passes.cuh. */
#pragma once
#include <float.h>
#include "norm.cuh"
#include "states.cuh"

namespace kp {

/* A base of those that keep something else in place of a row's values. */
struct Keeps {};

/* log(sum(exp(x))), which is max + log(sum(exp(x - max))). The maximum begins at the least finite
 * number: -inf counts as 0, and -inf - -inf is not met. The sum of a row with inf or NaN is NaN. */
struct LogSumExp {
    struct State {
        float top, sum; /* of exp(x - top) */
    };
    static constexpr float NEUTRAL = -INFINITY;

    static __device__ __forceinline__ State none() { return {-FLT_MAX, 0.0f}; }
    template <int N> static __device__ __forceinline__ void take(State &s, const float4 (&v)[N]) {
        float top = s.top, sum[4] = {};
#pragma unroll
        for (int j = 0; j < N; j++)
            top = fmaxf(top, fmaxf(fmaxf(v[j].x, v[j].y), fmaxf(v[j].z, v[j].w)));
#pragma unroll
        for (int j = 0; j < N; j++) {
            sum[0] += expf(v[j].x - top);
            sum[1] += expf(v[j].y - top);
            sum[2] += expf(v[j].z - top);
            sum[3] += expf(v[j].w - top);
        }
        s = {top, s.sum * expf(s.top - top) + ((sum[0] + sum[1]) + (sum[2] + sum[3]))};
    }
    static __device__ __forceinline__ State join(State a, State b) {
        const float top = fmaxf(a.top, b.top);
        return {top, a.sum * expf(a.top - top) + b.sum * expf(b.top - top)};
    }
    /* Of a row with inf: inf, as the definition has it; also if there is a NaN beside it. */
    static __device__ __forceinline__ float value(State s) {
        return s.top == INFINITY ? s.top : s.top + logf(s.sum);
    }
};

/* x - max - log(sum(exp(x - max))). A row of -inf, or with inf or NaN in it, becomes NaN. */
struct LogSoftmax : LogSumExp {
    struct Row {
        float top, log_sum;
    };
    struct Mapper {
        Row r;
        __device__ __forceinline__ float operator()(float x) const {
            return (x - r.top) - r.log_sum;
        }
    };
    __device__ __forceinline__ Row row(State s, double) const { return {s.top, logf(s.sum)}; }
    __device__ __forceinline__ Mapper mapper(Row r, long long) const { return {r}; }
};

/* exp(x - max) / sum(exp(x - max)). A row of -inf, or with inf or NaN in it, becomes NaN. */
struct Softmax : LogSumExp {
    struct Row {
        float top, share; /* 1 / sum */
    };
    struct Mapper {
        Row r;
        __device__ __forceinline__ float operator()(float x) const {
            return expf(x - r.top) * r.share;
        }
    };
    __device__ __forceinline__ Row row(State s, double) const { return {s.top, 1.0f / s.sum}; }
    __device__ __forceinline__ Mapper mapper(Row r, long long) const { return {r}; }
};

/* The same where a warp holds its values from the first look at them until they are stored
 * (cluster_rows.cuh): exp(x - the warp's maximum) takes the place of x, and what is left is a
 * factor for the warp. In place of take() it has keep(), which gives the state of a warp's values
 * and makes others of them, and its row() is told the warp's own state, too. */
struct KeptSoftmax : LogSumExp, Keeps {
    struct Row {
        float factor;
    };
    struct Mapper {
        Row r;
        __device__ __forceinline__ float operator()(float kept) const { return kept * r.factor; }
    };

    template <int N> static __device__ __forceinline__ State keep(float4 (&v)[N]) {
        float top = none().top, sum = 0;
#pragma unroll
        for (int j = 0; j < N; j++)
            top = fmaxf(top, fmaxf(fmaxf(v[j].x, v[j].y), fmaxf(v[j].z, v[j].w)));
        top = lanes_max(top);
#pragma unroll
        for (int j = 0; j < N; j++) {
            v[j] = make_float4(expf(v[j].x - top), expf(v[j].y - top), expf(v[j].z - top),
                               expf(v[j].w - top));
            sum += (v[j].x + v[j].y) + (v[j].z + v[j].w);
        }
        return {top, lanes_sum(sum)};
    }
    static __device__ __forceinline__ Row row(State s, State mine) {
        return {expf(mine.top - s.top) / s.sum};
    }
    __device__ __forceinline__ Mapper mapper(Row r, long long) const {
        return {r};
    }
};

/* sum(x). */
struct Sum {
    struct State {
        float sum;
    };
    static constexpr float NEUTRAL = 0.0f;

    static __device__ __forceinline__ State none() { return {0.0f}; }
    template <int N> static __device__ __forceinline__ void take(State &s, const float4 (&v)[N]) {
#pragma unroll
        for (int j = 0; j < N; j++) s.sum += (v[j].x + v[j].y) + (v[j].z + v[j].w);
    }
    static __device__ __forceinline__ State join(State a, State b) {
        return {a.sum + b.sum};
    }
    static __device__ __forceinline__ float value(State s) {
        return s.sum;
    }
};

/* (x - mean) / sqrt(variance + eps) * weight + bias by the biased variance: instance, group and
 * batch norm. The tensor is [...][CHANNELS][PLANE], with a weight and a bias a channel; without
 * them the pointers are null. Means and variances by norm.cuh, eight values at a time. */
template <int CHANNELS, int PLANE> struct Standardize {
    static_assert(PLANE % 4 == 0, "a float4 lies in one channel");
    double eps;
    const float *weight, *bias;

    using State = Moments;
    using Row = Standard;
    static constexpr float NEUTRAL = NAN;
    struct Mapper {
        float mean, factor, bias;
        __device__ __forceinline__ float operator()(float x) const {
            return (x - mean) * factor + bias;
        }
    };

    static __device__ __forceinline__ State none() { return {0, 0}; }
    template <int N> static __device__ __forceinline__ void take(State &s, const float4 (&v)[N]) {
        static_assert(N % 2 == 0, "eight values at a time");
#pragma unroll
        for (int j = 0; j < N; j += 2) s.take(v[j], v[j + 1]);
    }
    static __device__ __forceinline__ State join(State a, State b) {
        return a + b;
    }
    __device__ __forceinline__ Row row(State s, double count) const { /* NaN stays NaN */
        const double mean = s.sum / count, variance = s.square / count - mean * mean;
        return {(float)mean, (float)(1.0 / sqrt((variance < 0.0 ? 0.0 : variance) + eps))};
    }
    __device__ __forceinline__ Mapper mapper(Row r, long long place) const {
        if (!weight) return {r.mean, r.scale, 0.0f};
        const int channel = (int)(place / PLANE % CHANNELS);
        return {r.mean, r.scale * __ldg(weight + channel), __ldg(bias + channel)};
    }
};

/* What sizes of rows are made of. */
struct MeanSize { /* mean(|x|) */
    static __device__ __forceinline__ float term(float x) { return fabsf(x); }
    static __device__ __forceinline__ double size(double sum, double count) { return sum / count; }
};
struct Length { /* sqrt(sum(x^2)) */
    static __device__ __forceinline__ float term(float x) { return x * x; }
    static __device__ __forceinline__ double size(double sum, double) { return sqrt(sum); }
};

/* x / size: two products, of which the first brings a size that is very small or large near 1, so
 * that its reciprocal is a normal number. A size of 0 gives NaN and infinities, as a division. */
template <class Size> struct DivideBy {
    struct State {
        double sum;
    };
    struct Row {
        float near, factor;
    };
    struct Mapper {
        Row r;
        __device__ __forceinline__ float operator()(float x) const { return x * r.near * r.factor; }
    };
    static constexpr float NEUTRAL = 0.0f;

    static __device__ __forceinline__ State none() { return {0}; }
    template <int N> static __device__ __forceinline__ void take(State &s, const float4 (&v)[N]) {
        float sum[4] = {};
#pragma unroll
        for (int j = 0; j < N; j++) {
            sum[0] += Size::term(v[j].x);
            sum[1] += Size::term(v[j].y);
            sum[2] += Size::term(v[j].z);
            sum[3] += Size::term(v[j].w);
        }
        s.sum += (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
    static __device__ __forceinline__ State join(State a, State b) {
        return {a.sum + b.sum};
    }
    __device__ __forceinline__ Row row(State s, double count) const {
        const double size = Size::size(s.sum, count);
        const float near = size < 0x1p-64 ? 0x1p64f : size > 0x1p64 ? 0x1p-64f : 1.0f;
        return {near, (float)(1.0 / (size * near))};
    }
    __device__ __forceinline__ Mapper mapper(Row r, long long) const {
        return {r};
    }
};

} // namespace kp
