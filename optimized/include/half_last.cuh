/* half_last.cuh: blocks of half_product.cuh that have many tiles each: how they share those of the
 * last round, and stay in step.
 *
 * The last round has fewer tiles than there are clusters. As many clusters as there are for every
 * tile have a part of one length of its depth each: those that have the same part of theirs read
 * the same rows at the same time. The clusters that are left over, helpers, share what is left of
 * the tiles, one after the other. All leave the sums of their pieces in scratch; when all have,
 * each warp adds up some items (half_parts.cuh) of all tiles, in the order of the depth.
 * Reaches: see half_product.cuh. */
#pragma once
#include "half_parts.cuh"

namespace kp {

/* A helper's first slab of what is left of all tiles. */
__device__ __forceinline__ int half_rest_of(const HalfLast &last, int helper) {
    return last.tiles * last.rest * helper / last.helpers;
}

/* Calls f(tile, from, to, piece) for what a cluster has: slabs [from, to) of a tile, which is
 * counted from the first of the last round. A tile's pieces are its parts and what is left, which
 * two helpers may share. */
template <class T, class F>
__device__ __forceinline__ void half_each_piece(const HalfLast &last, int cluster, const F &f) {
    if (cluster < last.parts * last.tiles) {
        const int part = cluster / last.tiles, from = part * last.length;
        const int to = min(from + last.length, T::SLABS);
        if (from < to) f(cluster % last.tiles, from, to, part);
    } else if (last.rest > 0) {
        const int helper = cluster - last.parts * last.tiles, before = T::SLABS - last.rest;
        const int begin = half_rest_of(last, helper), end = half_rest_of(last, helper + 1);
        for (int tile = begin / last.rest; tile * last.rest < end; tile++) {
            const int first = tile * last.rest;
            f(tile, before + max(begin - first, 0), before + min(end - first, last.rest),
              last.parts + (begin > first));
        }
    }
}

/* How many pieces a tile has. */
template <class T> __device__ __forceinline__ int half_pieces(const HalfLast &last, int tile) {
    if (last.rest == 0) return (T::SLABS + last.length - 1) / last.length;
    const int helper = ((tile + 1) * last.rest * last.helpers - 1) / (last.tiles * last.rest);
    return last.parts + 1 + (half_rest_of(last, helper) > tile * last.rest);
}

/* Where block `rank` of a cluster leaves an item of a piece. */
template <class T>
__device__ __forceinline__ float4 *half_piece(float4 *scratch, const HalfLast &last, int tile,
                                              int piece, int rank, int item) {
    const int at = (tile * (last.parts + 2) + piece) * T::SHARE + rank;
    return scratch + (at * T::ITEMS + item) * 128 + threadIdx.x % 32;
}

/* Leaves a warp's sums of a piece. */
template <class T>
__device__ __forceinline__ void half_leave_piece(float4 *scratch, const HalfLast &last,
                                                 const HalfWork<T> &work, int tile, int piece,
                                                 const HalfSums<T> &sums) {
    half_fours<T>(sums, [&](int item, int e, float4 v) {
        item = HalfShare<T>::of_tile(item);
        __stcg(half_piece<T>(scratch, last, tile, piece, work.rank, item) + e * 32, v);
    });
}

/* Waits until all blocks have left their pieces, and adds them up. All that multiply call it. */
template <class S, class T>
__device__ __forceinline__ void half_add_pieces(float4 *scratch, const HalfLast &last,
                                                HalfWork<T> work, __half *out) {
    constexpr int WARPS = T::MULTIPLIERS / 32;
    meet_blocks<T::MULTIPLIERS>(half_arrivals<T>, gridDim.x);
#pragma unroll 1
    for (int i = blockIdx.x * WARPS + threadIdx.x / 32; i < last.tiles * T::SHARE * T::ITEMS;
         i += gridDim.x * WARPS) {
        const int tile = i / (T::SHARE * T::ITEMS), pieces = half_pieces<T>(last, tile);
        float4 v[4] = {};
        work.rank = i / T::ITEMS % T::SHARE;
#pragma unroll 4
        for (int piece = 0; piece < pieces; piece++) {
            const float4 *from = half_piece<T>(scratch, last, tile, piece, work.rank, i % T::ITEMS);
#pragma unroll
            for (int e = 0; e < 4; e++) v[e] = half_add(v[e], __ldcg(from + e * 32));
        }
        half_store_item<S, T>(work, last.whole + tile, i % T::ITEMS, v, out);
    }
}

template <class T> __device__ unsigned half_steps; /* 0 after each launch */

/* Called by who fetches before the n-th slab of a block: every 16 slabs of the whole rounds, which
 * have so many, it waits until all clusters have come, on average, to within 32 of that. */
template <class T>
__device__ __forceinline__ void half_step(const HalfWork<T> &work, int n, int slabs) {
    if (n % 16 || n == 0 || n >= slabs || work.rank) return;
    const unsigned step = n / 16, steps = (slabs - 1) / 16;
    count_up(&half_steps<T>, steps * work.step - 1);
    if (step > 1 && step < steps) count_wait(&half_steps<T>, (step - 1) * work.step);
}

} // namespace kp
