/* product_fma.cuh: how product.cuh multiplies without sm_90a's instructions: in fp32, on the CUDA
 * cores of any architecture from sm_80 on.
 *
 * Roles and tiles are those of Hopper's way: eight warps multiply, 4 rows and N / 4 columns a
 * thread, and four fetch the next slab meanwhile. Two stages, and a barrier of the block after each
 * slab. B's blocks are copies: a row of N columns for each depth.
 * No result is of it: the H200 and the H100 take product_hopper.cuh. */
#pragma once
#include "product_parts.cuh"

namespace kp {

/* Writes a block of B from a slab in shared memory. 256 threads. */
template <class T, bool A_ALONG_DEPTH>
__device__ __forceinline__ void write_block(const float (&slab)[TILE_K][T::N + 1], float *block) {
#pragma unroll
    for (int i = threadIdx.x; i < TILE_K * T::N; i += 256) block[i] = slab[i / T::N][i % T::N];
}

/* part += the product of one slab. */
template <class T, class A>
__device__ __forceinline__ void multiply_slab(const float *slab, const float *b,
                                              Part<A::ALONG_DEPTH, T::N> &part) {
    constexpr int DEEP = A::ALONG_DEPTH ? 4 : 1; /* depths that are read together */
    const int first = first_row<A::ALONG_DEPTH>();
    b += threadIdx.x % 4 * 2;
#pragma unroll 1
    for (int k = 0; k < TILE_K; k += DEEP) {
        float a[4][DEEP]; /* of the thread's rows */
        if constexpr (A::ALONG_DEPTH) {
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const float4 f =
                    *(const float4 *)(slab + AlongSlab::word(first, k) + r * 8 * TILE_K);
                a[r][0] = f.x, a[r][1] = f.y, a[r][2] = f.z, a[r][3] = f.w;
            }
        } else {
            const float4 f = *(const float4 *)(slab + AcrossSlab::word(first, k));
            a[0][0] = f.x, a[1][0] = f.y, a[2][0] = f.z, a[3][0] = f.w;
        }
#pragma unroll
        for (int d = 0; d < DEEP; d++)
#pragma unroll
            for (int j = 0; j < T::N / 8; j++) {
                const float2 f = *(const float2 *)(b + (k + d) * T::N + 8 * j);
#pragma unroll
                for (int r = 0; r < 4; r++) {
                    part.v[r / 2][4 * j + r % 2 * 2] += a[r][d] * f.x;
                    part.v[r / 2][4 * j + r % 2 * 2 + 1] += a[r][d] * f.y;
                }
            }
    }
}

/* The block's whole work; b is what split_kernel() wrote, or the operand itself. */
template <class S, class T, class A, class B, class Store>
__device__ __forceinline__ void run_block(const A &a, const B &b, const Store &store,
                                          const unsigned char *memory) {
    constexpr int BLOCK = TILE_K * T::N, STAGE = BLOCK * 4 + A::SLAB_BYTES; /* words, bytes */
    constexpr int COLUMNS = (S::COLUMNS + T::N - 1) / T::N;
    constexpr int FETCHING = T::THREADS - 256; /* threads; the first 128 of them fetch A */
    const bool fetching = threadIdx.x >= 256;
    for (int index = blockIdx.x / T::CLUSTER; index < tiles_of<S, T>();
         index += gridDim.x / T::CLUSTER) {
        const TileAt at = find_tile<S, T>(index, blockIdx.x % T::CLUSTER);
        const typename A::Place place = a.place(at.batch, at.m * TILE_M);
        const long long block = ((S::B_BATCHES > 1 ? at.batch : 0) * COLUMNS + at.n) * S::SLABS;
        Part<A::ALONG_DEPTH, T::N> part = {};
        /* One slab more than there are: the first is fetched before any is multiplied. */
        for (int slab = at.first; slab <= at.end; slab++) {
            const int stage = (slab - at.first) % 2;
            if (fetching && slab < at.end) {
                const uint32_t to = shared_address(memory) + stage * STAGE;
                if constexpr (std::is_pointer_v<B>)
                    for (int i = (threadIdx.x - 256) * 4; i < BLOCK; i += FETCHING * 4)
                        copy_async<16>(to + i * 4, b + (block + slab) * T::B_WORDS + i);
                else
                    for (int i = threadIdx.x - 256; i < BLOCK; i += FETCHING)
                        ((float *)(memory + stage * STAGE))[i % TILE_K * T::N + i / TILE_K] =
                            b.at(at.batch, at.n * T::N + i / TILE_K, slab, i % TILE_K);
                if (threadIdx.x < 384) a.fetch(place, to + BLOCK * 4, slab);
                copies_wait();
            } else if (!fetching && slab > at.first) {
                const float *from = (const float *)(memory + (stage ^ 1) * STAGE);
                multiply_slab<T, A>(from + BLOCK, from, part);
            }
            __syncthreads();
        }
        if (!fetching)
            store.tile(part, at.batch, at.m * TILE_M + first_row<A::ALONG_DEPTH>(),
                       at.n * T::N + threadIdx.x % 4 * 2);
    }
}

} // namespace kp
