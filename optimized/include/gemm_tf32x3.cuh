/* gemm_tf32x3.cuh: C = A * B at fp32 accuracy on Hopper's tensor cores, in three passes.
 *
 * A number is split in two: big, the nearest of TF32, and small, the rest. The passes are
 * small*B + A*small + big*big; their operands are exact or rounded, so that a product's error is
 * about 2^-22 where the first two passes are in TF32, too (HALF = false), and 2^-20 where they
 * are in bf16, twice as fast (HALF). Over 4096 products that is 2.4e-7 and 7e-7 of the result's
 * norm; fp32 arithmetic, which rounds every sum, gives 5e-7 to 1.2e-6.
 * The tensor cores cut off digits while they add, so they add up only 32 of the depth (the summed
 * axis) at a time; these sums are then added in fp32. The exponents are those of fp32, but an
 * element that is infinite, or rounds to it, makes its sums NaN.
 *
 * The product has rows (A) and columns (B). A is read as it is, and split in registers. B is
 * split beforehand, by split_kernel, into scratch memory: blocks of 128 columns by 32 of the
 * depth, laid out as the tensor cores read them, so that one bulk copy fetches what a tile needs.
 * Of the two operands, the smaller should be B.
 *
 * A block computes tiles of 256 x 128: two warpgroups multiply 128 x 128 each, a third fetches.
 * Two blocks (a cluster) work on neighbours along the rows and share what they fetch of B.
 *
 * Slots: of the 32 depths of a slab, the order in which they are multiplied is free, but it must
 * be the same for A and B. It is chosen so that a thread finds its part of A in 16-byte pieces.
 *
 * An epilogue is called with a thread's part of a tile:
 *   void tile(const Part &part, int row, int column)
 * Part and its rows and columns: see there. Epilogues are kernel parameters: no padding. */
#pragma once
#include "gemm_tf32x3_ops.cuh"

namespace tf32x3 {

constexpr int TILE_M = 256, TILE_N = 128, TILE_K = 32;
constexpr int THREADS = 384;                 /* two warpgroups multiply, one fetches */
constexpr int B_BYTES = TILE_N * TILE_K * 4; /* of the big part, and of the rest */
constexpr int B_WORDS = 2 * TILE_N * TILE_K; /* of a block of split_kernel */

/* A stored with the depth contiguous: rows of `pitch` words. In shared memory a row of 32 words
 * has its upper and lower half exchanged if it is odd, for the banks. */
template <int PITCH> struct AlongDepth {
    static constexpr bool ALONG_DEPTH = true;
    static constexpr int SLAB_BYTES = TILE_M * TILE_K * 4;
    const float *data;
};

/* A stored with the rows contiguous: depths of `pitch` words. */
template <int PITCH> struct AcrossDepth {
    static constexpr bool ALONG_DEPTH = false;
    static constexpr int LINE = TILE_M + 8; /* words; 8 more, for the banks */
    static constexpr int SLAB_BYTES = TILE_K * LINE * 4;
    const float *data;
};

/* The depth that slot `slot` of a slab holds, in the passes in TF32 and in those in bf16. */
template <bool A_ALONG_DEPTH> __host__ __device__ constexpr int depth_of_slot(int slot) {
    return A_ALONG_DEPTH ? slot % 8 * 4 + slot / 8 : slot;
}

template <bool A_ALONG_DEPTH> __host__ __device__ constexpr int depth_of_half_slot(int slot) {
    const int step = slot / 16, upper = slot / 8 % 2, t = slot % 8 / 2, odd = slot % 2;
    return A_ALONG_DEPTH ? step * 16 + t * 4 + upper * 2 + odd
                         : upper * 16 + odd * 8 + step * 4 + t;
}

/* ---- splitting ---- */

__device__ __forceinline__ float nearest_tf32(float v) {
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
    return __uint_as_float(bits);
}

/* Two numbers, rounded to bf16; the first in the lower half. */
__device__ __forceinline__ uint32_t pack(float first, float second) {
    uint32_t bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
    return bits;
}

/* B into blocks, ordered by 128 columns, then by slab. A block has two halves of 128 bytes a
 * column, whose 16-byte pieces are exchanged by the column's number modulo 8 (the 128-byte
 * swizzle): the big parts of its 32 slots, then the small ones or, with HALF, the 32 numbers and
 * the 32 small parts in bf16. B_ALONG_DEPTH: column n at b[n * pitch + k], else b[k * pitch + n].
 * Grid: x the slabs (along) or the column blocks (across), y the others. */
template <bool HALF, bool A_ALONG_DEPTH, bool B_ALONG_DEPTH>
__global__ void __launch_bounds__(256)
    split_kernel(const float *__restrict__ b, float *__restrict__ blocks, int pitch) {
    __shared__ float slab[TILE_K][TILE_N + 1];
    const int at_slab = B_ALONG_DEPTH ? blockIdx.x : blockIdx.y;
    const int at_block = B_ALONG_DEPTH ? blockIdx.y : blockIdx.x;
    const int slabs = B_ALONG_DEPTH ? gridDim.x : gridDim.y;
    float4 v[4];
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const int f = threadIdx.x + r * 256;
        const int n = at_block * TILE_N + (B_ALONG_DEPTH ? f / 8 : f % 32 * 4);
        const int k = at_slab * TILE_K + (B_ALONG_DEPTH ? f % 8 * 4 : f / 32);
        v[r] = __ldg((const float4 *)(b + (B_ALONG_DEPTH ? (long long)n * pitch + k
                                                         : (long long)k * pitch + n)));
    }
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const int f = threadIdx.x + r * 256;
        const int n = B_ALONG_DEPTH ? f / 8 : f % 32 * 4, k = B_ALONG_DEPTH ? f % 8 * 4 : f / 32;
        const int dn = !B_ALONG_DEPTH, dk = B_ALONG_DEPTH;
        slab[k][n] = v[r].x;
        slab[k + dk][n + dn] = v[r].y;
        slab[k + 2 * dk][n + 2 * dn] = v[r].z;
        slab[k + 3 * dk][n + 3 * dn] = v[r].w;
    }
    __syncthreads();
    float *block = blocks + ((long long)at_block * slabs + at_slab) * B_WORDS;
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const int f = threadIdx.x + r * 256, n = f / 8, piece = f % 8;
        float big[4];
        uint32_t rest[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const float x = slab[depth_of_slot<A_ALONG_DEPTH>(piece * 4 + e)][n];
            big[e] = nearest_tf32(x);
            if (!HALF) rest[e] = __float_as_uint(nearest_tf32(x - big[e]));
        }
#pragma unroll
        for (int e = 0; HALF && e < 4; e++) {
            const int slot = piece % 4 * 8 + e * 2;
            float x = slab[depth_of_half_slot<A_ALONG_DEPTH>(slot)][n];
            float y = slab[depth_of_half_slot<A_ALONG_DEPTH>(slot + 1)][n];
            if (piece >= 4) x -= nearest_tf32(x), y -= nearest_tf32(y);
            rest[e] = pack(x, y);
        }
        float4 *to = (float4 *)block + n * 8 + (piece ^ n % 8);
        to[0] = make_float4(big[0], big[1], big[2], big[3]);
        *(uint4 *)(to + B_BYTES / 16) = make_uint4(rest[0], rest[1], rest[2], rest[3]);
    }
}

/* ---- the parts of a block ---- */

/* A thread's part of a tile: value [i][4 * j + 2 * h + e] belongs to row `row(i, h)` and column
 * 8 * j + e, both counted from the thread's first. The eight lanes with equal lane % 4 hold
 * other rows, the four with equal lane / 4 other columns: lane % 4 * 2 further. */
template <bool A_ALONG_DEPTH> struct Part {
    float v[2][64];
    static __device__ __forceinline__ constexpr int row(int i, int h) {
        return A_ALONG_DEPTH ? (2 * i + h) * 8 : 2 * i + h;
    }
};

/* The thread's first row in its tile of 256. */
template <bool A_ALONG_DEPTH> __device__ __forceinline__ int first_row() {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    return warp * 32 + lane / 4 * (A_ALONG_DEPTH ? 1 : 4);
}

/* Fetches the slab of A that begins at row m, depth k: the 128 threads of a warpgroup. */
template <int PITCH>
__device__ __forceinline__ void fetch(AlongDepth<PITCH> a, uint32_t to, int m, int k) {
    const int thread = threadIdx.x % 128, row = thread / 8, piece = thread % 8;
    const float *from = a.data + (long long)(m + row) * PITCH + k + piece * 4;
    to += row * 128 + (piece ^ row % 2 * 4) * 16;
#pragma unroll
    for (int r = 0; r < TILE_M; r += 16) copy16(to + r * 128, from + (long long)r * PITCH);
}

template <int PITCH>
__device__ __forceinline__ void fetch(AcrossDepth<PITCH> a, uint32_t to, int m, int k) {
    const int thread = threadIdx.x % 128, line = thread / 64, piece = thread % 64;
    const float *from = a.data + (long long)(k + line) * PITCH + m + piece * 4;
    to += (line * a.LINE + piece * 4) * 4;
#pragma unroll
    for (int r = 0; r < TILE_K; r += 2) copy16(to + r * a.LINE * 4, from + (long long)r * PITCH);
}

/* What tile i of a thread multiplies with slots 8 s..8 s+7: rows row(i, 0), row(i, 1), slots
 * lane % 4 and lane % 4 + 4, as [s][h + 2 * upper slot]. */
template <int PITCH>
__device__ __forceinline__ void load(AlongDepth<PITCH>, const float *slab, int i,
                                     float (&v)[4][4]) {
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = first_row<true>() + Part<true>::row(i, h);
#pragma unroll
        for (int upper = 0; upper < 2; upper++) {
            const float4 f =
                *(const float4 *)(slab + row * 32 + ((t + upper * 4) ^ row % 2 * 4) * 4);
            v[0][h + 2 * upper] = f.x;
            v[1][h + 2 * upper] = f.y;
            v[2][h + 2 * upper] = f.z;
            v[3][h + 2 * upper] = f.w;
        }
    }
}

template <int PITCH>
__device__ __forceinline__ void load(AcrossDepth<PITCH> a, const float *slab, int i,
                                     float (&v)[4][4]) {
    const int t = threadIdx.x % 4, row = first_row<false>() + Part<false>::row(i, 0);
#pragma unroll
    for (int s = 0; s < 4; s++)
#pragma unroll
        for (int upper = 0; upper < 2; upper++) {
            const float2 f = *(const float2 *)(slab + (s * 8 + t + upper * 4) * a.LINE + row);
            v[s][2 * upper] = f.x;
            v[s][2 * upper + 1] = f.y;
        }
}

/* Tile `index` of a cluster's list, row and column of tiles: panels of 8 rows of tiles, within
 * which the rows vary fastest, so that blocks at work together share what they read. */
template <int CLUSTER>
__device__ __forceinline__ void find_tile(int index, int rows, int columns, int *m, int *n) {
    constexpr int PANEL = 8 / CLUSTER;
    const int panel = index / (PANEL * columns), within = index % (PANEL * columns);
    const int height = min(PANEL, rows / CLUSTER - panel * PANEL);
    *m = (panel * PANEL + within % height) * CLUSTER + (CLUSTER > 1 ? cluster_rank() : 0);
    *n = within / height;
}

template <class A, int CLUSTER, int STAGES>
__device__ __forceinline__ void fetch_all(const A &a, const float *blocks, uint32_t stages,
                                          uint32_t full, uint32_t empty, int rows, int columns,
                                          int slabs) {
    constexpr int STAGE = 2 * B_BYTES + A::SLAB_BYTES;
    int stage = 0, turn = 1; /* of the barriers: the first wait is for nothing */
    const int rank = CLUSTER > 1 ? cluster_rank() : 0;
    for (int index = blockIdx.x / CLUSTER; index < rows / CLUSTER * columns;
         index += gridDim.x / CLUSTER) {
        int m, n;
        find_tile<CLUSTER>(index, rows, columns, &m, &n);
        const float *b = blocks + (long long)n * slabs * B_WORDS + rank * (B_WORDS / CLUSTER);
        for (int slab = 0; slab < slabs; slab++, b += B_WORDS) {
            const uint32_t to = stages + stage * STAGE;
            barrier_wait(empty + stage * 8, turn);
            if (threadIdx.x % 128 == 0) {
                barrier_expect(full + stage * 8, 2 * B_BYTES);
                copy_bulk<CLUSTER>(to + rank * (2 * B_BYTES / CLUSTER), b, 2 * B_BYTES / CLUSTER,
                                   full + stage * 8);
            }
            fetch(a, to + 2 * B_BYTES, m * TILE_M, slab * TILE_K);
            barrier_arrive_copied(full + stage * 8);
            if (++stage == STAGES) stage = 0, turn ^= 1;
        }
    }
}

/* What a thread multiplies, in bf16: step u of 16 slots, from `load`'s steps of 8. */
__device__ __forceinline__ void pack_all(const float (&v)[4][4], uint32_t (&to)[2][4]) {
#pragma unroll
    for (int u = 0; u < 2; u++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            to[u][e] = pack(v[e / 2 * 2][e % 2 + 2 * u], v[e / 2 * 2 + 1][e % 2 + 2 * u]);
}

/* sum = the product of one slab, rows of tile i; the block of B is at `big`. */
template <bool HALF, class A>
__device__ __forceinline__ void multiply_slab(const A &a, const float *slab, uint64_t big, int i,
                                              float (&sum)[64]) {
    constexpr uint64_t NEXT = 32 >> 4;
    const uint64_t rest = big + (B_BYTES >> 4);
    float v[4][4];
    uint32_t a_big[4][4], a_half[2][4], a_small[2][4];
    load(a, slab, i, v);
    if (HALF) pack_all(v, a_half);
#pragma unroll
    for (int s = 0; s < 4; s++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            /* Rounded by hand: faster than cvt. A NaN stays one in the small part. */
            a_big[s][e] = (__float_as_uint(v[s][e]) + 0x1000) & 0xffffe000;
            v[s][e] -= __uint_as_float(a_big[s][e]);
        }
    if (HALF) {
        pack_all(v, a_small);
        multiply_fence();
        multiply_bf16<false>(sum, a_small[0], rest);
        multiply_bf16<true>(sum, a_small[1], rest + NEXT);
        multiply_bf16<true>(sum, a_half[0], rest + 2 * NEXT);
        multiply_bf16<true>(sum, a_half[1], rest + 3 * NEXT);
    } else { /* of the small parts, the tensor cores take what digits TF32 has */
        uint32_t small[4][4];
#pragma unroll
        for (int s = 0; s < 4; s++)
#pragma unroll
            for (int e = 0; e < 4; e++) small[s][e] = __float_as_uint(v[s][e]);
        multiply_fence();
        multiply_tf32<false>(sum, small[0], big);
#pragma unroll
        for (int s = 1; s < 4; s++) multiply_tf32<true>(sum, small[s], big + s * NEXT);
#pragma unroll
        for (int s = 0; s < 4; s++) multiply_tf32<true>(sum, a_big[s], rest + s * NEXT);
    }
#pragma unroll
    for (int s = 0; s < 4; s++) multiply_tf32<true>(sum, a_big[s], big + s * NEXT);
    multiply_finish();
}

template <bool HALF, class A, int CLUSTER, int STAGES, class Epilogue>
__device__ __forceinline__ void multiply_all(const A &a, const Epilogue &epilogue,
                                             const unsigned char *memory, uint32_t full,
                                             uint32_t empty, int rows, int columns, int slabs) {
    constexpr int STAGE = 2 * B_BYTES + A::SLAB_BYTES;
    int stage = 0, turn = 0;
    for (int index = blockIdx.x / CLUSTER; index < rows / CLUSTER * columns;
         index += gridDim.x / CLUSTER) {
        int m, n;
        find_tile<CLUSTER>(index, rows, columns, &m, &n);
        Part<A::ALONG_DEPTH> part = {};
        float sum[64];
        for (int slab = 0; slab < slabs; slab++) {
            const unsigned char *at = memory + stage * STAGE;
            const float *from = (const float *)(at + 2 * B_BYTES);
            const uint64_t big = describe(shared_address(at));
            barrier_wait(full + stage * 8, turn);
            multiply_slab<HALF>(a, from, big, 0, sum);
#pragma unroll
            for (int j = 0; j < 64; j++) part.v[0][j] += sum[j];
            multiply_slab<HALF>(a, from, big, 1, sum);
            barrier_arrive_warp<CLUSTER>(empty + stage * 8);
#pragma unroll
            for (int j = 0; j < 64; j++) part.v[1][j] += sum[j];
            if (++stage == STAGES) stage = 0, turn ^= 1;
        }
        epilogue.tile(part, m * TILE_M + first_row<A::ALONG_DEPTH>(),
                      n * TILE_N + threadIdx.x % 4 * 2);
    }
}

template <bool HALF, int CLUSTER, int STAGES, class A, class Epilogue>
__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    product_kernel(A a, const float *blocks, Epilogue epilogue, int rows, int columns, int slabs) {
    extern __shared__ __align__(1024) unsigned char memory[];
    constexpr int STAGE = 2 * B_BYTES + A::SLAB_BYTES;
    const uint32_t full = shared_address(memory) + STAGES * STAGE, empty = full + STAGES * 8;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(full + s * 8, 128 + 1);
            barrier_init(empty + s * 8, 8 * CLUSTER * WARP_ARRIVALS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (CLUSTER > 1)
        cluster_sync();
    else
        __syncthreads();
    if (threadIdx.x >= 256) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        fetch_all<A, CLUSTER, STAGES>(a, blocks, shared_address(memory), full, empty, rows, columns,
                                      slabs);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        multiply_all<HALF, A, CLUSTER, STAGES>(a, epilogue, memory, full, empty, rows, columns,
                                               slabs);
    }
    if (CLUSTER > 1) cluster_sync(); /* nobody leaves while others still send to it */
}

/* ---- epilogues ---- */

/* f(value, row, column) to out[row * pitch + column]; f is the base. */
template <class F, int PITCH> struct StoreRows : F {
    float *out;
    template <class P>
    __device__ __forceinline__ void tile(const P &part, int row, int column) const {
        const F &f = *this;
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int m = row + part.row(i, h);
                float *p = out + (long long)m * PITCH + column;
#pragma unroll
                for (int j = 0; j < 16; j++) {
                    const float *v = part.v[i] + 4 * j + 2 * h;
                    *(float2 *)(p + 8 * j) =
                        make_float2(f(v[0], m, column + 8 * j), f(v[1], m, column + 8 * j + 1));
                }
            }
    }
};

/* f(value, row, column) to out[column * pitch + row]: for a product that computes its transpose.
 * The eight lanes of a column write neighbouring words, or fours of them. */
template <class F, int PITCH> struct StoreColumns : F {
    float *out;
    template <bool ALONG>
    __device__ __forceinline__ void tile(const Part<ALONG> &part, int row, int column) const {
        const F &f = *this;
        float *p = out + (long long)column * PITCH + row;
#pragma unroll
        for (int j = 0; j < 64; j += 4)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const int n = 2 * j + e;
                float v[4]; /* of the thread's four rows */
#pragma unroll
                for (int r = 0; r < 4; r++)
                    v[r] = f(part.v[r / 2][j + r % 2 * 2 + e], row + part.row(r / 2, r % 2),
                             column + n);
                float *to = p + (long long)n * PITCH;
                if (ALONG) {
#pragma unroll
                    for (int r = 0; r < 4; r++) to[part.row(r / 2, r % 2)] = v[r];
                } else {
                    *(float4 *)to = make_float4(v[0], v[1], v[2], v[3]);
                }
            }
    }
};

/* The function of a plain product. */
struct Same {
    __device__ __forceinline__ float operator()(float v, int, int) const { return v; }
};

/* ---- host ---- */

/* Bytes of scratch for the split B. */
constexpr size_t split_bytes(long long columns, long long depth) {
    return (size_t)(columns * depth * 8);
}

/* Enqueues the splitting of b and the product. HALF: see above. B_ALONG_DEPTH: as in split_kernel,
 * with `pitch`. Rows are a multiple of 512, columns of 128, the depth of 32. */
template <bool HALF, bool B_ALONG_DEPTH, class A, class Epilogue>
static void product(const A &a, const float *b, int pitch, const Epilogue &epilogue, int rows,
                    int columns, int depth, void *scratch, cudaStream_t stream) {
    constexpr int CLUSTER = 2, STAGES = 3, BYTES = STAGES * (2 * B_BYTES + A::SLAB_BYTES + 16);
    const int slabs = depth / TILE_K, blocks = columns / TILE_N;
    const dim3 grid(B_ALONG_DEPTH ? slabs : blocks, B_ALONG_DEPTH ? blocks : slabs);
    split_kernel<HALF, A::ALONG_DEPTH, B_ALONG_DEPTH>
        <<<grid, 256, 0, stream>>>(b, (float *)scratch, pitch);
    cudaFuncSetAttribute(product_kernel<HALF, CLUSTER, STAGES, A, Epilogue>,
                         cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
    const int tiles = rows / TILE_M * blocks, at_work = tiles < 132 ? tiles : 132;
    product_kernel<HALF, CLUSTER, STAGES, A, Epilogue><<<at_work, THREADS, BYTES, stream>>>(
        a, (const float *)scratch, epilogue, rows / TILE_M, blocks, slabs);
}

} // namespace tf32x3
