/* noise.cuh: noise.h's laws on the device, and numbers that carry their own noise. */
#ifndef KP_NOISE_CUH
#define KP_NOISE_CUH

#include "cuda_base/noise.h"

#include <math.h>

namespace kp {

/* 64 random bits of a seed and a number (splitmix64). */
__host__ __device__ inline uint64_t noise_bits(uint64_t seed, uint64_t i) {
    uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* The seed of what comes of two seeds, or of a seed and a number; noise_even() spreads its bits. */
__device__ inline uint64_t noise_next(uint64_t seed, uint64_t i) {
    return (seed ^ seed >> 32) * 0x9e3779b97f4a7c15ull + i;
}

/* An integer as a double, without the slow conversion: 2^52 + 2^31 + h is its own bits. */
__device__ inline double noise_integer(uint32_t h) {
    return __longlong_as_double(0x4330000000000000ll | (h ^ 0x80000000u)) - (0x1p52 + 0x1p31);
}

/* Evenly in (-1, 1), in steps of 2^-31: variance 1/3.  It is most of what noise costs, so it mixes
 * 32 bits: both halves of the number are multiplied by odd constants, and between two
 * multiplications that spread the bits comes the other half of the seed. */
__device__ inline double noise_even(uint64_t seed, uint64_t i) {
    uint32_t h = (uint32_t)i * 0x9e3779b1u + (uint32_t)(i >> 32) * 0x85ebca77u + (uint32_t)seed;
    h = (h ^ h >> 16) * 0x7feb352du + (uint32_t)(seed >> 32);
    h = (h ^ h >> 15) * 0x846ca68bu;
    return (noise_integer(h ^ h >> 16) + 0.5) * 0x1p-31;
}

/* The size of a number as far as its uncertainty goes. */
__device__ inline double noise_size(double x) {
    return fabs(x) + KP_NOISE_FLOOR;
}

/* 3/u^2 times the variance of a sum of `terms` terms from its value c and the sum q of their
 * squares: see noise.h. */
__device__ inline double noise_of_sum(double c, double q, double terms, int chain) {
    double k = fmin(terms, (double)chain), own = noise_size(c) * noise_size(c);
    double same = c * c / terms, both = fmax(q - same, 0.0);
    return (same * k * k / 3 + both * k / 2) / 4 + own;
}

/* x to the 24 bits of an fp32 number, by Veltkamp's splitting: in fp32 two results may be equal,
 * and what follows (a softmax, a choice) may depend on it; those that noise has moved never are. */
__device__ inline double on_grid(double x) {
    double t = __dmul_rn(x, 0x1p29 + 1);
    return __dsub_rn(t, __dsub_rn(t, x));
}

/* A sum of terms, and that of their squares. */
struct Sums {
    double c, q;
    __device__ void add(double t) {
        c += t;
        q += t * t;
    }
};
__device__ inline Sums operator+(Sums a, Sums b) {
    return {a.c + b.c, a.q + b.q};
}

/* The sum with the noise of an honest order of its terms.  An op has sums of several roles, and
 * sum i of each. */
__device__ inline double noisy(Sums s, double terms, const kp_noise &n, uint64_t role, uint64_t i) {
    double size = n.sum * ::sqrt(noise_of_sum(s.c, s.q, terms, KP_SUM_CHAIN));
    return s.c + size * noise_even(noise_bits(n.seed, role), i);
}

/* A number in float64 that each operation rounds at random to fp32's precision, as an fp32
 * operation would: expressions of elementwise ops compute with it as with any number.  Equal
 * numbers are rounded equally, as in fp32.  A number without a seed is a constant. */
struct Rough {
    double v;
    uint64_t seed;
    __device__ Rough(double x) : v(x), seed(0) {}
    __device__ Rough(double x, uint64_t s) : v(x), seed(s) {}

    /* A result that may be off by `units` unit roundoffs; an infinity stays what it is. */
    static __device__ Rough of(double x, uint64_t seed, double units) {
        if (isinf(x)) return {x, seed};
        double off = KP_AMPLIFIED * KP_UNIT_FP32 * units * noise_size(x);
        return {x + off * noise_even(seed, (uint64_t)__double_as_longlong(x)),
                noise_next(seed, (uint64_t)units)};
    }
};

__device__ inline Rough operator-(Rough a) {
    return {-a.v, a.seed};
}
__device__ inline Rough operator+(Rough a, Rough b) {
    return Rough::of(a.v + b.v, noise_next(a.seed, b.seed), 1);
}
__device__ inline Rough operator-(Rough a, Rough b) {
    return Rough::of(a.v - b.v, noise_next(a.seed, b.seed), 1);
}
__device__ inline Rough operator*(Rough a, Rough b) {
    return Rough::of(a.v * b.v, noise_next(a.seed, b.seed), 1);
}
__device__ inline Rough operator/(Rough a, Rough b) {
    return Rough::of(a.v / b.v, noise_next(a.seed, b.seed), 1);
}
__device__ inline bool operator<(Rough a, Rough b) {
    return a.v < b.v;
}
__device__ inline bool operator>(Rough a, Rough b) {
    return a.v > b.v;
}

__device__ inline bool isnan(Rough a) {
    return ::isnan(a.v);
}
__device__ inline Rough fabs(Rough a) {
    return {::fabs(a.v), a.seed};
}

/* Functions, by the largest error of their fp32 forms in the CUDA Programming Guide: so many units
 * in the last place, each two unit roundoffs. */
#define KP_ROUGH(name, ulps)                             \
    __device__ inline Rough name(Rough x) {              \
        return Rough::of(::name(x.v), x.seed, 2 * ulps); \
    }
KP_ROUGH(exp, 2)
KP_ROUGH(expm1, 1)
KP_ROUGH(log, 1)
KP_ROUGH(log1p, 2)
KP_ROUGH(tanh, 2)
KP_ROUGH(erf, 2)
KP_ROUGH(erfc, 4)
KP_ROUGH(sin, 2)
KP_ROUGH(cos, 2)
#undef KP_ROUGH
__device__ inline Rough sqrt(Rough x) {
    return Rough::of(::sqrt(x.v), x.seed, 1);
}
__device__ inline Rough pow(Rough x, Rough y) {
    return Rough::of(::pow(x.v, y.v), noise_next(x.seed, y.seed), 2 * 4);
}

/* exp(x - max), the term of a softmax; exact where it is 0 because x is -inf. */
__device__ inline Rough exp_below(Rough x, double max) {
    return x.v == -INFINITY ? Rough(0) : exp(x - Rough(max));
}

} // namespace kp
#endif
