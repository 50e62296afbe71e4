/* split_f16.cuh: fp32 products on the f16 tensor cores of sm_90a.
 *
 * An fp32 row, scaled by a power of two so that its largest element is in [2^14, 2^15), is the sum
 * of two f16 rows, high + low, to 2^-23 of an element or 2^-39 of the row's largest. So a product
 * is high * high + high * low + low * high: what is left out is 2^-22 of it. The tensor cores cut
 * off bits as they add; so sums over 64 of the depth are added up in fp32 registers, which round.
 *
 * Split operands lie in global memory as the tensor cores want them in shared memory: blocks of 128
 * rows x 64 of the depth, low then high, 16 KiB each (hopper_f16.cuh has the layout within). One
 * bulk copy brings a block. The CTAs of a cluster have the same A: each copies a part for all.
 * Reaches 87 % of the floor of its products and of the splitting (l1_097). */
#pragma once
#include "half_ring.cuh"
#include "hopper_split.cuh"

namespace kp {

constexpr int BLOCK_ROWS = 128, BLOCK_DEPTH = 64, ROW_BYTES = 128;
constexpr int PART_BYTES = BLOCK_ROWS * ROW_BYTES, BLOCK_BYTES = 2 * PART_BYTES; /* low, high */

/* Where eight elements of a row lie: `at` is the block, `part` 0 for low or 1 for high. */
__device__ __forceinline__ uint4 *piece_of(unsigned char *at, int part, int row, int piece) {
    return (uint4 *)(at + part * PART_BYTES + row * ROW_BYTES + ((piece ^ (row & 7)) * 16));
}

/* The power of two that brings `top` into [2^14, 2^15), and its inverse. */
__device__ __forceinline__ float scale_of(float top, float &inverse) {
    int e = __float_as_int(top) >> 23 & 255;
    e = e < 15 ? 15 : e > 254 ? 254 : e;
    inverse = __int_as_float((e - 14) << 23);
    return __int_as_float((268 - e) << 23);
}

/* Splits two floats. */
__device__ __forceinline__ void split2(float x, float y, unsigned &high, unsigned &low) {
    const __half2 h = __floats2half2_rn(x, y);
    const float2 f = __half22float2(h);
    const __half2 l = __floats2half2_rn(x - f.x, y - f.y);
    high = *(const unsigned *)&h;
    low = *(const unsigned *)&l;
}

/* Splits eight floats, times `scale`. */
__device__ __forceinline__ void split8(const float (&v)[8], float scale, uint4 &high, uint4 &low) {
    split2(v[0] * scale, v[1] * scale, high.x, low.x);
    split2(v[2] * scale, v[3] * scale, high.y, low.y);
    split2(v[4] * scale, v[5] * scale, high.z, low.z);
    split2(v[6] * scale, v[7] * scale, high.w, low.w);
}

/* Splits rows of DEPTH, a warp a row; `inverse` becomes what undoes each row's scale. */
template <int DEPTH>
__global__ void __launch_bounds__(256)
    split_rows_kernel(const float *__restrict__ x, unsigned char *__restrict__ to,
                      float *__restrict__ inverse) {
    static_assert(DEPTH % 256 == 0, "whole lanes");
    constexpr int EIGHTS = DEPTH / 256; /* a lane */
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    const float4 *from = (const float4 *)(x + (long long)row * DEPTH);
    float v[EIGHTS][8];
    float top = 0;
#pragma unroll
    for (int i = 0; i < EIGHTS; i++) {
        *(float4 *)&v[i][0] = __ldcs(from + (lane + i * 32) * 2);
        *(float4 *)&v[i][4] = __ldcs(from + (lane + i * 32) * 2 + 1);
#pragma unroll
        for (int k = 0; k < 8; k++) top = fmaxf(top, fabsf(v[i][k]));
    }
#pragma unroll
    for (int m = 16; m; m /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, m));
    float back;
    const float scale = scale_of(top, back);
    if (lane == 0) inverse[row] = back;
#pragma unroll
    for (int i = 0; i < EIGHTS; i++) {
        const int piece = lane + i * 32;
        unsigned char *at =
            to + ((long long)(row / BLOCK_ROWS) * (DEPTH / BLOCK_DEPTH) + piece / 8) * BLOCK_BYTES;
        uint4 high, low;
        split8(v[i], scale, high, low);
        *piece_of(at, 0, row % BLOCK_ROWS, piece % 8) = low;
        *piece_of(at, 1, row % BLOCK_ROWS, piece % 8) = high;
    }
}

/* Splits the columns of matrices of DEPTH x WIDTH, as rows of the operand: 32 columns a CTA of
 * 8 warps. blockIdx.y is the matrix. The blocks are put together in shared memory. */
template <int DEPTH, int WIDTH>
__global__ void __launch_bounds__(256)
    split_columns_kernel(const float *__restrict__ x, unsigned char *__restrict__ to,
                         float *__restrict__ inverse) {
    static_assert(DEPTH % BLOCK_DEPTH == 0 && WIDTH % BLOCK_ROWS == 0, "whole blocks");
    constexpr int BLOCKS = DEPTH / BLOCK_DEPTH, PIECE = 32 * ROW_BYTES;
    extern __shared__ __align__(128) unsigned char shared[]; /* BLOCKS x low, high x 32 rows */
    __shared__ float tops[8][32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, column = blockIdx.x * 32 + lane;
    const float *from = x + (long long)blockIdx.y * DEPTH * WIDTH + column;
    float v[BLOCKS][8];
    float top = 0;
#pragma unroll
    for (int i = 0; i < BLOCKS; i++)
#pragma unroll
        for (int k = 0; k < 8; k++) {
            v[i][k] = __ldcs(from + (long long)(i * BLOCK_DEPTH + warp * 8 + k) * WIDTH);
            top = fmaxf(top, fabsf(v[i][k]));
        }
    tops[warp][lane] = top;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < 8; w++) top = fmaxf(top, tops[w][lane]);
    float back;
    const float scale = scale_of(top, back);
    if (warp == 0) inverse[(long long)blockIdx.y * WIDTH + column] = back;
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) {
        uint4 high, low;
        split8(v[i], scale, high, low);
        unsigned char *at = shared + i * 2 * PIECE + lane * ROW_BYTES + ((warp ^ (lane & 7)) * 16);
        *(uint4 *)at = low;
        *(uint4 *)(at + PIECE) = high;
    }
    fence_async();
    __syncthreads();
    if (threadIdx.x < BLOCKS * 2) {
        const int i = threadIdx.x / 2, part = threadIdx.x % 2, row = blockIdx.x * 32;
        const long long block =
            ((long long)blockIdx.y * (WIDTH / BLOCK_ROWS) + row / BLOCK_ROWS) * BLOCKS + i;
        store_bulk(to + block * BLOCK_BYTES + part * PART_BYTES + row % BLOCK_ROWS * ROW_BYTES,
                   shared + threadIdx.x * PIECE, PIECE);
    }
}

/* The kernel below: clusters of CTAS along N, BLOCKS of the depth. Its ring is HalfRing. */
template <int CTAS_, int BLOCKS_> struct SplitShape {
    static constexpr int CTAS = CTAS_, BLOCKS = BLOCKS_, STAGES = 3;
    static constexpr int A_BYTES = BLOCK_BYTES, STAGE = 2 * BLOCK_BYTES;
    static constexpr int BARS = STAGES * STAGE, SIDE = BARS + 256, SIDE_BYTES = 5120;
    static constexpr int BYTES = SIDE + 2 * SIDE_BYTES, THREADS = 384;
    /* What a tile needs besides is overwritten for the tile after the next, as soon as one warp of
     * each group is done with block BLOCKS - STAGES of the tile between. All have begun that block;
     * but where it is block 0, some may still finish the tile. */
    static_assert(BLOCKS > STAGES, "two sets of what a tile needs besides are too few");
};

/* Copies what a tile needs besides. Racecheck looks at it: where KP_RACECHECK is defined these are
 * ordinary copies, and their bytes do not count at the barrier. */
#ifdef KP_RACECHECK
constexpr bool SIDE_COUNTS = false;
#else
constexpr bool SIDE_COUNTS = true;
#endif
__device__ __forceinline__ void copy_side(uint32_t to, const void *from, int bytes, uint32_t bar) {
    if (SIDE_COUNTS)
        copy_bulk<1>(to, from, bytes, bar);
    else
#pragma unroll 1
        for (int i = 0; i < bytes; i += 16) copy_async<16>(to + i, (const char *)from + i);
}

/* Starts the products of a warpgroup's 64 rows with one block: in `a` the low part of the rows, the
 * high part PART_BYTES on; in `b` the low part of all 128 rows, then the high one. One instruction
 * takes the high part of the rows against both: the first half of `parts` is high * low + low *
 * high, the second high * high. (What another instruction adds to must be the first half of its
 * registers: for the second half the compiler copies them around.) The two warpgroups take turns,
 * so that one adds up while the tensor cores work for the other. */
__device__ __forceinline__ void start_block(float (&parts)[128], uint32_t a, uint32_t b,
                                            int group) {
    const uint64_t low = wgmma_operand(a), left = wgmma_operand(a + PART_BYTES);
    const uint64_t right = wgmma_operand(b), upper = wgmma_operand(b + PART_BYTES);
    turn_wait(2 + group);
    wgmma_begin();
#pragma unroll
    for (int k = 0; k < 4; k++) {
        WgmmaShared<256>::multiply(parts, left + k * 2, right + k * 2, k);
        WgmmaShared<128>::multiply((float(&)[64])parts, low + k * 2, upper + k * 2, 1);
    }
    wgmma_end();
    turn_pass(3 - group);
}

/* Multiplies tile after tile. A tile is a cluster's: 128 rows, 128 columns a CTA. Job has
 *   TILES, the number of tiles;
 *   a(tile), b(tile, rank), the blocks of 128 rows of each operand, the first of BLOCKS;
 *   Weights, factors of the blocks' products, by begin(row, side): add(sum, h, x) returns sum + x
 *   times that of a thread's row h, and next(k) goes on to block k;
 *   fetch_side(tile, rank, to, bar), which copies SIDE_BYTES that a tile needs besides, by
 * copy_side();
 *   finish(tile, rank, row, lane, sums, side), what to do with a thread's sums. It runs while the
 * tensor cores work on the next tile. */
template <class T, class Job>
__global__ void __launch_bounds__(T::THREADS, 1) split_product_kernel(const Job job) {
    extern __shared__ __align__(1024) unsigned char memory[];
    HalfRing<T> ring = {shared_address(memory)};
    const int rank = cluster_rank(), thread = threadIdx.x % 128;
    const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
    const int first = blockIdx.x / T::CTAS, step = gridDim.x / T::CTAS;
    /* What a tile needs besides: two sets, of this tile and the one before. */
    const auto side = [&](int r) { return memory + T::SIDE + (r & 1) * T::SIDE_BYTES; };
    int round = 0;
    if (threadIdx.x == 0) {
        HalfRing<T> r = ring;
        for (int s = 0; s < T::STAGES; s++, r.next()) {
            bar_init(r.full(), 1);
            bar_init(r.empty(), 2 * T::CTAS);
        }
        bar_init_done();
    }
    cluster_sync();

    if (group == 2) {
        registers_give<24>();
        if (thread == 0)
            for (int tile = first; tile < Job::TILES; tile += step, round++) {
                const unsigned char *a = job.a(tile), *b = job.b(tile, rank);
                for (int k = 0; k < T::BLOCKS; k++, ring.next()) {
                    constexpr int SHARE = BLOCK_BYTES / T::CTAS;
                    bar_wait(ring.empty(), ring.parity ^ 1);
                    if (k == 0)
                        job.fetch_side(tile, rank, shared_address(side(round)), ring.full());
                    bar_expect(ring.full(),
                               T::STAGE + (k == 0 && SIDE_COUNTS ? Job::SIDE_BYTES : 0));
                    copy_bulk<T::CTAS>(ring.a() + rank * SHARE, a + k * BLOCK_BYTES + rank * SHARE,
                                       SHARE, ring.full());
                    copy_bulk<1>(ring.b(), b + k * BLOCK_BYTES, BLOCK_BYTES, ring.full());
                }
            }
    } else {
        registers_take<240>();
        if (group == 1) turn_pass(2);
        const int lane = thread % 32, row = group * 64 + thread / 32 * 16 + lane / 4;
        float sums[64];
        for (int tile = first; tile < Job::TILES; tile += step) {
            float parts[128];
            const auto start = [&] {
                bar_wait(ring.full(), ring.parity);
                start_block(parts, ring.a() + group * 64 * ROW_BYTES, ring.b(), group);
            };
            /* Of what this gives back other blocks write only what tensor cores have read. */
            const auto end = [&] {
                wgmma_wait<0>();
                if (thread < T::CTAS) bar_arrive_at(ring.empty(), thread);
                ring.next();
            };
            start();
            if (tile != first) job.finish(tile - step, rank, row, lane, sums, side(round - 1));
            typename Job::Weights weights = job.begin(row, side(round));
            round++;
            end();
#pragma unroll
            for (int i = 0; i < 64; i++)
                sums[i] = weights.add(0, i / 2 % 2, parts[64 + i] + parts[i]);
#pragma unroll 1
            for (int k = 1; k < T::BLOCKS; k++) {
                weights.next(k);
                start();
                end();
#pragma unroll
                for (int i = 0; i < 64; i++)
                    sums[i] = weights.add(sums[i], i / 2 % 2, parts[64 + i] + parts[i]);
            }
        }
        if (first < Job::TILES)
            job.finish(first + (Job::TILES - 1 - first) / step * step, rank, row, lane, sums,
                       side(round - 1));
        if (group == 0) turn_wait(2);
    }
    __syncwarp();
    cluster_sync();
}

/* Enqueues the product. */
template <class T, class Job> static void split_product(const Job &job, cudaStream_t stream) {
    int device = 0, processors = T::CTAS;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    launch_sized<T::CTAS>(split_product_kernel<T, Job>, processors / T::CTAS * T::CTAS, T::THREADS,
                          T::BYTES, stream, false, job);
}

} // namespace kp
