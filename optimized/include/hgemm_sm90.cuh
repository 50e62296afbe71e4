/* hgemm_sm90.cuh: out = A * B for sm_90a, f16 in and out, fp32 sums.
 *
 * A warpgroup copies slabs of A and of B transposed into a ring of stages; two warpgroups multiply
 * them, 64 rows of the tile each. The ring's barriers are all that the three share, so copies run
 * ahead of products across tiles. One CTA a multiprocessor takes tile after tile; where there are
 * too few tiles, a cluster shares a tile, each CTA a part of the depth, and adds up at the end. */
#pragma once
#include "wgmma_f16.cuh"

/* The sizes of a tile: 128 x N, N = 64, 128 or 256; stages; CTAs that share the depth; the rows of
 * tiles that are walked together, so that their A stays in L2. */
template <int N_, int STAGES_, int SPLIT_ = 1, int WALK_ = 8> struct HopperTile {
    static constexpr int M = 128, N = N_, K = 64, STAGES = STAGES_, SPLIT = SPLIT_, WALK = WALK_;
    static constexpr int A_BYTES = M * ROW_BYTES, STAGE_BYTES = (M + N) * ROW_BYTES;
    static constexpr int ROWS = M / SPLIT; /* that one CTA adds up */
    static constexpr int BARS = STAGES * STAGE_BYTES, SUMS = BARS + STAGES * 16;
    static constexpr int BYTES = 1024 + SUMS + (SPLIT > 1 ? M * N * 4 : 0), THREADS = 384;
    static_assert(BYTES <= 227 * 1024, "shared memory of a block");
};

/* A place in the ring, and the parity of its barriers. */
template <class T> struct Ring {
    uint32_t base;
    int stage = 0, parity = 0;
    __device__ __forceinline__ uint32_t a() const { return base + stage * T::STAGE_BYTES; }
    __device__ __forceinline__ uint32_t b() const { return a() + T::A_BYTES; }
    __device__ __forceinline__ uint32_t full() const { return base + T::BARS + stage * 16; }
    __device__ __forceinline__ uint32_t empty() const { return full() + 8; }
    __device__ __forceinline__ void next() {
        if (++stage == T::STAGES) stage = 0, parity ^= 1;
    }
};

/* Copies a thread's pieces of ROWS rows of a slab: one piece of every 16th row. Offsets are
 * constants in the instructions, which leaves two addresses in registers. */
template <int ROWS, int PITCH, int ROW = 0>
__device__ __forceinline__ void fetch_rows(uint32_t to, const __half *from) {
    copy16<ROW * ROW_BYTES, ROW * PITCH *(int)sizeof(__half)>(to, from);
    if constexpr (ROW + 16 < ROWS) fetch_rows<ROWS, PITCH, ROW + 16>(to, from);
}

/* sums (+)= one slab, as one group of products. */
template <class T, int REGS>
__device__ __forceinline__ void multiply_slab(float (&sums)[REGS], uint32_t a, uint32_t b,
                                              int add) {
    const uint64_t left = operand(a), right = operand(b);
    mma_begin();
#pragma unroll
    for (int k = 0; k < 4; k++) mma_f16(sums, left + k * 2, right + k * 2, add | k);
    mma_end();
}

__device__ __forceinline__ unsigned pack_halves(float x, float y) {
    const __half2 v = __floats2half2_rn(x, y);
    return *(const unsigned *)&v;
}

/* Stores a warpgroup's 64 rows; `out` points at the tile's first column in the thread's first row.
 */
template <class T, int PITCH, int REGS>
__device__ __forceinline__ void store_tile(__half *out, const float (&sums)[REGS], int lane) {
#pragma unroll
    for (int j = 0; j < T::N / 8; j += 4)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            unsigned r[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                r[i] = pack_halves(sums[(j + i) * 4 + h * 2], sums[(j + i) * 4 + h * 2 + 1]);
            transpose_quad(r, lane);
            *(uint4 *)(out + h * 8 * PITCH + (j + lane % 4) * 8) =
                make_uint4(r[0], r[1], r[2], r[3]);
        }
}

/* Where a partial sum of CTA `from` for a row goes, in the shared memory of the CTA that adds the
 * row up. Pieces of 8 floats are permuted, so that neighbouring rows fall into different banks. */
template <class T> __device__ __forceinline__ uint32_t sum_at(uint32_t sums, int from, int row) {
    return sums + (from * T::ROWS + row % T::ROWS) * T::N * 4;
}

/* Sends a warpgroup's partial sums to the CTAs of the cluster, each some of the rows. */
template <class T, int REGS>
__device__ __forceinline__ void send_sums(const float (&s)[REGS], uint32_t sums, int rank, int row,
                                          int lane) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const uint32_t to = at_rank(sum_at<T>(sums, rank, row + h * 8), (row + h * 8) / T::ROWS);
#pragma unroll
        for (int j = 0; j < T::N / 8; j++)
            store_at(to + (j ^ (row & 3)) * 32 + lane % 4 * 8,
                     make_float2(s[j * 4 + h * 2], s[j * 4 + h * 2 + 1]));
    }
}

/* Adds up this CTA's rows and stores them. */
template <class T, int PITCH>
__device__ __forceinline__ void add_and_store(__half *out, const unsigned char *sums, int rank) {
    constexpr int FOURS = T::N / 4;
#pragma unroll
    for (int i = threadIdx.x; i < T::ROWS * FOURS; i += T::THREADS) {
        const int row = rank * T::ROWS + i / FOURS, four = i % FOURS;
        float4 v[T::SPLIT];
#pragma unroll
        for (int s = 0; s < T::SPLIT; s++)
            v[s] = *(const float4 *)(sums + sum_at<T>(0, s, row) + (four ^ (row & 3) * 2) * 16);
#pragma unroll
        for (int s = 1; s < T::SPLIT; s++)
            v[0] = make_float4(v[0].x + v[s].x, v[0].y + v[s].y, v[0].z + v[s].z, v[0].w + v[s].w);
        *(uint2 *)(out + row * PITCH + four * 4) =
            make_uint2(pack_halves(v[0].x, v[0].y), pack_halves(v[0].z, v[0].w));
    }
}

/* out (M x N) = a (M x K) * bt (N x K) transposed. */
template <class T, int M, int N, int K>
__global__ void __cluster_dims__(T::SPLIT) __launch_bounds__(T::THREADS, 1)
    half_product_sm90_kernel(const __half *__restrict__ a, const __half *__restrict__ bt,
                             __half *__restrict__ out) {
    constexpr int TILES = M / T::M * (N / T::N), SLABS = K / T::K / T::SPLIT;
    constexpr int WALK = T::WALK < M / T::M ? T::WALK : M / T::M, WALKED = WALK * (N / T::N);
    static_assert(M % (T::M * WALK) == 0 && N % T::N == 0 && K % (T::K * T::SPLIT) == 0,
                  "whole tiles");
    extern __shared__ unsigned char shared[];
    Ring<T> ring = {(shared_address(shared) + 1023) & ~1023u};
    const int rank = T::SPLIT > 1 ? cluster_rank() : 0, lane = threadIdx.x % 32;
    const int group = __shfl_sync(~0u, threadIdx.x / 128, 0), thread = threadIdx.x % 128;
    const uint32_t sums_at = ring.base + T::SUMS;
    const int first = blockIdx.x / T::SPLIT, step = gridDim.x / T::SPLIT;
    if (threadIdx.x == 0) {
        Ring<T> r = ring;
        for (int s = 0; s < T::STAGES; s++, r.next()) {
            bar_init(r.full(), 128);
            bar_init(r.empty(), 2);
        }
        bar_init_fence();
    }
    __syncthreads();
    if (T::SPLIT > 1) cluster_arrive();

    if (group == 2) {
        registers_give<72>();
        const int piece = thread % 8, row = thread / 8;
        const uint32_t at = row * ROW_BYTES + ((piece ^ (row & 7)) * 16);
        for (int tile = first; tile < TILES; tile += step) {
            const int m = tile / WALKED * WALK + tile % WALK, n = tile % WALKED / WALK;
            const __half *pa = a + (m * T::M + row) * K + rank * (K / T::SPLIT) + piece * 8;
            const __half *pb = bt + (n * T::N + row) * K + rank * (K / T::SPLIT) + piece * 8;
            for (int k = 0; k < SLABS; k++, pa += T::K, pb += T::K, ring.next()) {
                bar_wait(ring.empty(), ring.parity ^ 1);
                fetch_rows<T::M, K>(ring.a() + at, pa);
                fetch_rows<T::N, K>(ring.b() + at, pb);
                bar_arrive_copied(ring.full());
            }
        }
    } else {
        registers_take<216>();
        const int row = group * 64 + thread / 32 * 16 + lane / 4;
        float sums[T::N / 2];
        for (int tile = first; tile < TILES; tile += step) {
            const int m = tile / WALKED * WALK + tile % WALK, n = tile % WALKED / WALK;
            uint32_t used = 0;
            for (int k = 0; k < SLABS; k++, ring.next()) {
                bar_wait(ring.full(), ring.parity);
                fence_async(); /* the copies' writes, before the tensor cores' reads */
                multiply_slab<T>(sums, ring.a() + group * 64 * ROW_BYTES, ring.b(), k);
                mma_wait<1>();
                if (k > 0 && thread == 0) bar_arrive(used);
                used = ring.empty();
            }
            mma_wait<0>();
            if (thread == 0) bar_arrive(used);
            if (T::SPLIT == 1)
                store_tile<T, N>(out + (m * T::M + row) * N + n * T::N, sums, lane);
            else {
                cluster_wait(); /* all CTAs have started */
                send_sums<T>(sums, sums_at, rank, row, lane);
            }
        }
    }
    if (T::SPLIT > 1) {
        const int m = first / WALKED * WALK + first % WALK, n = first % WALKED / WALK;
        if (group == 2) cluster_wait();
        cluster_arrive();
        cluster_wait();
        add_and_store<T, N>(out + m * T::M * N + n * T::N,
                            shared + (sums_at - shared_address(shared)), rank);
    }
}

/* Enqueues the product. */
template <class T, int M, int N, int K>
static void half_product_sm90(const __half *a, const __half *bt, __half *out, cudaStream_t stream) {
    constexpr int TILES = M / T::M * (N / T::N);
    int device = 0, processors = 132;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    const int ctas = T::SPLIT > 1 || TILES < processors ? TILES * T::SPLIT : processors;
    cudaFuncSetAttribute(half_product_sm90_kernel<T, M, N, K>,
                         cudaFuncAttributeMaxDynamicSharedMemorySize, T::BYTES);
    half_product_sm90_kernel<T, M, N, K><<<ctas, T::THREADS, T::BYTES, stream>>>(a, bt, out);
}
