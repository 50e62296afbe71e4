/* product.cuh: C = A * B at fp32 accuracy on Hopper's tensor cores, for any operands.
 *
 * Idea: a number is split in two: big, the nearest of TF32, and small, the residual (Rest in
 * names). Three passes compute small*B + A*small + big*big, the first two in bf16 (Bf16Rest: twice
 * as fast, a product's error is about 2^-20), in TF32 (Tf32Rest: 2^-22), or one so and one so, as
 * TileFor chooses. The tensor cores cut off digits while they add, so they add up only 32 of the
 * depth (the summed axis), a slab; the sums of slabs are added in fp32. An element that is
 * infinite, or rounds to it, makes its sums NaN.
 *
 * A block computes tiles of 256 rows (of A) by N columns (of B): two warpgroups multiply 128 x N
 * each, a third fetches. A is read as it is and split in registers. B is split beforehand, by
 * split_kernel, into scratch memory, in blocks of N columns by a slab, laid out as the tensor cores
 * read them, so that one bulk copy fetches what a tile needs: the smaller operand should be B. Two
 * blocks (a cluster) work on neighbours along the rows and share what they fetch of B. Where both
 * are so large that this moves too many bytes, multiply() splits B on the way, in shared memory; a
 * tile then takes a third longer.
 *
 * What limits it: 2 flops an element of depth at the rates of TF32 (1) and bf16 (2); the fp32 sums
 * of slabs cost about a third of that again (NOTES.md). Large products reach 91 to 98 % of that
 * floor with residuals in bf16 (l1_010, l2_080; 690 us for 137 GFLOP), 84 to 90 % with long
 * epilogues (l2_095, l2_029), 66 to 82 % in l1_003, l1_006, l1_007 and l1_008; 104 to 109 % of
 * cuBLAS' rate where all passes are in TF32 (l2_088, l2_062).
 *
 * The contract (operands.cuh, stores.cuh and convolve.cuh have those that tasks need):
 *
 * Sizes (Matrices): constants ROWS, COLUMNS, SLABS, BATCHES; TERMS, how many products the shortest
 *   sums have (TileFor); B_BATCHES, 1 or BATCHES; BATCH_FASTEST, whether a tile's batches are
 *   computed together; and first_slab() and end_slab(): what of the depth is not zero for (batch,
 *   first row, row behind the last, first column, column behind).
 * A: ALONG_DEPTH, whether its neighbours in memory run along the depth; SLAB_BYTES;
 *   Place place(batch, row): what one of the 128 threads keeps of the tile from `row` on;
 *   void fetch(place, to, slab): starts its copies of the slab, zeros beyond the edges:
 *   AlongSlab or AcrossSlab say where.
 * B: ALONG_DEPTH; float at(batch, column, slab, k): an element, zero beyond the edges; for
 *   multiply() column_place() and fetch_columns(), as Along has them.
 * Store: void tile(const Part &part, batch, row, column): a thread's part of a tile.
 *
 * All are kernel parameters: no padding, whose bytes would differ between two recordings. */
#pragma once
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#include "product_hopper.cuh"
#define KP_CLUSTER(blocks) __cluster_dims__(blocks, 1, 1)
#else
#include "product_fma.cuh"
#define KP_CLUSTER(blocks)
#endif

namespace kp {

/* B into blocks (write_block()), ordered by batch, by N columns, by slab. Grid: x the slabs, y the
 * columns' blocks, z batches. */
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
    write_block<T, A_ALONG_DEPTH>(slab, blocks + at * T::B_WORDS);
}

/* The product: each block, or cluster, tile after tile. */
template <class S, class T, class A, class B, class Store>
__global__ void KP_CLUSTER(T::CLUSTER) __launch_bounds__(T::THREADS, 1)
    product_kernel(A a, B b, Store store) {
    extern __shared__ __align__(1024) unsigned char memory[];
    run_block<S, T>(a, b, store, memory);
}

/* ---- host ---- */

/* Bytes of scratch for the split B. */
template <class S, class T> constexpr size_t split_bytes() {
    return (size_t)S::B_BATCHES * ((S::COLUMNS + T::N - 1) / T::N) * S::SLABS * T::B_BYTES;
}

/* Enqueues the product of a and b: what split_kernel() wrote, or an operand that is split on the
 * way (fetch_columns(), N of 128, rests in bf16, no cluster). */
template <class S, class T, class A, class B, class Store>
static void multiply(const A &a, B b, const Store &store, cudaStream_t stream) {
    constexpr long long TILES = tiles_of<S, T>();
    static_assert(TILES < 1 << 30, "tiles are counted in 32 bits");
    int device = 0, processors = 132;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    const int at_once = processors / T::CLUSTER;
    launch_cluster<T::CLUSTER>(product_kernel<S, T, A, B, Store>,
                               T::CLUSTER * (TILES < at_once ? (int)TILES : at_once), T::THREADS,
                               stream, a, b, store);
}

/* Enqueues the splitting of b into `scratch` (split_bytes(), 16-byte aligned) and the product. */
template <class S, class T, class A, class B, class Store>
static void product(const A &a, const B &b, const Store &store, void *scratch,
                    cudaStream_t stream) {
    static_assert(S::B_BATCHES < 65536 && (S::COLUMNS + T::N - 1) / T::N < 65536, "a grid's y, z");
    split_kernel<T, A::ALONG_DEPTH>
        <<<dim3(S::SLABS, (S::COLUMNS + T::N - 1) / T::N, S::B_BATCHES), 256, 0, stream>>>(
            b, (float *)scratch);
    multiply<S, T>(a, (const float *)scratch, store, stream);
}

} // namespace kp
