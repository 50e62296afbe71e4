/* layer_norm.cuh: layer norm of few, very long rows.
 *
 * Many blocks sum the chunks of a row, a small kernel joins them, a third normalises.
 * Reaches 66 % of the bytes' floor (the portable l1_040, in development; results are of
 * layer_norm_sm90.cuh). */
#pragma once
#include "norm.cuh"

constexpr int CHUNK_THREADS = 512, CHUNK_FOURS = 8;         /* float4 a thread, all in flight */
constexpr int NORM_CHUNK = CHUNK_THREADS * CHUNK_FOURS * 4; /* values that one block sums */
constexpr int NORM_ROWS = 4;                                /* rows that one block normalises */

/* Takes in the float4 that a thread holds. */
template <int FOURS> __device__ __forceinline__ void take(Moments &m, const float4 (&v)[FOURS]) {
    static_assert(FOURS % 2 == 0, "eight values at a time");
#pragma unroll
    for (int j = 0; j < FOURS; j += 2) m.take(v[j], v[j + 1]);
}

/* (x - mean) * scale * weight + bias. */
__device__ __forceinline__ float4 normalize(float4 x, Standard s, float4 w, float4 b) {
    return make_float4((x.x - s.mean) * s.scale * w.x + b.x, (x.y - s.mean) * s.scale * w.y + b.y,
                       (x.z - s.mean) * s.scale * w.z + b.z, (x.w - s.mean) * s.scale * w.w + b.w);
}

/* part[row][chunk] = moments of one chunk of one row. Grid: x the rows, so that the last chunks of
 * all rows are read last and may still be in L2 when normalize_kernel begins with them; y the
 * chunks. */
static __global__ void __launch_bounds__(CHUNK_THREADS, 1)
    chunk_moments_kernel(const float4 *__restrict__ x, Moments *__restrict__ part, int columns) {
    const float4 *p =
        x + (blockIdx.x * (long long)columns + blockIdx.y * NORM_CHUNK) / 4 + threadIdx.x;
    float4 v[CHUNK_FOURS];
    Moments m = {0, 0};
#pragma unroll
    for (int j = 0; j < CHUNK_FOURS; j++) v[j] = p[j * CHUNK_THREADS];
    take(m, v);
    m = block_moments<CHUNK_THREADS>(m);
    if (threadIdx.x == 0) part[blockIdx.x * gridDim.y + blockIdx.y] = m;
}

/* y = (x - mean) * scale * weight + bias for one float4 of columns in NORM_ROWS rows. Grid: x the
 * groups of rows, next to each other in time, so that weight and bias come from memory once; y the
 * columns, from the last to the first. Plain loads and stores: evict-first ones cost 2 %. */
static __global__ void __launch_bounds__(NORM_THREADS)
    normalize_kernel(const float4 *__restrict__ x, const Standard *__restrict__ row,
                     const float4 *__restrict__ weight, const float4 *__restrict__ bias,
                     float4 *__restrict__ y, int fours) {
    const int i = (gridDim.y - 1 - blockIdx.y) * NORM_THREADS + threadIdx.x;
    const int first = blockIdx.x * NORM_ROWS;
    const float4 w = weight[i], b = bias[i];
    float4 v[NORM_ROWS];
#pragma unroll
    for (int r = 0; r < NORM_ROWS; r++) v[r] = x[(first + r) * (long long)fours + i];
#pragma unroll
    for (int r = 0; r < NORM_ROWS; r++)
        y[(first + r) * (long long)fours + i] = normalize(v[r], row[first + r], w, b);
}

/* Bytes of scratch that layer_norm() needs. */
static inline size_t layer_norm_scratch(int rows, long long columns) {
    return rows * (columns / NORM_CHUNK) * sizeof(struct Moments) + rows * sizeof(struct Standard);
}

/* Enqueues the layer norm of ROWS rows, a multiple of NORM_ROWS, of `columns` values each, a
 * multiple of NORM_CHUNK below 2^26. Meant for few, very long rows. */
template <int ROWS>
static void layer_norm(const float *x, const float *weight, const float *bias, float *y,
                       int columns, double eps, void *scratch, cudaStream_t stream) {
    static_assert(ROWS % NORM_ROWS == 0, "whole groups of rows");
    const int chunks = columns / NORM_CHUNK, fours = columns / 4;
    Moments *part = (Moments *)scratch;
    Standard *row = (Standard *)(part + ROWS * chunks);
    chunk_moments_kernel<<<dim3(ROWS, chunks), CHUNK_THREADS, 0, stream>>>((const float4 *)x, part,
                                                                           columns);
    row_standard_kernel<NORM_THREADS>
        <<<ROWS, NORM_THREADS, 0, stream>>>(part, row, chunks, columns, eps);
    normalize_kernel<<<dim3(ROWS / NORM_ROWS, fours / NORM_THREADS), NORM_THREADS, 0, stream>>>(
        (const float4 *)x, row, (const float4 *)weight, (const float4 *)bias, (float4 *)y, fours);
}
