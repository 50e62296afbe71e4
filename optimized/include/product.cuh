/* product.cuh: C = A * B at fp32 accuracy on Hopper's tensor cores, for any operands.
 *
 * Idea: a number is split in two: big, the nearest of TF32, and small, the rest. Three passes
 * compute small*B + A*small + big*big, the first two in bf16 (Bf16Rest: twice as fast, a product's
 * error is about 2^-20) or in TF32 (Tf32Rest: 2^-22). The tensor cores cut off digits while they
 * add, so they add up only 32 of the depth (the summed axis), a slab; the sums of slabs are added
 * in fp32. An element that is infinite, or rounds to it, makes its sums NaN.
 *
 * A block computes tiles of 256 rows (of A) by N columns (of B): two warpgroups multiply 128 x N
 * each, a third fetches. A is read as it is and split in registers. B is split beforehand, by
 * split_kernel, into scratch memory, in blocks of N columns by a slab, laid out as the tensor cores
 * read them, so that one bulk copy fetches what a tile needs: the smaller operand should be B. Two
 * blocks (a cluster) work on neighbours along the rows and share what they fetch of B.
 *
 * What limits it: 2 flops an element of depth at the rates of TF32 (1) and bf16 (2); the fp32 sums
 * of slabs cost about a third of that again (NOTES.md).
 *
 * The contract (operands.cuh, stores.cuh and convolve.cuh have those that tasks need):
 *
 * Sizes (Product): constants ROWS, COLUMNS, SLABS, BATCHES; B_BATCHES, 1 or BATCHES; BATCH_FASTEST,
 *   whether a tile's batches are computed together; and first_slab() and end_slab(): what of the
 *   depth is not zero for (batch, first row, row behind the last, first column, column behind).
 * A: ALONG_DEPTH, whether its neighbours in memory run along the depth; SLAB_BYTES;
 *   Place place(batch, row): what one of the 128 threads keeps of the tile from `row` on;
 *   void fetch(place, to, slab): starts its copies of the slab, zeros beyond the edges:
 *   AlongSlab or AcrossSlab say where.
 * B: ALONG_DEPTH; float at(batch, column, slab, k): an element, zero beyond the edges.
 * Store: void tile(const Part &part, batch, row, column): a thread's part of a tile.
 *
 * All are kernel parameters: no padding, whose bytes would differ between two recordings. */
#pragma once
#include "hopper.cuh"

namespace kp {

constexpr int TILE_M = 256, TILE_K = 32, PRODUCT_THREADS = 384;

/* How the rests are multiplied. */
struct Bf16Rest {
    static constexpr bool HALF = true;
};
struct Tf32Rest {
    static constexpr bool HALF = false;
};

/* A tile of N columns; CLUSTER blocks share B. */
template <int N_, class Rest = Bf16Rest, int CLUSTER_ = 2> struct Tile {
    static constexpr int N = N_, CLUSTER = CLUSTER_;
    static constexpr bool HALF = Rest::HALF;
    static constexpr int PART_BYTES = N * TILE_K * 4; /* of the big parts of B, and of the rests */
    static constexpr int B_BYTES = 2 * PART_BYTES, B_WORDS = B_BYTES / 4;
    /* Registers of a thread that multiplies, and of one that fetches: 512 for the three. */
    static constexpr int MULTIPLIER = N <= 64 ? 208 : N <= 96 ? 224 : 240;
    static constexpr int FETCHER = 512 - 2 * MULTIPLIER;
    template <class A> static __host__ __device__ constexpr int stage() {
        return B_BYTES + A::SLAB_BYTES;
    }
    template <class A> static __host__ __device__ constexpr int stages() {
        return min_of(5, (226 * 1024) / (stage<A>() + 16));
    }
    static __host__ __device__ constexpr int min_of(int a, int b) { return a < b ? a : b; }
    static_assert(N == 16 || N == 32 || N == 48 || N == 64 || N == 96 || N == 128,
                  "columns of a tile");
};

/* Plain sizes: all of the depth for every tile. */
template <long long ROWS_, int COLUMNS_, int DEPTH, int BATCHES_ = 1, bool ONE_B = BATCHES_ == 1>
struct Product {
    static constexpr long long ROWS = ROWS_;
    static constexpr int COLUMNS = COLUMNS_, SLABS = (DEPTH + TILE_K - 1) / TILE_K;
    static constexpr int BATCHES = BATCHES_, B_BATCHES = ONE_B ? 1 : BATCHES_;
    static constexpr bool BATCH_FASTEST = false;
    static __device__ __forceinline__ int first_slab(int, int, int, int, int) { return 0; }
    static __device__ __forceinline__ int end_slab(int, int, int, int, int) { return SLABS; }
};

/* ---- what lies where ---- */

/* A slab of A in shared memory, neighbours along the depth: a row of 32 words has its upper and
 * lower half exchanged if it is odd, for the banks. */
struct AlongSlab {
    static constexpr bool ALONG_DEPTH = true;
    static constexpr int SLAB_BYTES = TILE_M * TILE_K * 4;
    static __device__ __forceinline__ constexpr int word(int row, int k) {
        return row * TILE_K + (k ^ row % 2 * 16);
    }
};

/* Neighbours along the rows. */
struct AcrossSlab {
    static constexpr bool ALONG_DEPTH = false;
    static constexpr int LINE = TILE_M + 8; /* 8 more, for the banks */
    static constexpr int SLAB_BYTES = TILE_K * LINE * 4;
    static __device__ __forceinline__ constexpr int word(int row, int k) { return k * LINE + row; }
};

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

/* ---- splitting ---- */

__device__ __forceinline__ float nearest_tf32(float v) {
    /* By hand: faster than cvt. Rounds halves away from zero; a NaN stays one in the rest. */
    return __uint_as_float((__float_as_uint(v) + 0x1000) & 0xffffe000);
}

/* B into blocks, ordered by batch, by N columns, by slab. A block has two halves of 128 bytes a
 * column, in wgmma_operand()'s order: the big parts of its 32 slots; then the rests or, with HALF,
 * the 32 numbers and the 32 rests in bf16. Grid: x the slabs, y the columns' blocks, z batches. */
template <class T, bool A_ALONG_DEPTH, class B>
__global__ void __launch_bounds__(256) split_kernel(B b, float *__restrict__ blocks) {
    __shared__ float slab[TILE_K][T::N + 1];
    constexpr int EACH = T::N * TILE_K / 256;
    float v[EACH];
#pragma unroll
    for (int r = 0; r < EACH; r++) {
        const int f = threadIdx.x + r * 256;
        const int n = B::ALONG_DEPTH ? f / TILE_K : f % T::N;
        const int k = B::ALONG_DEPTH ? f % TILE_K : f / T::N;
        v[r] = b.at(blockIdx.z, blockIdx.y * T::N + n, blockIdx.x, k);
    }
#pragma unroll
    for (int r = 0; r < EACH; r++) {
        const int f = threadIdx.x + r * 256;
        const int n = B::ALONG_DEPTH ? f / TILE_K : f % T::N;
        const int k = B::ALONG_DEPTH ? f % TILE_K : f / T::N;
        slab[k][n] = v[r];
    }
    __syncthreads();
    const long long at = (blockIdx.z * (long long)gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    float *block = blocks + at * T::B_WORDS;
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
            if (!T::HALF) rest[e] = __float_as_uint(nearest_tf32(x - big[e]));
        }
#pragma unroll
        for (int e = 0; T::HALF && e < 4; e++) {
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

/* ---- the kernel ---- */

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

/* sum = the product of one slab, rows of tile i; the block of B is at `big`. */
template <class T, class A>
__device__ __forceinline__ void multiply_slab(const float *slab, uint64_t big, int i,
                                              float (&sum)[T::N / 2]) {
    using OnTf32 = Wgmma<Tf32, T::N>;
    using OnBf16 = Wgmma<Bf16, T::N>;
    constexpr uint64_t NEXT = 32 >> 4;
    const uint64_t rest = big + (T::PART_BYTES >> 4);
    float v[4][4];
    uint32_t a_big[4][4], a_half[2][4], a_small[4][4];
    load_part<A>(slab, i, v);
    if (T::HALF) pack_all(v, a_half);
#pragma unroll
    for (int s = 0; s < 4; s++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const float b = nearest_tf32(v[s][e]);
            a_big[s][e] = __float_as_uint(b);
            v[s][e] -= b;
            if (!T::HALF) a_small[s][e] = __float_as_uint(v[s][e]); /* the digits of TF32 count */
        }
    if constexpr (T::HALF) {
        uint32_t packed[2][4];
        pack_all(v, packed);
        wgmma_begin();
        OnBf16::template multiply<false>(sum, packed[0], rest);
        OnBf16::template multiply<true>(sum, packed[1], rest + NEXT);
        OnBf16::template multiply<true>(sum, a_half[0], rest + 2 * NEXT);
        OnBf16::template multiply<true>(sum, a_half[1], rest + 3 * NEXT);
    } else {
        wgmma_begin();
        OnTf32::template multiply<false>(sum, a_small[0], big);
#pragma unroll
        for (int s = 1; s < 4; s++)
            OnTf32::template multiply<true>(sum, a_small[s], big + s * NEXT);
#pragma unroll
        for (int s = 0; s < 4; s++) OnTf32::template multiply<true>(sum, a_big[s], rest + s * NEXT);
    }
#pragma unroll
    for (int s = 0; s < 4; s++) OnTf32::template multiply<true>(sum, a_big[s], big + s * NEXT);
    wgmma_end();
    wgmma_wait<0>();
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

/* Tile `index` of a cluster's list: panels of 8 rows of tiles, within which the rows vary fastest,
 * so that blocks at work together share what they read. */
template <class S, class T> __device__ __forceinline__ TileAt find_tile(int index) {
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
    if (T::CLUSTER > 1) at.m += cluster_rank();
    return at;
}

template <class S, class T, class A>
__device__ __forceinline__ void fetch_all(const A &a, const float *blocks, uint32_t stages) {
    constexpr int STAGES = T::template stages<A>(), STAGE = T::template stage<A>();
    constexpr int COLUMNS = (S::COLUMNS + T::N - 1) / T::N;
    const uint32_t full = stages + STAGES * STAGE, empty = full + STAGES * 8;
    const int rank = T::CLUSTER > 1 ? cluster_rank() : 0;
    int stage = 0, turn = 1; /* of the barriers: the first wait is for nothing */
    for (int index = blockIdx.x / T::CLUSTER; index < tiles_of<S, T>();
         index += gridDim.x / T::CLUSTER) {
        const TileAt at = find_tile<S, T>(index);
        const typename A::Place place = a.place(at.batch, at.m * TILE_M);
        const long long block = ((S::B_BATCHES > 1 ? at.batch : 0) * COLUMNS + at.n) * S::SLABS;
        const float *b =
            blocks + (block + at.first) * T::B_WORDS + rank * (T::B_WORDS / T::CLUSTER);
        for (int slab = at.first; slab < at.end; slab++, b += T::B_WORDS) {
            const uint32_t to = stages + stage * STAGE;
            bar_wait(empty + stage * 8, turn);
            if (threadIdx.x % 128 == 0) {
                bar_expect(full + stage * 8, T::B_BYTES);
                copy_bulk<T::CLUSTER>(to + rank * (T::B_BYTES / T::CLUSTER), b,
                                      T::B_BYTES / T::CLUSTER, full + stage * 8);
            }
            a.fetch(place, to + T::B_BYTES, slab);
            bar_arrive_copied(full + stage * 8);
            if (++stage == STAGES) stage = 0, turn ^= 1;
        }
    }
}

template <class S, class T, class A, class Store>
__device__ __forceinline__ void multiply_all(const Store &store, const unsigned char *memory,
                                             uint32_t stages) {
    constexpr int STAGES = T::template stages<A>(), STAGE = T::template stage<A>();
    const uint32_t full = stages + STAGES * STAGE, empty = full + STAGES * 8;
    int stage = 0, turn = 0;
    for (int index = blockIdx.x / T::CLUSTER; index < tiles_of<S, T>();
         index += gridDim.x / T::CLUSTER) {
        const TileAt at = find_tile<S, T>(index);
        Part<A::ALONG_DEPTH, T::N> part = {};
        float sum[T::N / 2];
        for (int slab = at.first; slab < at.end; slab++) {
            const float *from = (const float *)(memory + stage * STAGE + T::B_BYTES);
            const uint64_t big = wgmma_operand(stages + stage * STAGE);
            bar_wait(full + stage * 8, turn);
            multiply_slab<T, A>(from, big, 0, sum);
#pragma unroll
            for (int j = 0; j < T::N / 2; j++) part.v[0][j] += sum[j];
            multiply_slab<T, A>(from, big, 1, sum);
            bar_arrive_warp<T::CLUSTER>(empty + stage * 8);
#pragma unroll
            for (int j = 0; j < T::N / 2; j++) part.v[1][j] += sum[j];
            if (++stage == STAGES) stage = 0, turn ^= 1;
        }
        store.tile(part, at.batch, at.m * TILE_M + first_row<A::ALONG_DEPTH>(),
                   at.n * T::N + threadIdx.x % 4 * 2);
    }
}

template <class S, class T, class A, class Store>
__global__ void __cluster_dims__(T::CLUSTER, 1, 1) __launch_bounds__(PRODUCT_THREADS, 1)
    product_kernel(A a, const float *blocks, Store store) {
    extern __shared__ __align__(1024) unsigned char memory[];
    constexpr int STAGES = T::template stages<A>(), STAGE = T::template stage<A>();
    const uint32_t stages = shared_address(memory), full = stages + STAGES * STAGE;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            bar_init(full + s * 8, 128 + 1);
            bar_init(full + (STAGES + s) * 8, 8 * T::CLUSTER * WARP_ARRIVALS);
        }
        bar_init_done();
    }
    if (T::CLUSTER > 1)
        cluster_sync();
    else
        __syncthreads();
    if (threadIdx.x >= 256) {
        registers_give<T::FETCHER>();
        fetch_all<S, T>(a, blocks, stages);
    } else {
        registers_take<T::MULTIPLIER>();
        multiply_all<S, T, A>(store, memory, stages);
    }
    if (T::CLUSTER > 1) cluster_sync(); /* nobody leaves while others still send to it */
}

/* ---- host ---- */

/* Bytes of scratch for the split B. */
template <class S, class T> constexpr size_t split_bytes() {
    return (size_t)S::B_BATCHES * ((S::COLUMNS + T::N - 1) / T::N) * S::SLABS * T::B_BYTES;
}

/* Enqueues the splitting of b into `scratch` (split_bytes(), 16-byte aligned) and the product. */
template <class S, class T, class A, class B, class Store>
static void product(const A &a, const B &b, const Store &store, void *scratch,
                    cudaStream_t stream) {
    constexpr int BYTES = T::template stages<A>() * (T::template stage<A>() + 16);
    constexpr long long TILES = tiles_of<S, T>(), AT_ONCE = 132 / T::CLUSTER;
    static_assert(TILES < 1 << 30, "tiles are counted in 32 bits");
    split_kernel<T, A::ALONG_DEPTH>
        <<<dim3(S::SLABS, (S::COLUMNS + T::N - 1) / T::N, S::B_BATCHES), 256, 0, stream>>>(
            b, (float *)scratch);
    launch_cluster<T::CLUSTER>(product_kernel<S, T, A, Store>,
                               T::CLUSTER * (int)(TILES < AT_ONCE ? TILES : AT_ONCE),
                               PRODUCT_THREADS, BYTES, stream, a, (const float *)scratch, store);
}

} // namespace kp
