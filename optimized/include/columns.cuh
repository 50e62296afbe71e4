/* columns.cuh: reductions over the middle axis of [batch][rows][columns].
 *
 * A warp reads 1 KB of a row, eight columns a lane; sixteen warps share 256 columns, four rows each
 * in flight, and join through shared memory. Few columns a block make neighbouring blocks read the
 * same rows at the same time. Where rows are whole float4 a lane's columns are two of them. Bytes
 * over the read bandwidth limit it, if there are a few hundred blocks or more: one for 256 columns
 * of a batch. Reaches 97 % of the floor (l1_048, l1_049).
 *
 * A reduction R has
 *   State                 what is known of some rows of a column
 *   Result                what is stored
 *   State none()          of no rows
 *   State of(v, row)      of one
 *   State then(a, b)      of the rows of a and b, where all of b come after those of a
 *   State join(a, b)      the same, in any order
 *   Result result(s, rows)
 * A column's sum is that of sixteen warps' sums, and each of these grows by sums of four rows. */
#pragma once
#include "extremes.cuh"
#include <math.h>

namespace kp {

/* The mean. */
struct MeanOfColumn {
    using State = float;
    using Result = float;
    static __device__ __forceinline__ float none() { return 0.0f; }
    static __device__ __forceinline__ float of(float v, int) { return v; }
    static __device__ __forceinline__ float then(float a, float b) { return a + b; }
    static __device__ __forceinline__ float join(float a, float b) { return a + b; }
    static __device__ __forceinline__ float result(float s, int rows) { return s / (float)rows; }
};

struct SumOfColumn : MeanOfColumn {
    static __device__ __forceinline__ float result(float s, int) { return s; }
};

/* The largest value, or the smallest; NaN if there is one. */
template <bool LARGEST> struct ExtremeOfColumn {
    using State = float;
    using Result = float;
    static __device__ __forceinline__ float none() { return LARGEST ? -INFINITY : INFINITY; }
    static __device__ __forceinline__ float of(float v, int) { return v; }
    static __device__ __forceinline__ float then(float a, float b) {
        return LARGEST ? larger(a, b) : smaller(a, b);
    }
    static __device__ __forceinline__ float join(float a, float b) { return then(a, b); }
    static __device__ __forceinline__ float result(float s, int) { return s; }
};

/* The row of the first of the largest values, or of the smallest; of the first NaN if there is
 * one. No rows count as row 0 with the weakest value, so that row 0 wins where all are that. */
template <bool LARGEST> struct PlaceInColumn {
    struct State {
        float v;
        int row;
    };
    using Result = long long;
    static __device__ __forceinline__ State none() { return {LARGEST ? -INFINITY : INFINITY, 0}; }
    static __device__ __forceinline__ State of(float v, int row) { return {v, row}; }
    static __device__ __forceinline__ bool beats(float v, float top) {
        return !(LARGEST ? v <= top : v >= top) && top == top;
    }
    static __device__ __forceinline__ State then(State a, State b) {
        const bool second = beats(b.v, a.v);
        return {second ? b.v : a.v, second ? b.row : a.row};
    }
    static __device__ __forceinline__ State join(State a, State b) {
        return a.row < b.row ? then(a, b) : then(b, a);
    }
    static __device__ __forceinline__ long long result(State s, int) { return s.row; }
};

constexpr int COLUMNS_TILE = 256, COLUMNS_WARPS = 16;
constexpr int COLUMNS_WIDE = COLUMNS_TILE / 32, COLUMNS_DEEP = 4; /* a lane's columns; its rows */

/* A lane's columns of a row: WIDE / N runs of N, from the given ones on. */
template <int N>
__device__ __forceinline__ void column_values(const float *__restrict__ row,
                                              const int (&column)[COLUMNS_WIDE / N],
                                              float (&v)[COLUMNS_WIDE]) {
#pragma unroll
    for (int c = 0; c < COLUMNS_WIDE / N; c++)
        if constexpr (N == 4) {
            const float4 four = *(const float4 *)(row + column[c]);
            v[4 * c] = four.x, v[4 * c + 1] = four.y, v[4 * c + 2] = four.z, v[4 * c + 3] = four.w;
        } else
            v[c] = row[column[c]];
}

/* 256 columns of a batch a block, numbered along the columns first. One block at least: else the
 * compiler saves registers and keeps fewer loads in flight. */
template <class R, int ROWS, int COLUMNS>
__global__ void __launch_bounds__(32 * COLUMNS_WARPS, 1)
    reduce_columns_kernel(const float *__restrict__ x, typename R::Result *__restrict__ y) {
    using State = typename R::State;
    constexpr int WARPS = COLUMNS_WARPS, WIDE = COLUMNS_WIDE, DEEP = COLUMNS_DEEP;
    constexpr int TILE = COLUMNS_TILE, TILES = (COLUMNS + TILE - 1) / TILE;
    constexpr int N = COLUMNS % 4 ? 1 : 4, WHOLE = ROWS - ROWS % (WARPS * DEEP);
    static_assert((long long)ROWS * COLUMNS < 1LL << 31, "a batch has fewer than 2^31 elements");
    __shared__ State part[WARPS][TILE];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first = blockIdx.x % TILES * TILE, batch = blockIdx.x / TILES;
    const float *in = x + ((long long)batch * ROWS + warp) * COLUMNS;
    int column[WIDE / N]; /* past the edge: the last, not stored */
    State state[WIDE];
#pragma unroll
    for (int c = 0; c < WIDE / N; c++) column[c] = min(first + (c * 32 + lane) * N, COLUMNS - N);
#pragma unroll
    for (int c = 0; c < WIDE; c++) state[c] = R::none();
    for (int r = 0; r < WHOLE; r += WARPS * DEEP) {
        float v[DEEP][WIDE];
#pragma unroll
        for (int d = 0; d < DEEP; d++)
            column_values<N>(in + (r + d * WARPS) * COLUMNS, column, v[d]);
#pragma unroll
        for (int c = 0; c < WIDE; c++) {
            State s[DEEP];
#pragma unroll
            for (int d = 0; d < DEEP; d++) s[d] = R::of(v[d][c], r + d * WARPS + warp);
            state[c] = R::then(state[c], R::then(R::then(s[0], s[1]), R::then(s[2], s[3])));
        }
    }
    for (int r = WHOLE; r + warp < ROWS; r += WARPS) {
        float v[WIDE];
        column_values<N>(in + r * COLUMNS, column, v);
#pragma unroll
        for (int c = 0; c < WIDE; c++) state[c] = R::then(state[c], R::of(v[c], r + warp));
    }
#pragma unroll
    for (int c = 0; c < WIDE; c++) part[warp][(c / N * 32 + lane) * N + c % N] = state[c];
    __syncthreads();
    const int i = threadIdx.x, to = first + i;
    if (i >= TILE || to >= COLUMNS) return;
#pragma unroll
    for (int step = WARPS / 2; step > 0; step /= 2)
#pragma unroll
        for (int w = 0; w < step; w++) part[w][i] = R::join(part[w][i], part[w + step][i]);
    y[(long long)batch * COLUMNS + to] = R::result(part[0][i], ROWS);
}

/* Enqueues y[b][c] = R of x[b][0][c] to x[b][ROWS - 1][c]; x is aligned to 16 bytes. */
template <class R, int ROWS, int COLUMNS>
static void reduce_columns(const float *x, typename R::Result *y, int batches,
                           cudaStream_t stream) {
    constexpr int TILES = (COLUMNS + COLUMNS_TILE - 1) / COLUMNS_TILE;
    reduce_columns_kernel<R, ROWS, COLUMNS>
        <<<(unsigned)(batches * TILES), 32 * COLUMNS_WARPS, 0, stream>>>(x, y);
}

} // namespace kp
