/* half_tile.cuh: how half_product.cuh's product is cut into tiles, and where a block keeps what. */
#pragma once
#include "half_choice.cuh"
#include "half_ring.cuh"
#include "transpose_matrix.cuh"

namespace kp {

template <int M_, int N_, int K_> struct HalfSizes { static constexpr int M = M_, N = N_, K = K_; };

/* How a shape S is cut: HalfChoice has what the parameters mean. */
template <class S, HalfWay WAY, int M_, int N_, int SPLIT_, int PARTS_, int WALK_, bool TRANSPOSED_>
struct HalfTile {
    static constexpr int M = M_, N = N_, SPLIT = SPLIT_, PARTS = PARTS_;
    static constexpr bool TRANSPOSED = TRANSPOSED_; /* out is stored so */
    static constexpr HalfChoice C = {S::M, S::N, S::K, WAY, M, N, SPLIT, PARTS, WALK_, TRANSPOSED_};
    static constexpr bool SHARES_LAST = half_shares_last(C), IN_STEP = half_in_step(C);
    static constexpr bool APART = WAY == HALF_APART;
    static constexpr bool BESIDE = !APART && M == 64; /* the two share the columns */
    static constexpr bool REDUCES = SPLIT * PARTS > 1;
    static constexpr int GROUPS = M == 192 ? 3 : 2; /* of those that multiply */
    static constexpr int OWN_M = APART || BESIDE ? M : M / GROUPS, OWN_N = BESIDE ? N / 2 : N;
    static constexpr int SHARE = WAY == HALF_PAIRED ? 2 : 1, CLUSTER = SHARE * SPLIT;
    static constexpr int ROW_TILES = half_rounds(S::M, M *SHARE);
    static constexpr int COLUMN_TILES = half_rounds(S::N, N);
    static constexpr int TILES = ROW_TILES * COLUMN_TILES; /* of all blocks that share B */
    static constexpr int SLABS = S::K / 64 / SPLIT / PARTS;
    static constexpr int WALK = half_walk(WALK_, ROW_TILES), WALKED = WALK * COLUMN_TILES;
    static constexpr int A_BYTES = M * 128, STAGE = A_BYTES + N * 128;
    /* What the L2 lacks it fetches two slabs of, but of narrow products one: 1 % faster. */
    static constexpr int LINES = S::M < 4096 || S::N < 4096 ? 1 : 2;
    /* LAPS: 64 columns of a warp's 16 rows are a box, and stored at a time; ROOMS of them have
     * room, which the boxes of a tile, and then of the next, take in turns. */
    static constexpr int BOX = 16 * 128, BOXES = OWN_M / 64 * (OWN_N / 64);
    static constexpr int ROOMS = BOXES % 2 ? BOXES : 2;
    static constexpr bool LAPS = half_laps(C);
    static constexpr int SUM_BYTES = LAPS ? 8 * ROOMS * BOX : half_sent(M, N, SPLIT);
    static constexpr int FIT = half_fit(M, N, SUM_BYTES);
    static constexpr bool ONCE = REDUCES || TILES * SHARE <= HALF_PROCESSORS; /* a tile a block */
    static constexpr int STAGES = ONCE && SLABS < FIT ? SLABS : FIT < 16 ? FIT : 16;
    static constexpr int EARLY = SHARE == 1 ? 0 : half_early(STAGES < SLABS ? STAGES : SLABS);
    /* Sums of 16 rows by 32 columns, an item, are what blocks share. */
    static constexpr int OF_WARP = OWN_M / 64 * (OWN_N / 32), ITEMS = 4 * GROUPS * OF_WARP;
    static constexpr int SUMS = STAGES * STAGE, BARS = SUMS + SUM_BYTES;
    /* APART: two barriers; REDUCES: a flag, and a barrier for what others have SENT. */
    static constexpr int TURNS = BARS + STAGES * 16, SENT = TURNS + 8;
    static constexpr int BYTES = TURNS + 16;
    static constexpr int MULTIPLIERS = GROUPS * 128, THREADS = MULTIPLIERS + 128;
    static constexpr int FETCHER = 40, MULTIPLIER = GROUPS == 3 ? 152 : 232; /* registers */
    /* Of the last round a tile has two pieces more than parts, and all have no more than blocks. */
    static constexpr size_t SCRATCH = PARTS > 1     ? (size_t)PARTS *S::M *S::N * 4
                                      : SHARES_LAST ? (size_t)3 * HALF_PROCESSORS *M *N * 4
                                                    : 0;
    static_assert((LAPS || (S::M % (M * SHARE) == 0 && S::N % N == 0)) &&
                      SLABS * 64 * SPLIT * PARTS == S::K,
                  "whole tiles and slabs; maps know where a matrix ends");
    static_assert(OWN_M % 64 == 0 && OWN_M * OWN_N <= 128 * 128, "sums fit into registers");
    static_assert(FIT >= 2 && ITEMS % SPLIT == 0 && !(REDUCES && APART) &&
                      !(SPLIT > 1 && SHARE > 1),
                  "a choice");
};

/* What a block does: tiles first, first + step, ... of all TILES, its part of their depth. */
template <class T> struct HalfWork {
    int first, step, part, rank;
    __device__ __forceinline__ HalfWork() {
        const int cluster = blockIdx.x / T::CLUSTER;
        rank = T::CLUSTER > 1 ? cluster_rank() : 0;
        first = cluster / T::PARTS, part = cluster % T::PARTS;
        step = gridDim.x / (T::CLUSTER * T::PARTS);
    }
    /* The first row and column of a tile. Walked are WALK rows of tiles at a time, down first. */
    __device__ __forceinline__ int row(int tile) const {
        const int m = tile / T::WALKED * T::WALK + tile % T::WALK;
        return (m * T::SHARE + (T::SHARE > 1 ? rank : 0)) * T::M;
    }
    __device__ __forceinline__ int column(int tile) const {
        return tile % T::WALKED / T::WALK * T::N;
    }
    /* Which of the blocks of a cluster that share a tile this is. */
    __device__ __forceinline__ int sharer() const { return T::SPLIT > 1 ? rank : 0; }
    __device__ __forceinline__ int depth() const {
        return (part * T::SPLIT + sharer()) * T::SLABS * 64;
    }
};

template <class T> using HalfSums = float[T::OWN_M / 64][T::OWN_N / 2];

__device__ __forceinline__ uint32_t half_pair(float x, float y) {
    const __half2 v = __floats2half2_rn(x, y);
    return *(const uint32_t *)&v;
}

/* Stores an item of sums as halves: of its 16 rows by 32 columns, from (row, column) on, a thread
 * has two neighbours of every eight columns in one of the upper rows and in one of the lower. */
template <class S, class T>
__device__ __forceinline__ void half_store_halves(__half *out, int row, int column,
                                                  uint32_t (&upper)[4], uint32_t (&lower)[4]) {
    const int lane = threadIdx.x % 32, of_quad = lane % 4;
    if constexpr (T::TRANSPOSED) {
#pragma unroll
        for (int e = 0; e < 4; e += 2) {
            uint32_t r[4] = {transpose_matrix(upper[e]), transpose_matrix(lower[e]),
                             transpose_matrix(upper[e + 1]), transpose_matrix(lower[e + 1])};
            half_transpose(r);
            *(uint4 *)(out + (column + (e + of_quad / 2) * 8 + lane / 4) * S::M + row +
                       of_quad % 2 * 8) = make_uint4(r[0], r[1], r[2], r[3]);
        }
    } else {
        __half *to = out + (row + lane / 4) * S::N + column + of_quad * 8;
        half_transpose(upper), half_transpose(lower);
        *(uint4 *)to = make_uint4(upper[0], upper[1], upper[2], upper[3]);
        *(uint4 *)(to + 8 * S::N) = make_uint4(lower[0], lower[1], lower[2], lower[3]);
    }
}

} // namespace kp
