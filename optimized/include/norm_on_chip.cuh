/* norm_on_chip.cuh: norms whose groups a block holds in its registers: group and instance norm of
 * neighbours in a row (norm_runs), batch norm of the columns of a matrix with up to 1024 rows
 * (norm_columns).
 *
 * Idea: a block reads its values once, all at the same time, takes their mean, then the squares of
 * what is left, and writes. Values of a product that was just stored are still in the L2 cache, in
 * part. What limits it: 8 bytes a value over the copy bandwidth. Reaches, with its product, 88 to
 * 92 % of the products' floor (l2_084, l2_030; no share of its own was measured).
 *
 * A function f(normal, place) maps what is normal, (v - mean) / sqrt(variance + eps) by the biased
 * variance; a place is an index of the tensor. */
#pragma once
#include "states.cuh"

namespace kp {

/* Deviations are squared in this unit, so that squares of 2^110 do not overflow. */
constexpr float NORM_UNIT = 0x1p-50f;

/* What a deviation, in units, is times this is normal. */
__device__ __forceinline__ float normal_scale(float square, float eps) {
    return rsqrtf(square + eps * NORM_UNIT * NORM_UNIT);
}

/* The sum of v over the block, for all threads; `part` is not in use before or after it. */
template <int THREADS>
__device__ __forceinline__ float sum_of_block(float v, float (&part)[THREADS / 32]) {
    v = lanes_sum(v);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.0f;
#pragma unroll
    for (int i = 0; i < THREADS / 32; i++) v += part[i];
    return v;
}

/* Threads for a run of so many values: each has 32 at most. */
__host__ __device__ constexpr int run_threads(int size) {
    return size > 8192 ? 512 : size > 4096 ? 256 : size > 256 ? 128 : 32;
}

template <int SIZE, class F>
__global__ void __launch_bounds__(run_threads(SIZE))
    norm_runs_kernel(float *__restrict__ y, F f, float eps) {
    constexpr int THREADS = run_threads(SIZE), FOURS = (SIZE / 4 + THREADS - 1) / THREADS;
    __shared__ float sums[THREADS / 32], squares[THREADS / 32];
    const long long begin = (long long)blockIdx.x * SIZE;
    float4 v[FOURS] = {};
    float sum = 0.0f, square = 0.0f;
    auto has = [](int j) {
        return SIZE % (4 * THREADS) == 0 || (int)threadIdx.x + j * THREADS < SIZE / 4;
    };
#pragma unroll
    for (int j = 0; j < FOURS; j++)
        if (has(j)) v[j] = ((const float4 *)(y + begin))[threadIdx.x + j * THREADS];
#pragma unroll
    for (int j = 0; j < FOURS; j++)
        if (has(j)) /* shares, whose sum does not overflow */
            sum += (v[j].x * (1.0f / SIZE) + v[j].y * (1.0f / SIZE)) +
                   (v[j].z * (1.0f / SIZE) + v[j].w * (1.0f / SIZE));
    const float mean = sum_of_block<THREADS>(sum, sums);
    auto off = [mean](float value) { return (value - mean) * NORM_UNIT; };
#pragma unroll
    for (int j = 0; j < FOURS; j++) {
        v[j] = make_float4(off(v[j].x), off(v[j].y), off(v[j].z), off(v[j].w));
        if (has(j))
            square += (v[j].x * v[j].x + v[j].y * v[j].y) + (v[j].z * v[j].z + v[j].w * v[j].w);
    }
    const float scale = normal_scale(sum_of_block<THREADS>(square, squares) * (1.0f / SIZE), eps);
#pragma unroll
    for (int j = 0; j < FOURS; j++)
        if (has(j)) {
            const long long at = begin + 4 * (threadIdx.x + j * THREADS);
            *(float4 *)(y + at) = make_float4(f(v[j].x * scale, at), f(v[j].y * scale, at + 1),
                                              f(v[j].z * scale, at + 2), f(v[j].w * scale, at + 3));
        }
}

/* Enqueues y = f(normal) in place for RUNS runs of SIZE neighbours; y is aligned to 16 bytes. */
template <int RUNS, int SIZE, class F>
static void norm_runs(float *y, const F &f, float eps, cudaStream_t stream) {
    static_assert(SIZE % 4 == 0 && SIZE <= 16384, "whole float4, in registers");
    norm_runs_kernel<SIZE><<<RUNS, run_threads(SIZE), 0, stream>>>(y, f, eps);
}

constexpr int NORM_WIDE = 16, NORM_DEEP = 64; /* columns of a block; threads of a column */

/* The sum of v over the threads of a column. */
__device__ __forceinline__ float sum_of_column(float v, float (&part)[NORM_DEEP][NORM_WIDE]) {
    part[threadIdx.x / NORM_WIDE][threadIdx.x % NORM_WIDE] = v;
    __syncthreads();
    v = 0.0f;
#pragma unroll
    for (int i = 0; i < NORM_DEEP; i++) v += part[i][threadIdx.x % NORM_WIDE];
    return v;
}

template <int ROWS, int COLUMNS, class F>
__global__ void __launch_bounds__(NORM_WIDE *NORM_DEEP)
    norm_columns_kernel(float *__restrict__ y, F f, float eps) {
    constexpr int OWN = (ROWS + NORM_DEEP - 1) / NORM_DEEP;
    __shared__ float sums[NORM_DEEP][NORM_WIDE], squares[NORM_DEEP][NORM_WIDE];
    const int column = blockIdx.x * NORM_WIDE + threadIdx.x % NORM_WIDE;
    const int first = threadIdx.x / NORM_WIDE;
    float v[OWN], sum = 0.0f, square = 0.0f;
    auto has = [=](int j) {
        return (COLUMNS % NORM_WIDE == 0 || column < COLUMNS) &&
               (ROWS % NORM_DEEP == 0 || first + j * NORM_DEEP < ROWS);
    };
#pragma unroll
    for (int j = 0; j < OWN; j++)
        v[j] = has(j) ? y[(long long)(first + j * NORM_DEEP) * COLUMNS + column] : 0.0f;
#pragma unroll
    for (int j = 0; j < OWN; j++) sum += v[j] * (1.0f / ROWS);
    const float mean = sum_of_column(sum, sums);
#pragma unroll
    for (int j = 0; j < OWN; j++) {
        v[j] = (v[j] - mean) * NORM_UNIT;
        square += has(j) ? v[j] * v[j] : 0.0f;
    }
    const float scale = normal_scale(sum_of_column(square, squares) * (1.0f / ROWS), eps);
#pragma unroll
    for (int j = 0; j < OWN; j++)
        if (has(j)) {
            const long long at = (long long)(first + j * NORM_DEEP) * COLUMNS + column;
            y[at] = f(v[j] * scale, at);
        }
}

/* Enqueues y = f(normal) in place for each column of y, [ROWS][COLUMNS]. */
template <int ROWS, int COLUMNS, class F>
static void norm_columns(float *y, const F &f, float eps, cudaStream_t stream) {
    static_assert(ROWS <= 1024, "16 rows a thread, in registers");
    constexpr int BLOCKS = (COLUMNS + NORM_WIDE - 1) / NORM_WIDE;
    norm_columns_kernel<ROWS, COLUMNS><<<BLOCKS, NORM_WIDE * NORM_DEEP, 0, stream>>>(y, f, eps);
}

} // namespace kp
