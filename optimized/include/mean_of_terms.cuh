/* mean_of_terms.cuh: one number from all elements of some inputs, at reading speed: losses.
 *
 * A block adds up the terms of a tile, a few rows high, in four fp32 sums a thread, each of which
 * sees few terms; these it joins in double. One number a tile goes to scratch, and one block adds
 * these, in double and in a fixed order. A tile's loads of a row are asked for together, and tiles
 * are small, so that what is in flight lies close together. Bytes over the reading bandwidth limit
 * it, as long as a term takes fewer than about 25 instructions for each input. Reaches 94 to 100 %
 * of the floor (l1_098, l1_094).
 *
 * A task gives a Loss:
 *   static constexpr int SUMS                       how many sums a tile has
 *   void add(float (&sum)[SUMS], float... v) const  adds the terms of one element of the inputs
 *   float tile(const double (&sum)[SUMS]) const     what a tile with these sums contributes */
#pragma once
#include <utility>
#include "reduce.cuh"

namespace kp {

constexpr int TILE_THREADS = 256, TILE_FOURS = 4; /* float4 of each input a thread and row */
constexpr int TILE_WIDTH = TILE_THREADS * TILE_FOURS * 4; /* floats */
constexpr int TILE_JOIN_THREADS = 1024;

/* An input: an array of all elements, or one row that stands for every row, which is read ONCE a
 * tile. */
struct All {
    static constexpr bool ONCE = false;
    const float *x;
    __device__ __forceinline__ float4 at(long long place, int) const {
        return __ldg((const float4 *)x + place);
    }
};
struct EveryRow {
    static constexpr bool ONCE = true;
    const float *x;
    __device__ __forceinline__ float4 at(long long, int column) const {
        return __ldg((const float4 *)x + column);
    }
};

/* Loads a thread's float4 of a row, from `place`, if the input is read once or not, as asked. */
template <bool ONCE, class In>
__device__ __forceinline__ void load_fours(float4 (&v)[TILE_FOURS], const In &in, long long place,
                                           int column) {
    if constexpr (In::ONCE == ONCE) {
#pragma unroll
        for (int j = 0; j < TILE_FOURS; j++)
            v[j] = in.at(place + j * TILE_THREADS, column + j * TILE_THREADS);
    }
}

/* Adds the terms of the j-th float4 of each input. */
template <class Loss, int SUMS, int INPUTS, size_t... I>
__device__ __forceinline__ void add_fours(const Loss &loss, float (&sum)[4][SUMS],
                                          const float4 (&v)[INPUTS][TILE_FOURS], int j,
                                          std::index_sequence<I...>) {
    loss.add(sum[0], v[I][j].x...);
    loss.add(sum[1], v[I][j].y...);
    loss.add(sum[2], v[I][j].z...);
    loss.add(sum[3], v[I][j].w...);
}

/* part[i] = what tile i contributes: ROWS rows of TILE_WIDTH of COLUMNS floats. One block an SM at
 * least: else the compiler saves registers and keeps fewer loads in flight. */
template <int COLUMNS, int ROWS, class Loss, class... In>
__global__ void __launch_bounds__(TILE_THREADS, 1)
    tile_kernel(Loss loss, float *__restrict__ part, const In... in) {
    constexpr int ACROSS = COLUMNS / TILE_WIDTH, INPUTS = sizeof...(In), SUMS = Loss::SUMS;
    const int column = blockIdx.x % ACROSS * (TILE_WIDTH / 4) + threadIdx.x;
    const long long top = (long long)(blockIdx.x / ACROSS) * ROWS * (COLUMNS / 4) + column;
    float sum[4][SUMS] = {};
    float4 v[INPUTS][TILE_FOURS];
    int k = 0;
    (load_fours<true>(v[k++], in, top, column), ...);
#pragma unroll 1
    for (int r = 0; r < ROWS; r++) {
        k = 0;
        (load_fours<false>(v[k++], in, top + r * (COLUMNS / 4), column), ...);
#pragma unroll
        for (int j = 0; j < TILE_FOURS; j++)
            add_fours(loss, sum, v, j, std::make_index_sequence<INPUTS>());
    }
    double all[SUMS];
#pragma unroll
    for (int s = 0; s < SUMS; s++) {
        const float own = (sum[0][s] + sum[1][s]) + (sum[2][s] + sum[3][s]);
        all[s] = block_reduce<TILE_THREADS>((double)own, Add());
    }
    if (threadIdx.x == 0) part[blockIdx.x] = loss.tile(all);
}

/* out = the sum of the parts over `count`. One block. */
static __global__ void __launch_bounds__(TILE_JOIN_THREADS)
    join_tiles_kernel(const float *__restrict__ part, int parts, double count,
                      float *__restrict__ out) {
    double sum = 0;
#pragma unroll 16
    for (int i = threadIdx.x; i < parts; i += TILE_JOIN_THREADS) sum += part[i];
    sum = block_reduce<TILE_JOIN_THREADS>(sum, Add());
    if (threadIdx.x == 0) *out = (float)(sum / count);
}

/* The tiles of ELEMENTS floats; a tile contributes a float of scratch. */
template <long long ELEMENTS, int ROWS> constexpr int tiles_of() {
    static_assert(ELEMENTS % (ROWS * TILE_WIDTH) == 0, "whole tiles");
    static_assert(ELEMENTS / (ROWS * TILE_WIDTH) < 1LL << 31, "at most 2^31 tiles");
    return (int)(ELEMENTS / (ROWS * TILE_WIDTH));
}

/* Enqueues out = the sum of what the tiles of ELEMENTS floats contribute, over `count`. The floats
 * are seen as rows of COLUMNS, which only matters to EveryRow and to what a tile is. */
template <long long ELEMENTS, int COLUMNS, int ROWS, class Loss, class... In>
static void mean_of_terms(cudaStream_t stream, const Loss &loss, double count, float *out,
                          void *scratch, In... in) {
    static_assert(COLUMNS % TILE_WIDTH == 0, "whole tiles side by side");
    constexpr int tiles = tiles_of<ELEMENTS, ROWS>();
    float *part = (float *)scratch;
    tile_kernel<COLUMNS, ROWS><<<tiles, TILE_THREADS, 0, stream>>>(loss, part, in...);
    join_tiles_kernel<<<1, TILE_JOIN_THREADS, 0, stream>>>(part, tiles, count, out);
}

} // namespace kp
