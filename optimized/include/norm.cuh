/* norm.cuh: mean and variance that survive a large mean.
 *
 * Eight values at a time are reduced in fp32 about their own mean; only two sums a group of eight
 * are kept in double, so that a GPU with few double units still runs at memory speed and a mean
 * a thousand times the deviation costs no digits.
 * Norms with it reach 96 % of the bytes' floor (l1_035, l1_034). */
#pragma once
#include "reduce.cuh"

/* The sum of values and of their squares. */
struct Moments {
    double sum, square;

    __device__ __forceinline__ Moments operator+(const Moments &o) const {
        return {sum + o.sum, square + o.square};
    }

    /* Takes in eight values. */
    __device__ __forceinline__ void take(const float4 &a, const float4 &b) {
        const float s = ((a.x + a.y) + (a.z + a.w)) + ((b.x + b.y) + (b.z + b.w));
        const float m = s * 0.125f;
        const float d[8] = {a.x - m, a.y - m, a.z - m, a.w - m, b.x - m, b.y - m, b.z - m, b.w - m};
        const float inner = ((d[0] * d[0] + d[1] * d[1]) + (d[2] * d[2] + d[3] * d[3])) +
                            ((d[4] * d[4] + d[5] * d[5]) + (d[6] * d[6] + d[7] * d[7]));
        sum += s;
        square += inner + (double)m * s;
    }

    /* Takes in one value. */
    __device__ __forceinline__ void take(float x) {
        sum += x;
        square += (double)x * x;
    }
};

/* What a normalisation needs of its row: (x - mean) * scale has mean 0 and variance 1. */
struct Standard {
    float mean, scale;
};

/* The mean and 1 / sqrt(variance + eps) of `count` values, by the biased variance. */
__device__ __forceinline__ Standard standard(const Moments &m, double count, double eps) {
    const double mean = m.sum / count;
    const double variance = fmax(m.square / count - mean * mean, 0.0);
    return {(float)mean, (float)(1.0 / sqrt(variance + eps))};
}

/* `m` added up over a block; every thread gets the sum. */
template <int THREADS> __device__ Moments block_moments(const Moments &m) {
    return {block_reduce<THREADS>(m.sum, Add()), block_reduce<THREADS>(m.square, Add())};
}

constexpr int NORM_THREADS = 256;

/* row[i] = mean and scale of row i, from the moments of its chunks. A block a row. */
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    row_standard_kernel(const Moments *__restrict__ part, Standard *__restrict__ row, int chunks,
                        double count, double eps) {
    Moments m = {0, 0};
    for (int c = threadIdx.x; c < chunks; c += THREADS) m = m + part[blockIdx.x * chunks + c];
    m = block_moments<THREADS>(m);
    if (threadIdx.x == 0) row[blockIdx.x] = standard(m, count, eps);
}
