/* product_hopper.cuh: how product.cuh multiplies with sm_90a's instructions.
 *
 * A block's first eight warps, two warpgroups, multiply 128 rows each, their part of A in
 * registers; the others fetch. The blocks of a cluster share what they fetch of B: each copies
 * a part to all. Barriers in shared memory say which stage is full and which empty.
 * Reaches: see product.cuh. */
#pragma once
#include "hopper_f16.cuh"
#include "product_parts.cuh"

namespace kp {

/* The order in which the depths of a slab are multiplied is free, but the same for A and B. It is
 * chosen so that a thread finds its part of A in 8- or 16-byte pieces: the depth that slot `slot`
 * holds, in the passes in TF32 and in those in bf16. */
template <bool A_ALONG_DEPTH> __host__ __device__ constexpr int depth_of_slot(int slot) {
    return A_ALONG_DEPTH ? slot % 8 * 4 + slot / 8 : slot;
}

template <bool A_ALONG_DEPTH> __host__ __device__ constexpr int depth_of_half_slot(int slot) {
    const int step = slot / 16, upper = slot / 8 % 2, t = slot % 8 / 2, odd = slot % 2;
    return A_ALONG_DEPTH ? step * 16 + t * 4 + upper * 2 + odd
                         : upper * 16 + odd * 8 + step * 4 + t;
}

__device__ __forceinline__ float nearest_tf32(float v) {
    /* By hand: faster than cvt. Rounds halves away from zero; the NaN that arithmetic gives becomes
     * zero, so that the rest of an infinity is, and a NaN must stay in the rest. */
    return __uint_as_float((__float_as_uint(v) + 0x1000) & 0xffffe000);
}

/* Writes a block of B from a slab in shared memory: two halves of 128 bytes a column, in
 * wgmma_operand()'s order: the big parts of its 32 slots; then the rests or, with B_HALF, the 32
 * numbers and the 32 rests in bf16. 256 threads. */
template <class T, bool A_ALONG_DEPTH>
__device__ __forceinline__ void write_block(const float (&slab)[TILE_K][T::N + 1], float *block) {
#pragma unroll
    for (int r = 0; r < (T::N + 31) / 32; r++) {
        const int f = threadIdx.x + r * 256, n = f / 8, piece = f % 8;
        if (T::N % 32 && n >= T::N) break;
        float big[4];
        uint32_t rest[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const float x = slab[depth_of_slot<A_ALONG_DEPTH>(piece * 4 + e)][n];
            big[e] = nearest_tf32(x);
            if (!T::B_HALF) rest[e] = __float_as_uint(x == x ? nearest_tf32(x - big[e]) : x);
        }
#pragma unroll
        for (int e = 0; T::B_HALF && e < 4; e++) {
            const int slot = piece % 4 * 8 + e * 2;
            float x = slab[depth_of_half_slot<A_ALONG_DEPTH>(slot)][n];
            float y = slab[depth_of_half_slot<A_ALONG_DEPTH>(slot + 1)][n];
            if (piece >= 4) x -= nearest_tf32(x), y -= nearest_tf32(y);
            rest[e] = pack_bf16(x, y);
        }
        float4 *to = (float4 *)block + n * 8 + (piece ^ n % 8);
        to[0] = make_float4(big[0], big[1], big[2], big[3]);
        *(uint4 *)(to + T::PART_BYTES / 16) = make_uint4(rest[0], rest[1], rest[2], rest[3]);
    }
}

/* Splits a block of B that fetch_columns() copied, where it lies, into what write_block() writes.
 * Each warp of 128 threads splits the columns that it copied; a lane takes all that shares its
 * pieces of 16 bytes: v[i][e] is depth e of piece own(i). */
template <class T, bool A_ALONG_DEPTH>
__device__ __forceinline__ void split_block(unsigned char *block) {
    static_assert(T::B_HALF && T::N % 64 == 0, "rests in bf16; whole warps of columns");
    constexpr int PIECES = A_ALONG_DEPTH ? 4 : 2, AT_ONCE = 4 * PIECES; /* columns */
    const int lane = threadIdx.x % 32, set = lane / AT_ONCE;
    const auto own = [&](int i) {
        return A_ALONG_DEPTH ? set * 4 + i : set / 2 * 4 + set % 2 + i * 2;
    };
    const int first = threadIdx.x % 128 / 32 * (T::N / 4) + lane % AT_ONCE;
    const int swap = first % 8; /* of all its columns */
    __syncwarp();
#pragma unroll 1
    for (int n = first; n < first + T::N / 4; n += AT_ONCE) {
        float4 *big = (float4 *)block + n * 8;
        uint4 *rest = (uint4 *)(big + T::PART_BYTES / 16);
        float v[PIECES][4];
#pragma unroll
        for (int i = 0; i < PIECES; i++) {
            const float4 f = big[own(i) ^ swap];
            v[i][0] = f.x, v[i][1] = f.y, v[i][2] = f.z, v[i][3] = f.w;
        }
        const auto pack = [&](int at) {
#pragma unroll
            for (int h = 0; h < PIECES / 2; h++) {
                uint32_t to[4];
#pragma unroll
                for (int t = 0; t < 4; t++)
                    to[t] = A_ALONG_DEPTH ? pack_bf16(v[t][2 * h], v[t][2 * h + 1])
                                          : pack_bf16(v[0][t], v[1][t]);
                const int piece = A_ALONG_DEPTH ? set * 2 + h : set % 2 * 2 + set / 2;
                rest[(at + piece) ^ swap] = make_uint4(to[0], to[1], to[2], to[3]);
            }
        };
        pack(0);
        __syncwarp(); /* all have read what others write over */
#pragma unroll
        for (int i = 0; i < PIECES; i++) {
            float b[4];
#pragma unroll
            for (int e = 0; e < 4; e++) {
                float &x = A_ALONG_DEPTH ? v[e][i] : v[i][e];
                b[e] = nearest_tf32(x), x -= b[e];
            }
            big[(A_ALONG_DEPTH ? set + 2 * i : own(i)) ^ swap] =
                make_float4(b[0], b[1], b[2], b[3]);
        }
        pack(4);
    }
}

/* What tile i of a thread multiplies with slots 8 s..8 s+7: rows row(i, 0), row(i, 1), slots
 * lane % 4 and lane % 4 + 4, as [s][h + 2 * upper slot]. */
template <class A>
__device__ __forceinline__ void load_part(const float *slab, int i, float (&v)[4][4]) {
    const int t = threadIdx.x % 4, row = first_row<A::ALONG_DEPTH>();
    if constexpr (A::ALONG_DEPTH) {
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int upper = 0; upper < 2; upper++) {
                const int r = row + (2 * i + h) * 8, k = (t + upper * 4) * 4;
                const float4 f = *(const float4 *)(slab + AlongSlab::word(r, k));
                v[0][h + 2 * upper] = f.x;
                v[1][h + 2 * upper] = f.y;
                v[2][h + 2 * upper] = f.z;
                v[3][h + 2 * upper] = f.w;
            }
    } else {
#pragma unroll
        for (int s = 0; s < 4; s++)
#pragma unroll
            for (int upper = 0; upper < 2; upper++) {
                const int k = s * 8 + t + upper * 4;
                const float2 f = *(const float2 *)(slab + AcrossSlab::word(row + 2 * i, k));
                v[s][2 * upper] = f.x;
                v[s][2 * upper + 1] = f.y;
            }
    }
}

/* What a thread multiplies, in bf16: step u of 16 slots, from load_part's steps of 8. */
__device__ __forceinline__ void pack_all(const float (&v)[4][4], uint32_t (&to)[2][4]) {
#pragma unroll
    for (int u = 0; u < 2; u++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            to[u][e] = pack_bf16(v[e / 2 * 2][e % 2 + 2 * u], v[e / 2 * 2 + 1][e % 2 + 2 * u]);
}

/* What a thread multiplies of tile i of a slab, split: for TF32, small unless A_HALF, and for bf16,
 * half if B_HALF and half_small if A_HALF. */
struct Splits {
    uint32_t big[4][4], small[4][4], half[2][4], half_small[2][4];
};

template <class T> __device__ __forceinline__ void split_part(float (&v)[4][4], Splits &to) {
    if (T::B_HALF) pack_all(v, to.half);
#pragma unroll
    for (int s = 0; s < 4; s++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const float b = nearest_tf32(v[s][e]);
            to.big[s][e] = __float_as_uint(b);
            v[s][e] -= b;
            if (!T::A_HALF) to.small[s][e] = __float_as_uint(v[s][e]); /* TF32's digits count */
        }
    if (T::A_HALF) pack_all(v, to.half_small);
}

/* Starts sum = the product of one slab, or with ADD += that; its block of B is at `big`. That is
 * GROUPS groups of products: of two the first is that of the rests. */
template <class T, bool ADD, int GROUPS = 1>
__device__ __forceinline__ void start_slab(const Splits &a, uint64_t big, float (&sum)[T::N / 2]) {
    using OnTf32 = Wgmma<Tf32, T::N>;
    using OnBf16 = Wgmma<Bf16, T::N>;
    constexpr uint64_t NEXT = 32 >> 4;
    const uint64_t rest = big + (T::PART_BYTES >> 4);
    wgmma_begin();
    if constexpr (T::A_HALF) {
        OnBf16::template multiply<ADD>(sum, a.half_small[0], rest);
        OnBf16::template multiply<true>(sum, a.half_small[1], rest + NEXT);
    } else {
        OnTf32::template multiply<ADD>(sum, a.small[0], big);
#pragma unroll
        for (int s = 1; s < 4; s++)
            OnTf32::template multiply<true>(sum, a.small[s], big + s * NEXT);
    }
    if constexpr (T::B_HALF) {
        OnBf16::template multiply<true>(sum, a.half[0], rest + 2 * NEXT);
        OnBf16::template multiply<true>(sum, a.half[1], rest + 3 * NEXT);
    } else {
#pragma unroll
        for (int s = 0; s < 4; s++) OnTf32::template multiply<true>(sum, a.big[s], rest + s * NEXT);
    }
    if (GROUPS > 1) wgmma_end();
#pragma unroll
    for (int s = 0; s < 4; s++) OnTf32::template multiply<true>(sum, a.big[s], big + s * NEXT);
    wgmma_end();
}

template <class S, class T, class A>
__device__ __forceinline__ void fetch_all(const A &a, const float *blocks, uint32_t stages) {
    constexpr int STAGES = T::template stages<A>(), STAGE = T::template stage<A>();
    constexpr int COLUMNS = (S::COLUMNS + T::N - 1) / T::N;
    const uint32_t full = stages + STAGES * STAGE, empty = full + STAGES * 8;
    const int rank = T::CLUSTER > 1 ? cluster_rank() : 0;
    int stage = 0, turn = 1; /* of the barriers: the first wait is for nothing */
    int others =
        T::FETCHERS > 1 ? threadIdx.x / 128 - 2 : 0; /* slabs until this warpgroup's next */
    for (int index = blockIdx.x / T::CLUSTER; index < tiles_of<S, T>();
         index += gridDim.x / T::CLUSTER) {
        const TileAt at = find_tile<S, T>(index, T::CLUSTER > 1 ? cluster_rank() : 0);
        const typename A::Place place = a.place(at.batch, at.m * TILE_M);
        const long long block = ((S::B_BATCHES > 1 ? at.batch : 0) * COLUMNS + at.n) * S::SLABS;
        const float *b =
            blocks + (block + at.first) * T::B_WORDS + rank * (T::B_WORDS / T::CLUSTER);
        for (int slab = at.first; slab < at.end; slab++, b += T::B_WORDS) {
            if (others == 0) {
                const uint32_t to = stages + stage * STAGE;
                bar_wait(empty + stage * 8, turn);
                if (threadIdx.x % 128 == 0) {
                    bar_expect(full + stage * 8, T::B_BYTES);
                    copy_bulk<T::CLUSTER>(to + rank * (T::B_BYTES / T::CLUSTER), b,
                                          T::B_BYTES / T::CLUSTER, full + stage * 8);
                }
                a.fetch(place, to + T::B_BYTES, slab);
                bar_arrive_copied(full + stage * 8);
            }
            others = others ? others - 1 : T::FETCHERS - 1;
            if (++stage == STAGES) stage = 0, turn ^= 1;
        }
    }
}

/* The same with B as it is in memory: a slab is split once it has come, while the next one comes.
 */
template <class S, class T, class A, class B>
__device__ __forceinline__ void fetch_and_split(const A &a, const B &b, unsigned char *memory,
                                                uint32_t stages) {
    static_assert(T::CLUSTER == 1 && T::FETCHERS == 1 && B::ALONG_DEPTH);
    constexpr int STAGES = T::template stages<A>(), STAGE = T::template stage<A>();
    const uint32_t full = stages + STAGES * STAGE, empty = full + STAGES * 8;
    int stage = 0, turn = 1, before = -1; /* the stage to split */
    auto split = [&] {
        split_block<T, A::ALONG_DEPTH>(memory + before * STAGE);
        fence_async();
        bar_arrive(full + before * 8);
    };
    for (int index = blockIdx.x; index < tiles_of<S, T>(); index += gridDim.x) {
        const TileAt at = find_tile<S, T>(index, 0);
        const typename A::Place rows = a.place(at.batch, at.m * TILE_M);
        const typename B::Place columns = b.template column_place<T::N>(at.batch, at.n * T::N);
        for (int slab = at.first; slab < at.end; slab++) {
            const uint32_t to = stages + stage * STAGE;
            bar_wait(empty + stage * 8, turn);
            b.template fetch_columns<T::N>(columns, to, slab);
            a.fetch(rows, to + T::B_BYTES, slab);
            bar_arrive_copied(full + stage * 8);
            copies_close();
            if (before >= 0) {
                copies_wait_but<1>();
                split();
            }
            before = stage;
            if (++stage == STAGES) stage = 0, turn ^= 1;
        }
    }
    copies_wait();
    if (before >= 0) split();
}

/* The ring of stages, as one that multiplies goes round it. */
template <class T, class A> struct Stages {
    static constexpr int COUNT = T::template stages<A>(), BYTES = T::template stage<A>();
    const unsigned char *memory;
    uint32_t first; /* the same as an address */
    int stage, turn;
    __device__ __forceinline__ int second() const { return stage + 1 == COUNT ? 0 : stage + 1; }
    __device__ __forceinline__ int second_turn() const { return turn ^ (second() == 0); }
    __device__ __forceinline__ void next() {
        if (++stage == COUNT) stage = 0, turn ^= 1;
    }
    __device__ __forceinline__ void wait(int at, int parity) const {
        bar_wait(first + COUNT * BYTES + at * 8, parity);
    }
    __device__ __forceinline__ void done(int at) const {
        bar_arrive_warp<T::CLUSTER>(first + COUNT * BYTES + (COUNT + at) * 8);
    }
    __device__ __forceinline__ const float *slab(int at) const {
        return (const float *)(memory + at * BYTES + T::B_BYTES);
    }
    __device__ __forceinline__ uint64_t block(int at) const {
        return wgmma_operand(first + at * BYTES);
    }
};

/* part += the product of a slab, or of a pair, half after half: a half's sum needs the registers
 * that the other half's would take. */
template <class T, class A>
__device__ __forceinline__ void multiply_in_turn(Stages<T, A> &ring, bool pair,
                                                 Part<A::ALONG_DEPTH, T::N> &part) {
    const int second = ring.second();
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float sum[T::N / 2];
        auto multiply = [&](auto add, int at, int parity) {
            float v[4][4];
            Splits a;
            if (i == 0) ring.wait(at, parity);
            load_part<A>(ring.slab(at), i, v);
            split_part<T>(v, a);
            start_slab<T, add.value>(a, ring.block(at), sum);
            wgmma_wait<0>();
            if (i == 1) ring.done(at);
        };
        multiply(std::false_type(), ring.stage, ring.turn);
        if (pair) multiply(std::true_type(), second, ring.second_turn());
#pragma unroll
        for (int j = 0; j < T::N / 2; j++) part.v[i][j] += sum[j];
    }
    ring.next();
    if (pair) ring.next();
}

/* part += the product of RUN slabs, for narrow tiles: a half is split while the other is
 * multiplied. Nothing is under way at the end: ptxas makes products wait for each other where sums
 * go round a loop (C7514). Two groups a half where registers do not suffice for two halves' parts
 * of A (one rest in bf16, or 16-byte pieces): a half is split once the rests of the other are done
 * with. */
template <int RUN, class T, class A>
__device__ __forceinline__ void multiply_ahead(Stages<T, A> &ring,
                                               Part<A::ALONG_DEPTH, T::N> &part) {
    constexpr int HALF = T::N == 64 && (A::ALONG_DEPTH || T::A_HALF != T::B_HALF) ? 2 : 1;
    float sum[2][T::N / 2];
    auto start = [&](auto add, int at, int i) {
        float v[4][4];
        Splits a;
        load_part<A>(ring.slab(at), i, v);
        if (HALF > 1 && (add.value || i)) wgmma_wait<1>();
        split_part<T>(v, a);
        start_slab<T, add.value, HALF>(a, ring.block(at), sum[i]);
        wgmma_wait<HALF>(); /* the half before; and ptxas splits nothing amid these products */
    };
    const int last = RUN > 1 ? ring.second() : ring.stage;
    ring.wait(ring.stage, ring.turn);
    start(std::false_type(), ring.stage, 0);
    start(std::false_type(), ring.stage, 1);
    if constexpr (RUN > 1) {
        ring.wait(last, ring.second_turn());
        start(std::true_type(), last, 0);
        ring.done(ring.stage);
        start(std::true_type(), last, 1);
        ring.next();
    }
#pragma unroll
    for (int j = 0; j < T::N / 2; j++) part.v[0][j] += sum[0][j];
    wgmma_wait<0>();
    ring.done(last);
#pragma unroll
    for (int j = 0; j < T::N / 2; j++) part.v[1][j] += sum[1][j];
    ring.next();
}

template <class S, class T, class A, class Store>
__device__ __forceinline__ void multiply_all(const Store &store, const unsigned char *memory,
                                             uint32_t stages) {
    Stages<T, A> ring = {memory, stages, 0, 0};
    for (int index = blockIdx.x / T::CLUSTER; index < tiles_of<S, T>();
         index += gridDim.x / T::CLUSTER) {
        const TileAt at = find_tile<S, T>(index, T::CLUSTER > 1 ? cluster_rank() : 0);
        Part<A::ALONG_DEPTH, T::N> part = {};
        int slab = at.first;
        if constexpr (T::N <= 64) {
            for (; slab + T::RUN <= at.end; slab += T::RUN) multiply_ahead<T::RUN>(ring, part);
            if (T::RUN > 1 && slab < at.end) multiply_ahead<1>(ring, part);
        } else {
            for (; slab < at.end; slab += T::RUN)
                multiply_in_turn(ring, T::RUN > 1 && slab + 1 < at.end, part);
        }
        store.tile(part, at.batch, at.m * TILE_M + first_row<A::ALONG_DEPTH>(),
                   at.n * T::N + threadIdx.x % 4 * 2);
    }
}

/* The block's whole work; b is what split_kernel() wrote, or the operand itself. */
template <class S, class T, class A, class B, class Store>
__device__ __forceinline__ void run_block(const A &a, const B &b, const Store &store,
                                          unsigned char *memory) {
    constexpr bool SPLIT = std::is_pointer_v<B>;
    constexpr int STAGES = T::template stages<A>(), STAGE = T::template stage<A>();
    const uint32_t stages = shared_address(memory), full = stages + STAGES * STAGE;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            bar_init(full + s * 8, SPLIT ? 128 + 1 : 256);
            bar_init(full + (STAGES + s) * 8, 8 * T::CLUSTER * WARP_ARRIVALS);
        }
        bar_init_done();
    }
    if (T::CLUSTER > 1)
        cluster_sync();
    else
        __syncthreads();
    if (threadIdx.x >= 256) {
        registers_give<T::FETCHER + (SPLIT ? 0 : 16)>();
        if constexpr (SPLIT)
            fetch_all<S, T>(a, b, stages);
        else
            fetch_and_split<S, T>(a, b, memory, stages);
    } else {
        registers_take<T::MULTIPLIER - (SPLIT ? 0 : 8)>();
        multiply_all<S, T, A>(store, memory, stages);
    }
    if (T::CLUSTER > 1) cluster_sync(); /* nobody leaves while others still send to it */
}

} // namespace kp
