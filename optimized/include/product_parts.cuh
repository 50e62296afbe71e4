/* product_parts.cuh: what the two ways of multiplying (product.cuh) and operands share: sizes of
 * tiles, where a slab of A lies in shared memory, and which part of a tile a thread has. */
#pragma once
#include "hopper.cuh"

#include <type_traits>

namespace kp {

constexpr int TILE_M = 256, TILE_K = 32;

/* Whether no tile lies beyond so many rows, nor does the other tile of a cluster of two. */
__host__ __device__ constexpr bool whole_tiles(long long rows) {
    return rows % (2 * TILE_M) == 0;
}

/* How the rests are multiplied: A's with B, and B's with A; HALF: in bf16. */
struct Bf16Rest {
    static constexpr bool A_HALF = true, B_HALF = true;
};
struct MixedRest {
    static constexpr bool A_HALF = false, B_HALF = true;
};
struct Tf32Rest {
    static constexpr bool A_HALF = false, B_HALF = false;
};

/* A tile of N columns; CLUSTER blocks share B. RUN: how many slabs, 1 or 2, the tensor cores add up
 * before the sum is added in fp32. */
template <int N_, class Rest = Bf16Rest, int CLUSTER_ = 2, int RUN_ = Rest::B_HALF ? 2 : 1>
struct Tile {
    static constexpr int N = N_, CLUSTER = CLUSTER_, RUN = RUN_;
    static constexpr bool A_HALF = Rest::A_HALF, B_HALF = Rest::B_HALF;
    static constexpr int PART_BYTES = N * TILE_K * 4; /* of the big parts of B, and of the rests */
    static constexpr int B_BYTES = 2 * PART_BYTES, B_WORDS = B_BYTES / 4;
    /* Warpgroups that fetch, slabs in turns. Where tiles are narrow, one takes longer to gather a
     * slab than two to multiply it. */
    static constexpr int FETCHERS = N <= 64 ? 2 : 1, THREADS = (2 + FETCHERS) * 128;
    /* Registers of a thread at its launch, of one that multiplies, and of one that fetches; blocks
     * that want more than they were launched with wait for ever. */
    static constexpr int LAUNCHED = 65536 / THREADS / 8 * 8;
    static constexpr int MULTIPLIER = N < 64 ? 192 : N == 64 ? 208 : N <= 96 ? 224 : 240;
    static constexpr int FETCHER = ((2 + FETCHERS) * LAUNCHED - 2 * MULTIPLIER) / FETCHERS;
    template <class A> static __host__ __device__ constexpr int stage() {
        return B_BYTES + A::SLAB_BYTES;
    }
    template <class A> static __host__ __device__ constexpr int stages() {
        return min_of(5, (226 * 1024) / (stage<A>() + 16));
    }
    static __host__ __device__ constexpr int min_of(int a, int b) { return a < b ? a : b; }
    static_assert(CLUSTER == 1 || CLUSTER == 2, "whole_tiles() knows of two");
    static_assert(N == 16 || N == 32 || N == 48 || N == 64 || N == 96 || N == 128,
                  "columns of a tile");
};

/* The rests for sums of at least so many products. Rests in bf16 err by 2^-20 of a product, which
 * hides behind fp32's own rounding in long sums only. Errors on an H200 with both in bf16, in
 * METHOD.md's spreads, of which 3 are allowed: 7 where K is 32, 3.1 to 3.9 at 256, 2.4 to 3 at 363
 * to 576, 1.6 at 1024; with one it is 1 / sqrt(2) of that. */
template <int TERMS>
using RestFor = std::conditional_t<(TERMS < 320), Tf32Rest,
                                   std::conditional_t<(TERMS < 1024), MixedRest, Bf16Rest>>;

/* The tile for the sums of S. */
template <class S, int N, int CLUSTER = 2> using TileFor = Tile<N, RestFor<S::TERMS>, CLUSTER>;

/* Plain sizes: all of the depth for every tile. */
template <long long ROWS_, int COLUMNS_, int DEPTH, int BATCHES_ = 1, bool ONE_B = BATCHES_ == 1>
struct Matrices {
    static constexpr long long ROWS = ROWS_;
    static constexpr int COLUMNS = COLUMNS_, SLABS = (DEPTH + TILE_K - 1) / TILE_K;
    static constexpr int TERMS = DEPTH;
    static constexpr int BATCHES = BATCHES_, B_BATCHES = ONE_B ? 1 : BATCHES_;
    static constexpr bool BATCH_FASTEST = false;
    static __device__ __forceinline__ int first_slab(int, int, int, int, int) { return 0; }
    static __device__ __forceinline__ int end_slab(int, int, int, int, int) { return SLABS; }
};

/* ---- what lies where ---- */

/* A slab of A in shared memory, neighbours along the depth: pieces of a row of 32 words change
 * places by the row's number, so that the rows that lanes read together lie in different banks. */
struct AlongSlab {
    static constexpr bool ALONG_DEPTH = true;
    static constexpr int SLAB_BYTES = TILE_M * TILE_K * 4;
    static __device__ __forceinline__ constexpr int word(int row, int k) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        return row * TILE_K + (k ^ row % 2 * 16); /* lanes read half a row of two rows */
#else
        return row * TILE_K + (k ^ row % 8 * 4); /* and here a piece of eight */
#endif
    }
};

/* Neighbours along the rows. */
struct AcrossSlab {
    static constexpr bool ALONG_DEPTH = false;
    static constexpr int LINE = TILE_M + 8; /* 8 more, for the banks */
    static constexpr int SLAB_BYTES = TILE_K * LINE * 4;
    static __device__ __forceinline__ constexpr int word(int row, int k) { return k * LINE + row; }
};

/* A thread's part of a tile: value [i][4 * j + 2 * h + e] belongs to row `row(i, h)` and column
 * 8 * j + e, both counted from the thread's first. The eight lanes with equal lane % 4 hold other
 * rows, the four with equal lane / 4 other columns: lane % 4 * 2 further. */
template <bool A_ALONG_DEPTH, int N_> struct Part {
    static constexpr bool ALONG_DEPTH = A_ALONG_DEPTH;
    static constexpr int N = N_;
    float v[2][N / 2];
    static __device__ __forceinline__ constexpr int row(int i, int h) {
        return A_ALONG_DEPTH ? (2 * i + h) * 8 : 2 * i + h;
    }
};

/* The thread's first row in its tile. */
template <bool A_ALONG_DEPTH> __device__ __forceinline__ int first_row() {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    return warp * 32 + lane / 4 * (A_ALONG_DEPTH ? 1 : 4);
}

/* The sum over the lanes that have the same columns and other rows. */
__device__ __forceinline__ float sum_rows(float v) {
#pragma unroll
    for (int step = 4; step < 32; step *= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
    return v;
}

/* A tile of the product, and which slabs its cluster multiplies: all blocks the same. */
struct TileAt {
    int batch, m, n, first, end;
};

/* The clusters' tiles, in all. */
template <class S, class T> __host__ __device__ constexpr long long tiles_of() {
    constexpr long long rows = (S::ROWS + TILE_M * T::CLUSTER - 1) / (TILE_M * T::CLUSTER);
    return rows * ((S::COLUMNS + T::N - 1) / T::N) * S::BATCHES;
}

/* Block `rank`'s tile of tile `index` of its cluster's list: panels of 8 rows of tiles, within
 * which the rows vary fastest, so that blocks at work together share what they read. */
template <class S, class T> __device__ __forceinline__ TileAt find_tile(int index, int rank) {
    constexpr int PANEL = 8 / T::CLUSTER;
    constexpr int ROWS = (int)((S::ROWS + TILE_M * T::CLUSTER - 1) / (TILE_M * T::CLUSTER));
    constexpr int COLUMNS = (S::COLUMNS + T::N - 1) / T::N;
    TileAt at;
    at.batch = S::BATCH_FASTEST ? index % S::BATCHES : index / (ROWS * COLUMNS);
    index = S::BATCH_FASTEST ? index / S::BATCHES : index % (ROWS * COLUMNS);
    const int panel = index / (PANEL * COLUMNS), within = index % (PANEL * COLUMNS);
    const int height = min(PANEL, ROWS - panel * PANEL);
    at.m = (panel * PANEL + within % height) * T::CLUSTER;
    at.n = within / height;
    const int row = at.m * TILE_M, row_end = row + T::CLUSTER * TILE_M;
    at.first = S::first_slab(at.batch, row, row_end, at.n * T::N, (at.n + 1) * T::N);
    at.end = S::end_slab(at.batch, row, row_end, at.n * T::N, (at.n + 1) * T::N);
    at.m += rank;
    return at;
}

} // namespace kp
