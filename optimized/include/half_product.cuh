/* half_product.cuh: out = A * B for sm_90a, f16 in and out, fp32 sums, by blocks of three
 * warpgroups. Of one a thread asks the copy engine for slabs of A and of B transposed, 64 of the
 * depth each, by tensor maps, into a ring of stages; two multiply them. The ring's barriers are all
 * that the three share, so fetching runs ahead across tiles. half_choice.cuh says which tiles there
 * are and which suit a shape.
 *
 * TOGETHER: the two multiply one tile, a half of its rows each; of a tile of 64 rows a half of its
 * columns; of one of 192 rows three warpgroups a third each. APART: each has tiles of its own, so
 * that one stores while the other multiplies. They take turns: of a stage that is filled twice
 * before a warpgroup looks, parity tells nothing. PAIRED: as TOGETHER, and two blocks, a cluster,
 * have tiles below each other and share B: each fetches a half for both. Of tiles of 128 rows that
 * nobody shares the copy engine stores, too, while the tensor cores add up the next: a warpgroup
 * has two sets of sums or, of 256 columns, one and what it was before, as halves.
 *
 * Where there are few tiles SPLIT blocks, a cluster, share one, each a part of the depth: each adds
 * up a piece of the tile, of which the others send it their sums. If that is still too few blocks,
 * PARTS of such clusters share it: each leaves its sums in scratch. Where all blocks run at once
 * they meet then, and each adds up a piece; else the last adds up all. The order is always the
 * same. Where there are many, all may share those of the last round (half_last.cuh).
 *
 * A product may be multiplied TRANSPOSED: A and B change places, and each item of sums is
 * transposed as it is stored. A tall one is cut as a wide one is then.
 *
 * Reaches 95 to 101 % of the floor of the 135 shapes of hgemm where that is 200 us or more, 74 to
 * 97 % where it is 50 to 100 us, half of them 91 or more, and 65 % at most below 10 us, where time
 * is a launch and what waits for memory (results/h200). */
#pragma once
#include "half_last.cuh"

namespace kp {

/* What the copy engine knows of the matrices. */
struct HalfMaps {
    TensorMap a, bt, out;
};

/* Asks the copy engine for slab `k` of a tile: of B for all SHARE blocks that share it, a part, or
 * for this one alone. */
template <class T, int SHARE>
__device__ __forceinline__ void half_ask(HalfRing<T> &ring, const HalfWork<T> &work,
                                         const HalfMaps &maps, int tile, int k) {
    constexpr int BOXES = T::SHARE / SHARE, ROWS = T::N / T::SHARE; /* of B, of a box */
    const int depth = work.depth() + k * 64;
    bar_wait(ring.empty(), ring.parity ^ 1);
    bar_expect(ring.full(), T::STAGE);
    copy_box<1>(ring.a(), &maps.a, work.row(tile), depth, ring.full());
    for (int i = 0; i < BOXES; i++) {
        const int row = (SHARE > 1 ? work.rank : i) * ROWS;
        copy_box<SHARE>(ring.b() + row * 128, &maps.bt, work.column(tile) + row, depth,
                        ring.full());
    }
    ring.next();
}

/* Fetches: one thread asks for the slabs of all tiles. Of blocks that share B each fetches all of
 * the first EARLY slabs, so that it need not wait for the others to start. */
template <class T>
__device__ __forceinline__ void half_fetch(HalfRing<T> ring, const HalfWork<T> work,
                                           const HalfMaps &maps, const HalfLast &last) {
    const bool asks = threadIdx.x / 32 == T::MULTIPLIERS / 32;
    if (T::SHARE > 1) {
        HalfRing<T> early = ring;
        if (asks && elect_one())
            for (int k = 0; k < T::EARLY; k++) half_ask<T, 1>(early, work, maps, work.first, k);
        __syncwarp();
        cluster_wait();
        ring.skip(T::EARLY);
    }
    if (asks && elect_one()) {
        const int tiles = T::SHARES_LAST ? last.whole : T::TILES;
        int n = T::EARLY; /* how many slabs before this one */
        for (int tile = work.first; tile < tiles; tile += work.step)
#pragma unroll 1 /* whose addresses have no room in a fetcher's registers */
            for (int k = tile == work.first ? T::EARLY : 0; k < T::SLABS; k++, n++) {
                if (T::IN_STEP) half_step<T>(work, n, last.whole / work.step * T::SLABS);
                half_ask<T, T::SHARE>(ring, work, maps, tile, k);
            }
        if (T::SHARES_LAST)
            half_each_piece<T>(last, work.first, [&](int tile, int from, int to, int) {
#pragma unroll 1
                for (int k = from; k < to; k++)
                    half_ask<T, T::SHARE>(ring, work, maps, last.whole + tile, k);
            });
        if (T::SHARE > 1) ring.wait_all();
    }
    __syncwarp();
}

/* sums (+)= one slab, as one group of products. */
template <class T>
__device__ __forceinline__ void half_slab(HalfSums<T> &sums, uint32_t a, uint32_t b, int add) {
    const uint64_t left = wgmma_operand(a), right = wgmma_operand(b);
    wgmma_begin();
#pragma unroll
    for (int k = 0; k < 4; k++)
#pragma unroll
        for (int i = 0; i < T::OWN_M / 64; i++)
            WgmmaShared<T::OWN_N>::multiply(sums[i], left + i * (64 * 128 >> 4) + k * 2,
                                            right + k * 2, add | k);
    wgmma_end();
}

/* Stores a warp's sums, from (row, column) on. */
template <class S, class T>
__device__ __forceinline__ void half_store(__half *out, int row, int column,
                                           const HalfSums<T> &sums) {
#pragma unroll
    for (int i = 0; i < T::OWN_M / 64; i++)
#pragma unroll
        for (int j = 0; j < T::OWN_N / 2; j += 16) {
            uint32_t upper[4], lower[4];
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const float *v = sums[i] + j + e * 4;
                upper[e] = half_pair(v[0], v[1]), lower[e] = half_pair(v[2], v[3]);
            }
            half_store_halves<S, T>(out, row + i * 64, column + j * 2, upper, lower);
        }
}

/* Stores by the copy engine, one box of a warp's sums at a time. */
template <class S, class T> struct HalfBoxes {
    const TensorMap *map;
    uint32_t rooms;
    int row, column;
    /* Box `b` for the tile at (row, column); pair(i, at) is two neighbours as half. */
    template <class F> __device__ __forceinline__ void store(int b, const F &pair) const {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, i = b / (T::OWN_N / 64);
        const int j = b % (T::OWN_N / 64) * 8;
        const uint32_t box = rooms + (warp * T::ROOMS + b % T::ROOMS) * T::BOX;
        if (elect_one())
            copies_out_wait<T::ROOMS - 1>(); /* what was in this room before has left */
        __syncwarp();
#pragma unroll
        for (int c = 0; c < 8; c += 2) {
            uint32_t r[4];
#pragma unroll
            for (int e = 0; e < 4; e++) {
                r[e] = pair(i, (j + c + e / 2) * 4 + e % 2 * 2);
            }
            store_matrices(box + lane % 16 * 128 + ((c + lane / 16) ^ lane % 8) * 16, r);
        }
        fence_async();
        __syncwarp();
        const int rows = T::OWN_M * (warp / 4) + i * 64 + warp % 4 * 16;
        if (elect_one()) copy_box_out(map, row + rows, column + j * 8, box);
    }
};

/* Gives a stage back, by a warpgroup: to all blocks that share B, once they have started. */
template <class T> struct HalfRelease {
    bool met = T::SHARE == 1;
    __device__ __forceinline__ void operator()(uint32_t empty) {
        const int thread = threadIdx.x % 128;
        if (!met) cluster_wait();
        met = true;
        if (T::SHARE > 1) {
            if (thread < T::SHARE) bar_arrive_at(empty, thread);
        } else if (thread == 0)
            bar_arrive(empty);
    }
};

/* Multiplies, by a warpgroup, and stores the sums, unless others share the tile. */
template <class S, class T>
__device__ __forceinline__ void half_multiply(HalfRing<T> ring, const HalfWork<T> &work, int row,
                                              int column, __half *out, HalfSums<T> &sums) {
    const int group = __shfl_sync(~0u, threadIdx.x / 128, 0), thread = threadIdx.x % 128;
    const int rows = T::APART || T::BESIDE ? 0 : group * T::OWN_M; /* of the tile, before its own */
    HalfRelease<T> release;
    const uint32_t turns = ring.base + T::TURNS;
    int turn = 0; /* how many this warpgroup has had */
    if (T::APART && group) ring.skip(T::SLABS);
    for (int tile = work.first + (T::APART ? group * work.step : 0); tile < T::TILES;
         tile += T::APART ? 2 * work.step : work.step) {
        uint32_t used = 0;
        /* The other has seen all slabs of the tile before. */
        if (T::APART && group + turn > 0) bar_wait(turns + !group * 8, (turn + group - 1) & 1);
        for (int k = 0; k < T::SLABS; k++, ring.next()) {
            bar_wait(ring.full(), ring.parity);
            half_slab<T>(sums, ring.a() + rows * 128, ring.b() + column * 128, k);
            wgmma_wait<1>();
            if (k > 0) release(used);
            used = ring.empty();
        }
        if (T::APART && thread == 0) bar_arrive(turns + group * 8);
        wgmma_wait<0>();
        release(used);
        if (T::APART) ring.skip(T::SLABS), turn++;
        if (!T::REDUCES)
            half_store<S, T>(out, work.row(tile) + row, work.column(tile) + column, sums);
    }
}

template <int N, int R> __device__ __forceinline__ void half_hold(float (&sums)[N][R]) {
#pragma unroll
    for (int i = 0; i < N; i++) wgmma_hold(sums[i]);
}

/* The same, but a tile is stored, box by box, while products add up the next: of two sets of sums
 * one is stored, or, where registers have no room for two, the one as halves. */
template <class S, class T>
__device__ __forceinline__ void half_multiply_laps(HalfRing<T> ring, const HalfWork<T> work,
                                                   const TensorMap *map, const HalfLast &shared,
                                                   __half *out, float4 *scratch) {
    const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
    HalfBoxes<S, T> boxes = {map, ring.base + T::SUMS, 0, 0};
    HalfRelease<T> release;
    uint32_t used = 0;
    /* Adds a slab, and gives back that before it, which is multiplied then. */
    auto slab = [&](HalfSums<T> &sums, int k) {
        bar_wait(ring.full(), ring.parity);
        half_slab<T>(sums, ring.a() + group * T::OWN_M * 128, ring.b(), k);
        wgmma_wait<1>();
        if (used) release(used);
        used = ring.empty(), ring.next();
    };
    auto place = [&](int tile) { boxes.row = work.row(tile), boxes.column = work.column(tile); };
    auto finish = [&](HalfSums<T> &sums, int tile) {
        wgmma_wait<0>();
        release(used);
        used = 0;
        half_hold(sums);
        place(tile);
    };
    auto store = [&](int b, const HalfSums<T> &sums) {
        boxes.store(b, [&](int i, int at) { return half_pair(sums[i][at], sums[i][at + 1]); });
    };
    const int tiles = T::SHARES_LAST ? shared.whole : T::TILES;
    HalfSums<T> sums;
    if constexpr (T::OWN_N > 192) {
        uint32_t packed[T::OWN_M / 64][T::OWN_N / 4] = {};
        auto store_packed = [&](int b) {
            boxes.store(b, [&](int i, int at) { return packed[i][at / 2]; });
        };
        for (int tile = work.first; tile < tiles; tile += work.step) {
#pragma unroll
            for (int b = 0; b < T::BOXES; b++) {
                if (b < T::SLABS) slab(sums, b);
                if (tile > work.first) store_packed(b);
            }
            for (int k = T::BOXES; k < T::SLABS; k++) slab(sums, k);
            finish(sums, tile);
#pragma unroll
            for (int i = 0; i < T::OWN_M / 64; i++)
#pragma unroll
                for (int at = 0; at < T::OWN_N / 2; at += 2)
                    packed[i][at / 2] = half_pair(sums[i][at], sums[i][at + 1]);
        }
#pragma unroll
        for (int b = 0; b < T::BOXES; b++) store_packed(b);
    } else {
        /* Adds up a tile while the one before is stored. */
        auto lap = [&](HalfSums<T> &sums, HalfSums<T> &stored, int tile) {
            if (tile > work.first) place(tile - work.step);
#pragma unroll
            for (int b = 0; b < T::BOXES; b++) {
                if (b < T::SLABS) slab(sums, b);
                if (b == 0) half_hold(stored);
                if (tile > work.first) store(b, stored);
            }
            for (int k = T::BOXES; k < T::SLABS; k++) slab(sums, k);
        };
        auto last = [&](HalfSums<T> &sums, int tile) {
            finish(sums, tile);
#pragma unroll
            for (int b = 0; b < T::BOXES; b++) store(b, sums);
        };
        HalfSums<T> others;
        for (int tile = work.first;; tile += 2 * work.step) {
            const int next = tile + work.step;
            lap(sums, others, tile);
            if (next >= tiles) {
                last(sums, tile);
                break;
            }
            lap(others, sums, next);
            if (next + work.step >= tiles) {
                last(others, next);
                break;
            }
        }
    }
    if constexpr (T::SHARES_LAST) {
        half_each_piece<T>(shared, work.first, [&](int tile, int from, int to, int piece) {
            for (int k = from; k < to; k++) slab(sums, k - from);
            finish(sums, shared.whole + tile);
            half_leave_piece<T>(scratch, shared, work, tile, piece, sums);
        });
        half_add_pieces<S, T>(scratch, shared, work, out);
    }
    if (elect_one()) copies_out_wait<0>(); /* before the memory is given back */
}

/* out (M x N) = a (M x K) * bt (N x K) transposed. */
template <class S, class T>
__global__ void __launch_bounds__(T::THREADS, 1)
    half_kernel(const __grid_constant__ HalfMaps maps, const HalfLast last,
                __half *__restrict__ out, float4 *scratch, bool meet) {
    extern __shared__ __align__(1024) unsigned char memory[];
    const HalfWork<T> work;
    HalfRing<T> ring = {shared_address(memory)};
    if (threadIdx.x == T::MULTIPLIERS) map_prefetch(&maps.a), map_prefetch(&maps.bt);
    if (T::LAPS && threadIdx.x == T::MULTIPLIERS + 32) map_prefetch(&maps.out);
    if (threadIdx.x == 0) {
        HalfRing<T> r = ring;
        for (int s = 0; s < T::STAGES; s++, r.next()) {
            bar_init(r.full(), 1);
            bar_init(r.empty(), (T::APART ? 1 : T::GROUPS) * T::SHARE);
        }
        if (T::SPLIT > 1) {
            bar_init(ring.base + T::SENT, 1);
            bar_expect(ring.base + T::SENT, T::SUM_BYTES);
        }
        if (T::APART) bar_init(ring.base + T::TURNS, 1), bar_init(ring.base + T::TURNS + 8, 1);
        bar_init_done();
    }
    __syncthreads();
    if (T::CLUSTER > 1) cluster_arrive();
    if (threadIdx.x >= T::MULTIPLIERS) {
        registers_give<T::FETCHER>();
        half_fetch<T>(ring, work, maps, last);
        if (T::SPLIT > 1) cluster_wait(), sent_wait(ring.base + T::SENT);
    } else {
        registers_take<T::MULTIPLIER>();
        if constexpr (T::LAPS) {
            half_multiply_laps<S, T>(ring, work, &maps.out, last, out, scratch);
        } else {
            const int group = T::APART ? 0 : __shfl_sync(~0u, threadIdx.x / 128, 0);
            const int column = T::BESIDE ? group * T::OWN_N : 0; /* of the tile: the warp's first */
            const int row = (T::BESIDE ? 0 : group * T::OWN_M) + threadIdx.x % 128 / 32 * 16;
            HalfSums<T> sums;
            half_multiply<S, T>(ring, work, row, column, out, sums);
            if constexpr (T::REDUCES) half_finish<S, T>(work, memory, sums, meet, out, scratch);
        }
    }
}

/* Enqueues the product. `scratch` has T::SCRATCH bytes. */
template <class S, class T>
static void half_product(const __half *a, const __half *bt, __half *out, void *scratch,
                         cudaStream_t stream) {
    int device = 0, processors = HALF_PROCESSORS;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (processors > HALF_PROCESSORS) processors = HALF_PROCESSORS; /* scratch is for so many */
    const int at_once = processors / T::SHARE;
    const int clusters = T::REDUCES || T::TILES < at_once ? T::TILES * T::PARTS : at_once;
    const int blocks = clusters * T::CLUSTER;
    const bool meet = T::PARTS > 1 && run_at_once<T::CLUSTER>(blocks, processors);
    const bool together = meet || T::SHARES_LAST || T::IN_STEP;
    const HalfLast last = half_last(T::TILES, T::SLABS, at_once);
    const HalfMaps maps = {map_of(a, S::M, S::K, T::M, T::LINES),
                           map_of(bt, S::N, S::K, T::N / T::SHARE, T::LINES),
                           map_of(out, S::M, S::N, 16)};
    launch_sized<T::CLUSTER>(half_kernel<S, T>, blocks, T::THREADS, T::BYTES, stream, together,
                             maps, last, out, (float4 *)scratch, meet);
}

} // namespace kp
