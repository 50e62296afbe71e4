/* activation.cuh: activation functions at fp32 accuracy, as functors.
 *
 * Plain expf and erff: the fast intrinsics lose digits for large arguments. NaN passes through. */
#pragma once

struct Relu {
    __device__ __forceinline__ float operator()(float v) const { return v < 0.0f ? 0.0f : v; }
};

struct LeakyRelu {
    float slope;
    __device__ __forceinline__ float operator()(float v) const { return v > 0.0f ? v : v * slope; }
};

/* The exact form, by erf. */
struct Gelu {
    __device__ __forceinline__ float operator()(float v) const {
        return v * 0.5f * (1.0f + erff(v * 0.70710678118654752f));
    }
};

/* v * sigmoid(v); exp(-v) = inf gives 0, as it should. */
struct Swish {
    __device__ __forceinline__ float operator()(float v) const { return v / (1.0f + expf(-v)); }
};

/* v * tanh(log(1 + e^v)). With e = e^v the tanh is e (e + 2) / (e (e + 2) + 2), which loses no
 * digits; for large v it is 1. */
struct Mish {
    __device__ __forceinline__ float operator()(float v) const {
        if (v > 20.0f) return v;
        const float e = expf(v), n = e * (e + 2.0f);
        return v * (n / (n + 2.0f));
    }
};
