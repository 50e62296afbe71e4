/* half_parts.cuh: tiles of half_product.cuh that several blocks share, each a part of the depth:
 * how they send or leave their sums, and who adds them up. */
#pragma once
#include "half_tile.cuh"
#include "named_barrier.cuh"

namespace kp {

/* Where the sums of block `from` for a row go, in the memory of the block that adds it up. Pieces
 * of 8 floats are permuted, so that neighbouring rows fall into different banks. */
template <class T> __device__ __forceinline__ uint32_t half_sum_at(int from, int row) {
    return (from * T::ROWS + row % T::ROWS) * T::N * 4;
}

/* Sends a warpgroup's sums, from this row and column of the tile on. */
template <class T>
__device__ __forceinline__ void half_send(uint32_t base, int rank, int row, int column,
                                          const HalfSums<T> &sums) {
#pragma unroll
    for (int i = 0; i < T::OWN_M / 64; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int r = row + i * 64 + h * 8;
            const uint32_t to = at_rank(base + T::SUMS + half_sum_at<T>(rank, r), r / T::ROWS);
            const uint32_t bar = at_rank(base + T::SENT, r / T::ROWS);
#pragma unroll
            for (int j = 0; j < T::OWN_N / 8; j++)
                send_at(to + ((j + column / 8) ^ (row & 3)) * 32 + threadIdx.x % 4 * 8,
                        sums[i][j * 4 + h * 2], sums[i][j * 4 + h * 2 + 1], bar);
        }
}

/* Where in scratch part `part` of this block's tile leaves its items, from `item` on: a float4 of
 * each lane, four times an item. */
template <class T>
__device__ __forceinline__ float4 *half_item(float4 *scratch, const HalfWork<T> &work, int part,
                                             int item) {
    const int tile = work.first * T::SHARE + (T::SHARE > 1 ? work.rank : 0);
    return scratch + ((part * T::TILES * T::SHARE + tile) * T::ITEMS + item) * 128 +
           threadIdx.x % 32;
}

/* The items of its own that a warp adds up: `first`, first + step, ... of T::OF_WARP. Where blocks
 * meet, each adds up some of those that it has in registers; else the last block adds up all. */
template <class T> struct HalfShare {
    int first, step;
    __device__ __forceinline__ HalfShare(const HalfWork<T> &work, bool meet) {
        const int item = threadIdx.x / 32 * T::OF_WARP;
        first = meet ? (work.part + T::PARTS - item % T::PARTS) % T::PARTS : 0;
        step = meet ? T::PARTS : 1;
    }
    __device__ __forceinline__ bool has(int item) const { return item % step == first; }
};

/* Calls f(item, e, a float4) for a warp's sums: what of them is of item `item`, four times. */
template <class T, class F>
__device__ __forceinline__ void half_fours(const HalfSums<T> &sums, const F &f) {
#pragma unroll
    for (int i = 0; i < T::OWN_M / 64; i++)
#pragma unroll
        for (int j = 0; j < T::OWN_N / 8; j++)
            f(i * (T::OWN_N / 32) + j / 4, j % 4,
              make_float4(sums[i][j * 4], sums[i][j * 4 + 1], sums[i][j * 4 + 2],
                          sums[i][j * 4 + 3]));
}

/* Leaves a warp's sums in scratch, but for what it adds up itself where blocks meet. */
template <class T>
__device__ __forceinline__ void half_leave(float4 *scratch, const HalfWork<T> &work, bool meet,
                                           const HalfSums<T> &sums) {
    const HalfShare<T> share(work, meet);
    float4 *to = half_item<T>(scratch, work, work.part, threadIdx.x / 32 * T::OF_WARP);
    half_fours<T>(sums, [&](int item, int e, float4 v) {
        if (!meet || !share.has(item)) __stcg(to + (item * 4 + e) * 32, v);
    });
}

/* 0 after each launch. */
template <class T> __device__ unsigned half_arrivals[T::TILES * T::CLUSTER];

/* Waits for the other parts of a tile, where they `meet`. Whether this block adds up: each that
 * met, else the last. All that multiply call it. */
template <class T>
__device__ __forceinline__ bool half_met(const HalfWork<T> &work, bool meet, int *flag) {
    constexpr unsigned all = T::PARTS;
    unsigned *arrivals = half_arrivals<T> + work.first * T::CLUSTER + work.rank;
    kp::meet<T::MULTIPLIERS>(1);
    if (threadIdx.x == 0) {
        if (meet) {
            count_up(arrivals, 2 * all - 1);
            count_wait(arrivals, all);
        }
        *flag = meet || count_next(arrivals, all - 1) == all - 1;
    }
    kp::meet<T::MULTIPLIERS>(1);
    if (meet && threadIdx.x == 0) atomicInc(arrivals, 2 * all - 1); /* has left */
    return *flag;
}

__device__ __forceinline__ float4 half_add(float4 x, float4 y) {
    return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

__device__ __forceinline__ void half_store_four(__half *to, float4 v) {
    *(uint2 *)to = make_uint2(half_pair(v.x, v.y), half_pair(v.z, v.w));
}

/* Adds up the warp's share of what all parts of a tile have left, in their order, and stores it. */
template <class S, class T>
__device__ __forceinline__ void half_add_items(const HalfWork<T> &work, bool meet,
                                               const HalfSums<T> &sums, __half *out,
                                               float4 *scratch) {
    const HalfShare<T> share(work, meet);
    const int warp = threadIdx.x / 32;
    for (int item = share.first; item < T::OF_WARP; item += share.step) {
        float4 v[4] = {}, own[4];
        half_fours<T>(sums, [&](int of, int e, float4 x) {
            if (of == item) own[e] = x;
        });
#pragma unroll 8
        for (int p = 0; p < T::PARTS; p++) {
            const float4 *from = half_item<T>(scratch, work, p, warp * T::OF_WARP + item);
#pragma unroll
            for (int e = 0; e < 4; e++)
                v[e] = half_add(v[e], meet && p == work.part ? own[e] : __ldcg(from + e * 32));
        }
        const int row =
            (T::BESIDE ? 0 : warp / 4 * T::OWN_M) + item / (T::OWN_N / 32) * 64 + warp % 4 * 16;
        const int column = (T::BESIDE ? warp / 4 * T::OWN_N : 0) + item % (T::OWN_N / 32) * 32;
        __half *to = out + (work.row(work.first) + row + threadIdx.x % 32 / 4) * S::N +
                     work.column(work.first) + column + threadIdx.x % 4 * 8;
        uint32_t upper[4], lower[4];
#pragma unroll
        for (int e = 0; e < 4; e++)
            upper[e] = half_pair(v[e].x, v[e].y), lower[e] = half_pair(v[e].z, v[e].w);
        half_transpose(upper), half_transpose(lower);
        *(uint4 *)to = make_uint4(upper[0], upper[1], upper[2], upper[3]);
        *(uint4 *)(to + 8 * S::N) = make_uint4(lower[0], lower[1], lower[2], lower[3]);
    }
}

/* Calls f(row, four columns, place in S) for one of `shares` shares of this block's rows of its
 * tile. T::MULTIPLIERS threads. */
template <class S, class T, class F>
__device__ __forceinline__ void half_each(const HalfWork<T> &work, int share, int shares,
                                          const F &f) {
    for (int i = threadIdx.x + share * T::MULTIPLIERS; i < T::ROWS * T::N / 4;
         i += T::MULTIPLIERS * shares) {
        const int row = work.sharer() * T::ROWS + i / (T::N / 4);
        const int four = i % (T::N / 4);
        f(row, four, (work.row(work.first) + row) * S::N + work.column(work.first) + four * 4);
    }
}

/* Adds up the sums that the blocks of a cluster have sent, this block its rows, and then those of
 * the other parts. */
template <class S, class T>
__device__ __forceinline__ void half_reduce(const HalfWork<T> &work, const unsigned char *sums,
                                            bool meet, int *flag, __half *out, float *scratch) {
    half_each<S, T>(work, 0, 1, [&](int row, int four, int at) {
        float4 v[T::SPLIT];
#pragma unroll
        for (int s = 0; s < T::SPLIT; s++)
            v[s] = *(const float4 *)(sums + half_sum_at<T>(s, row) + (four ^ (row & 3) * 2) * 16);
#pragma unroll
        for (int s = 1; s < T::SPLIT; s++) v[0] = half_add(v[0], v[s]);
        if (T::PARTS == 1)
            half_store_four(out + at, v[0]);
        else
            __stcg((float4 *)(scratch + (size_t)work.part * (S::M * S::N) + at), v[0]);
    });
    if constexpr (T::PARTS > 1) {
        if (!half_met<T>(work, meet, flag)) return;
        half_each<S, T>(work, meet ? work.part : 0, meet ? T::PARTS : 1, [&](int, int, int at) {
            float4 v = __ldcg((const float4 *)(scratch + at));
#pragma unroll 8
            for (int p = 1; p < T::PARTS; p++)
                v = half_add(v, __ldcg((const float4 *)(scratch + (size_t)p * (S::M * S::N) + at)));
            half_store_four(out + at, v);
        });
    }
}

/* What is left to do with a warpgroup's sums, of which others have their parts. */
template <class S, class T>
__device__ __forceinline__ void half_finish(const HalfWork<T> &work, unsigned char *memory, int row,
                                            int column, const HalfSums<T> &sums, bool meet,
                                            __half *out, void *scratch) {
    int *flag = (int *)(memory + T::TURNS);
    if constexpr (T::SPLIT > 1) {
        const uint32_t base = shared_address(memory);
        cluster_wait(); /* all blocks of it have started */
        half_send<T>(base, work.sharer(), row, column, sums);
        sent_wait(base + T::SENT);
        half_reduce<S, T>(work, memory + T::SUMS, meet, flag, out, (float *)scratch);
    } else {
        half_leave<T>((float4 *)scratch, work, meet, sums);
        if (half_met<T>(work, meet, flag))
            half_add_items<S, T>(work, meet, sums, out, (float4 *)scratch);
    }
}

} // namespace kp
