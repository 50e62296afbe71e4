/* batch_norm.cuh: batch norm in training mode, in place.
 *
 * The moments of each plane of [image][channel][pixels], their join a channel, then one more pass.
 */
#pragma once
#include "norm.cuh"

/* part[row][column] = moments of plane (column, row) of `fours` float4, where x is laid out
 * [column][row][fours]: batch norm's image is the column, its channel the row. */
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    plane_moments_kernel(const float4 *__restrict__ x, Moments *__restrict__ part, int fours) {
    const float4 *p = x + ((long long)blockIdx.y * gridDim.x + blockIdx.x) * fours;
    Moments m = {0, 0};
    int i = threadIdx.x;
#pragma unroll 4
    for (; i + THREADS < fours; i += 2 * THREADS) m.take(p[i], p[i + THREADS]);
    if (i < fours) {
        const float4 v = p[i];
        m.take(v.x), m.take(v.y), m.take(v.z), m.take(v.w);
    }
    m = block_moments<THREADS>(m);
    if (threadIdx.x == 0) part[blockIdx.x * gridDim.y + blockIdx.y] = m;
}

/* x = (x - mean) * scale * weight + bias in place, mean and scale those of the channel. A block a
 * plane; grid: x the channels, y the images. */
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    plane_normalize_kernel(float4 *__restrict__ x, const Standard *__restrict__ channel,
                           const float *__restrict__ weight, const float *__restrict__ bias,
                           int fours) {
    float4 *p = x + ((long long)blockIdx.y * gridDim.x + blockIdx.x) * fours;
    const Standard s = channel[blockIdx.x];
    const float w = weight[blockIdx.x], b = bias[blockIdx.x];
#pragma unroll 4
    for (int i = threadIdx.x; i < fours; i += THREADS) {
        const float4 v = p[i];
        p[i] = make_float4((v.x - s.mean) * s.scale * w + b, (v.y - s.mean) * s.scale * w + b,
                           (v.z - s.mean) * s.scale * w + b, (v.w - s.mean) * s.scale * w + b);
    }
}

/* Bytes of scratch that batch_norm() needs. */
static inline size_t batch_norm_scratch(int images, int channels) {
    return (size_t)images * channels * sizeof(struct Moments) + channels * sizeof(struct Standard);
}

/* Enqueues batch norm in training mode, in place, of x [images][channels][pixels]; pixels is a
 * multiple of four. */
static inline void batch_norm(float *x, const float *weight, const float *bias, int images,
                              int channels, int pixels, double eps, void *scratch,
                              cudaStream_t stream) {
    Moments *part = (Moments *)scratch;
    Standard *channel = (Standard *)(part + images * channels);
    const dim3 planes(channels, images);
    plane_moments_kernel<NORM_THREADS>
        <<<planes, NORM_THREADS, 0, stream>>>((const float4 *)x, part, pixels / 4);
    row_standard_kernel<NORM_THREADS><<<channels, NORM_THREADS, 0, stream>>>(
        part, channel, images, (double)images * pixels, eps);
    plane_normalize_kernel<NORM_THREADS>
        <<<planes, NORM_THREADS, 0, stream>>>((float4 *)x, channel, weight, bias, pixels / 4);
}
