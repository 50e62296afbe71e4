/* half_parts.cuh: tiles of half_product.cuh that several blocks share, each a part of the depth:
 * how they send or leave their sums, and who adds them up.
 *
 * The sums of 16 rows by 32 columns, which a warp has, are an item; item i of warp w is the tile's
 * w * T::OF_WARP + i. Each of the SPLIT blocks of a cluster adds up every SPLIT-th, and sends the
 * others the rest. Where PARTS clusters share a tile and meet, a block adds up every PARTS-th of
 * its items over all of them. A thread has the same places of an item everywhere: a float4, four
 * times.
 * Reaches: see half_product.cuh. */
#pragma once
#include "half_tile.cuh"
#include "named_barrier.cuh"

namespace kp {

__device__ __forceinline__ float4 half_add(float4 x, float4 y) {
    return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

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

/* v = what a warp has of an item. */
template <class T>
__device__ __forceinline__ void half_take(const HalfSums<T> &sums, int item, float4 (&v)[4]) {
    half_fours<T>(sums, [&](int of, int e, float4 x) {
        if (of == item) v[e] = x;
    });
}

/* Which items of its warps a block adds up. */
template <class T> struct HalfShare {
    int sharer, part;
    bool meet; /* all parts; else the last of them has what its cluster has */
    static __device__ __forceinline__ int of_tile(int item) {
        return threadIdx.x / 32 * T::OF_WARP + item;
    }
    static __device__ __forceinline__ int owner(int item) { return of_tile(item) % T::SPLIT; }
    static __device__ __forceinline__ int slot(int item) { return of_tile(item) / T::SPLIT; }
    __device__ __forceinline__ bool in_cluster(int item) const { return owner(item) == sharer; }
    __device__ __forceinline__ bool has(int item) const {
        return in_cluster(item) && (!meet || slot(item) % T::PARTS == part);
    }
    /* Where the memory of an item's owner has what block `from` sends, from T::SUMS on. */
    static __device__ __forceinline__ uint32_t sent(int from, int item) {
        const int place = from - (from > owner(item));
        return (place * (T::ITEMS / T::SPLIT) + slot(item)) * 2048 + threadIdx.x % 32 * 16;
    }
};

/* Sends a warp's sums to the blocks of the cluster that add them up. */
template <class T>
__device__ __forceinline__ void half_send(uint32_t base, const HalfShare<T> &share,
                                          const HalfSums<T> &sums) {
    half_fours<T>(sums, [&](int item, int e, float4 v) {
        if (share.in_cluster(item)) return;
        const uint32_t to = base + T::SUMS + share.sent(share.sharer, item) + e * 512;
        send_at(at_rank(to, share.owner(item)), v, at_rank(base + T::SENT, share.owner(item)));
    });
}

/* v = the sum of an item over the cluster, in the order of its blocks. `memory` is the block's. */
template <class T>
__device__ __forceinline__ void half_add_sent(const unsigned char *memory,
                                              const HalfShare<T> &share, const HalfSums<T> &sums,
                                              int item, float4 (&v)[4]) {
    float4 own[4];
    half_take<T>(sums, item, own);
#pragma unroll
    for (int s = 0; s < T::SPLIT; s++) {
        const unsigned char *from = memory + T::SUMS + share.sent(s, item);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const float4 x = s == share.sharer ? own[e] : *(const float4 *)(from + e * 512);
            v[e] = s == 0 ? x : half_add(v[e], x);
        }
    }
}

/* Where in scratch part `part` of this block's tile leaves an item of this thread's warp. */
template <class T>
__device__ __forceinline__ float4 *half_item(float4 *scratch, const HalfWork<T> &work, int part,
                                             int item) {
    const int tile = work.first * T::SHARE + (T::SHARE > 1 ? work.rank : 0);
    return scratch +
           ((part * T::TILES * T::SHARE + tile) * T::ITEMS + HalfShare<T>::of_tile(item)) * 128 +
           threadIdx.x % 32;
}

/* v = the sum of an item over all parts, in their order; `own` of this one if it is not in scratch.
 */
template <class T>
__device__ __forceinline__ void half_add_parts(float4 *scratch, const HalfWork<T> &work, int item,
                                               const float4 *own, float4 (&v)[4]) {
#pragma unroll 8
    for (int p = 0; p < T::PARTS; p++) {
        const float4 *from = half_item<T>(scratch, work, p, item);
#pragma unroll
        for (int e = 0; e < 4; e++)
            v[e] = half_add(v[e], own && p == work.part ? own[e] : __ldcg(from + e * 32));
    }
}

/* 0 after each launch. */
template <class T> __device__ unsigned half_arrivals[T::TILES * T::CLUSTER];

/* Waits until `all` blocks are here, of which so many THREADS call it each. */
template <int THREADS>
__device__ __forceinline__ void meet_blocks(unsigned *arrivals, unsigned all) {
    meet<THREADS>(1);
    if (threadIdx.x == 0) {
        count_up(arrivals, 2 * all - 1);
        count_wait(arrivals, all);
    }
    meet<THREADS>(1);
    if (threadIdx.x == 0) atomicInc(arrivals, 2 * all - 1); /* has left */
}

/* Waits for the other parts of a tile, where they `meet`. Whether this block adds up: each that
 * met, else the last. All that multiply call it. */
template <class T>
__device__ __forceinline__ bool half_met(const HalfWork<T> &work, bool meet, int *flag) {
    unsigned *arrivals = half_arrivals<T> + work.first * T::CLUSTER + work.rank;
    if (meet) {
        meet_blocks<T::MULTIPLIERS>(arrivals, T::PARTS);
        return true;
    }
    kp::meet<T::MULTIPLIERS>(1);
    if (threadIdx.x == 0) *flag = count_next(arrivals, T::PARTS - 1) == T::PARTS - 1;
    kp::meet<T::MULTIPLIERS>(1);
    return *flag;
}

/* Stores an item of a tile, as half_share's of_tile() counts them, if it is in the matrix. */
template <class S, class T>
__device__ __forceinline__ void half_store_item(const HalfWork<T> &work, int tile, int item,
                                                const float4 (&v)[4], __half *out) {
    const int warp = item / T::OF_WARP, of = item % T::OF_WARP;
    const int row = work.row(tile) + (T::BESIDE ? 0 : warp / 4 * T::OWN_M) +
                    of / (T::OWN_N / 32) * 64 + warp % 4 * 16;
    const int column =
        work.column(tile) + (T::BESIDE ? warp / 4 * T::OWN_N : 0) + of % (T::OWN_N / 32) * 32;
    uint32_t upper[4], lower[4];
#pragma unroll
    for (int e = 0; e < 4; e++)
        upper[e] = half_pair(v[e].x, v[e].y), lower[e] = half_pair(v[e].z, v[e].w);
    if (T::LAPS && (row >= S::M || column >= S::N)) return;
    half_store_halves<S, T>(out, row, column, upper, lower);
}

/* Leaves four sums of an item in scratch. */
template <class T>
__device__ __forceinline__ void half_put(float4 *scratch, const HalfWork<T> &work, int item, int e,
                                         float4 v) {
    __stcg(half_item<T>(scratch, work, work.part, item) + e * 32, v);
}

/* Leaves a warp's sums in scratch, but for what it adds up itself where parts meet. */
template <class T>
__device__ __forceinline__ void half_leave(float4 *scratch, const HalfWork<T> &work,
                                           const HalfShare<T> &share, const HalfSums<T> &sums) {
    half_fours<T>(sums, [&](int item, int e, float4 v) {
        if (!share.meet || !share.has(item)) half_put<T>(scratch, work, item, e, v);
    });
}

/* Sends a warp's sums, and adds up what blocks of its cluster send: `sum(item, v)` is called for
 * each item. */
template <class T, class F>
__device__ __forceinline__ void half_gather(unsigned char *memory, const HalfShare<T> &share,
                                            const HalfSums<T> &sums, const F &sum) {
    const uint32_t base = shared_address(memory);
    cluster_wait(); /* all blocks of it have started */
    half_send<T>(base, share, sums);
    sent_wait(base + T::SENT);
#pragma unroll 1
    for (int item = 0; item < T::OF_WARP; item++) {
        float4 v[4];
        if (!share.in_cluster(item)) continue;
        half_add_sent<T>(memory, share, sums, item, v);
        sum(item, v);
    }
}

/* What is left to do with a warpgroup's sums, of which others have their parts. */
template <class S, class T>
__device__ __forceinline__ void half_finish(const HalfWork<T> &work, unsigned char *memory,
                                            const HalfSums<T> &sums, bool meet, __half *out,
                                            float4 *scratch) {
    const HalfShare<T> share = {work.sharer(), work.part, meet};
    if constexpr (T::SPLIT > 1)
        half_gather<T>(memory, share, sums, [&](int item, const float4(&v)[4]) {
            if (T::PARTS == 1)
                half_store_item<S, T>(work, work.first, share.of_tile(item), v, out);
            else
#pragma unroll
                for (int e = 0; e < 4; e++) half_put<T>(scratch, work, item, e, v[e]);
        });
    else
        half_leave<T>(scratch, work, share, sums);
    if constexpr (T::PARTS > 1) {
        if (!half_met<T>(work, meet, (int *)(memory + T::TURNS))) return;
#pragma unroll 1
        for (int item = 0; item < T::OF_WARP; item++) {
            float4 v[4] = {}, own[4];
            if (!share.has(item)) continue;
            if (T::SPLIT == 1) half_take<T>(sums, item, own);
            half_add_parts<T>(scratch, work, item, T::SPLIT == 1 && meet ? own : nullptr, v);
            half_store_item<S, T>(work, work.first, share.of_tile(item), v, out);
        }
    }
}

} // namespace kp
