/* activations.cuh: activation functions as functors, float to float, accurate over the whole range.
 *
 * Plain expf, expm1f and tanhf: the fast intrinsics lose digits for large arguments. Nothing has
 * branches, as erff and a division have: in an epilogue few warps run, and only elements that are
 * computed side by side hide what each waits for. NaN passes through. A
 * memory-bound map of an H200 has about 50 instructions for each float that it reads and writes;
 * most take half as many here, elu and selu 40. Maps with them reach 100 % of the bytes' floor
 * (map.cuh). */
#pragma once

namespace kp {

/* 1 / v to a rounding or two, for v from 1 to 2^100; no branches. */
__device__ __forceinline__ float reciprocal(float v) {
    const float r = __fdividef(1.0f, v);
    return fmaf(r, fmaf(-v, r, 1.0f), r);
}

/* v times a number. */
struct Scale {
    float factor;
    __device__ __forceinline__ float operator()(float v) const { return v * factor; }
};

struct Relu {
    __device__ __forceinline__ float operator()(float v) const { return v < 0.0f ? 0.0f : v; }
};

struct LeakyRelu {
    float slope;
    __device__ __forceinline__ float operator()(float v) const { return v > 0.0f ? v : v * slope; }
};

/* v between low and high: hardtanh, relu6; one of them may be infinite. */
struct Clamp {
    float low, high;
    __device__ __forceinline__ float operator()(float v) const {
        const float above = v < low ? low : v; /* one choice after the other: no branches */
        return above > high ? high : above;
    }
};

struct Hardsigmoid {
    __device__ __forceinline__ float operator()(float v) const {
        return Clamp{0.0f, 6.0f}(v + 3.0f) * (1.0f / 6.0f);
    }
};

struct Hardswish {
    __device__ __forceinline__ float operator()(float v) const { return v * Hardsigmoid()(v); }
};

/* v / (1 + |v|). Large numbers are scaled down first, so that the reciprocal stays normal. */
struct Softsign {
    __device__ __forceinline__ float operator()(float v) const {
        const float one = fabsf(v) > 0x1p64f ? 0x1p-64f : 1.0f, s = v * one;
        return s * reciprocal(one + fabsf(s));
    }
};

/* 1 / (1 + exp(-v)), by the exponential that is at most 1: nothing overflows. */
struct Sigmoid {
    __device__ __forceinline__ float operator()(float v) const {
        const float e = expf(-fabsf(v)), share = reciprocal(1.0f + e);
        return v < 0.0f ? e * share : share;
    }
};

/* v * sigmoid(v). */
struct Swish {
    __device__ __forceinline__ float operator()(float v) const { return v * Sigmoid()(v); }
};

struct Tanh {
    __device__ __forceinline__ float operator()(float v) const { return tanhf(v); }
};

/* v / 2 * (1 + erf(v / sqrt 2)), which is max(v, 0) - |v| / 2 * erfc(t), t = |v| / sqrt 2. To t =
 * 4, where erfc is less than a rounding of 1, log2(erfc(t)) / t is a polynomial, by Chebyshev
 * nodes. */
struct Gelu {
    __device__ __forceinline__ float operator()(float v) const {
        constexpr float kFactors[] = {
            -1.62790740f,    -0.918432236f,  -0.148398563f,   0.0279920679f,  -2.81065033e-4f,
            -2.02519842e-3f, 7.72527477e-4f, -1.52263048e-4f, 1.63211844e-5f, -7.50208699e-7f};
        const float large = fminf(fabsf(v), 8.0f), t = large * 0.70710678118654752f;
        float sum = kFactors[9];
#pragma unroll
        for (int k = 8; k >= 0; k--) sum = fmaf(sum, t, kFactors[k]);
        const float rest = exp2f(t < 4.0f ? sum * t : -200.0f);
        const float positive = fmaf(0.5f, v, 0.5f * fabsf(v)); /* of -inf NaN, as its definition */
        return positive - 0.5f * large * rest;
    }
};

/* v / 2 * (1 + tanh(u)), u = sqrt(2 / pi) (v + 0.044715 v^3), which is v * sigmoid(2 u): so small
 * results keep their digits. */
struct GeluTanh {
    __device__ __forceinline__ float operator()(float v) const {
        const float twice = v * (1.5957691216057308f + 0.071354816272600f * (v * v));
        return v * Sigmoid()(twice);
    }
};

/* v * tanh(log(1 + e^v)). With e = e^v the tanh is e (e + 2) / (e (e + 2) + 2), which loses no
 * digits; from v = 20 on it is 1. */
struct Mish {
    __device__ __forceinline__ float operator()(float v) const {
        const float e = expf(fminf(v, 20.0f)), n = e * (e + 2.0f);
        return v * (n * reciprocal(n + 2.0f));
    }
};

/* log(1 + e^v), which is max(v, 0) + log(1 + e) with e = exp(-|v|); above PyTorch's threshold of 20
 * that is v. The logarithm is 2 atanh(s), s = e / (2 + e) <= 1/3, by its series. */
struct Softplus {
    __device__ __forceinline__ float operator()(float v) const {
        const float e = expf(-fabsf(v)), s = e * reciprocal(2.0f + e), square = s * s;
        float sum = 1.0f / 15.0f;
#pragma unroll
        for (int k = 13; k > 0; k -= 2) sum = fmaf(sum, square, 1.0f / (float)k);
        return fmaxf(v, 0.0f) + 2.0f * s * sum;
    }
};

struct Elu {
    float alpha;
    __device__ __forceinline__ float operator()(float v) const {
        return v > 0.0f ? v : alpha * expm1f(v);
    }
};

struct Selu {
    __device__ __forceinline__ float operator()(float v) const {
        return 1.0507009873554805f * Elu{1.6732632423543772f}(v);
    }
};

} // namespace kp
