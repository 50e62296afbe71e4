/* hgemm.cuh: out = A * B on the tensor cores, f16 in and out, fp32 sums.
 *
 * A block computes a tile; slabs of A and B arrive in shared memory by asynchronous copies, some
 * stages ahead of the warps that multiply them as 16 x 16 x 16 fragments. The sums become f16 only
 * at the end, 16 x 16 at a time through shared memory. All matrices are row-major. */
#pragma once
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

/* The sizes of a tile: M x N x K of a slab, warps along M and N, stages. */
template <int M_, int N_, int K_, int WARPS_M_, int WARPS_N_, int STAGES_> struct HalfTile {
    static constexpr int M = M_, N = N_, K = K_, STAGES = STAGES_;
    static constexpr int WARPS_M = WARPS_M_, WARPS_N = WARPS_N_, WARPS = WARPS_M * WARPS_N;
    static constexpr int THREADS = WARPS * 32;
    static constexpr int FRAGS_M = M / WARPS_M / 16, FRAGS_N = N / WARPS_N / 16; /* of a warp */
    /* Rows are padded by 16 bytes, so that the rows of a fragment fall into different banks. */
    static constexpr int PITCH_A = K + 8, PITCH_B = N + 8;
    static constexpr int STAGE_A = M * PITCH_A, STAGE_B = K * PITCH_B; /* in halves */
    static constexpr int PATCH_PITCH = 20, PATCH = 16 * PATCH_PITCH;   /* of floats, one a warp */
    static constexpr int BYTES = STAGES * (STAGE_A + STAGE_B) * (int)sizeof(__half);
    static_assert(BYTES >= WARPS * PATCH * (int)sizeof(float), "the patches reuse the stages");
    static_assert(BYTES <= 99 * 1024, "shared memory of a block on the smaller GPUs");
    static_assert(K % 16 == 0 && STAGE_A % 16 == 0 && STAGE_B % 16 == 0, "fragment alignment");
};

/* Starts the copy of a ROWS x COLUMNS box to shared memory, 16 bytes at a time. */
template <int ROWS, int COLUMNS, int PITCH, int THREADS>
__device__ __forceinline__ void copy_box(__half *to, const __half *from, int from_pitch) {
    constexpr int PIECES = ROWS * COLUMNS / 8;
    static_assert(PIECES % THREADS == 0, "every thread copies as much");
#pragma unroll
    for (int j = 0; j < PIECES / THREADS; j++) {
        const int piece = threadIdx.x + j * THREADS;
        const int r = piece / (COLUMNS / 8), c = piece % (COLUMNS / 8) * 8;
        __pipeline_memcpy_async(to + r * PITCH + c, from + (long long)r * from_pitch + c, 16);
    }
}

template <class T>
using Sums =
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float>[T::FRAGS_M][T::FRAGS_N];

/* sums += a warp's part of one slab; `a` and `b` point at its first row and column. */
template <class T>
__device__ __forceinline__ void multiply_slab(const __half *a, const __half *b, Sums<T> &sums) {
    using namespace nvcuda::wmma;
#pragma unroll
    for (int k = 0; k < T::K; k += 16) {
        fragment<matrix_a, 16, 16, 16, __half, row_major> left[T::FRAGS_M];
        fragment<matrix_b, 16, 16, 16, __half, row_major> right[T::FRAGS_N];
#pragma unroll
        for (int i = 0; i < T::FRAGS_M; i++)
            load_matrix_sync(left[i], a + i * 16 * T::PITCH_A + k, T::PITCH_A);
#pragma unroll
        for (int j = 0; j < T::FRAGS_N; j++)
            load_matrix_sync(right[j], b + k * T::PITCH_B + j * 16, T::PITCH_B);
#pragma unroll
        for (int i = 0; i < T::FRAGS_M; i++)
#pragma unroll
            for (int j = 0; j < T::FRAGS_N; j++)
                mma_sync(sums[i][j], left[i], right[j], sums[i][j]);
    }
}

/* Stores a warp's sums as f16: each fragment goes through `patch`, from where a lane takes half a
 * row. */
template <class T>
__device__ __forceinline__ void store_sums(float *patch, Sums<T> &sums, __half *out, int pitch) {
    const int lane = threadIdx.x % 32, r = lane / 2, c = lane % 2 * 8;
#pragma unroll
    for (int i = 0; i < T::FRAGS_M; i++)
#pragma unroll
        for (int j = 0; j < T::FRAGS_N; j++) {
            nvcuda::wmma::store_matrix_sync(patch, sums[i][j], T::PATCH_PITCH,
                                            nvcuda::wmma::mem_row_major);
            __syncwarp();
            __align__(16) __half2 h[4];
#pragma unroll
            for (int q = 0; q < 4; q++)
                h[q] = __floats2half2_rn(patch[r * T::PATCH_PITCH + c + 2 * q],
                                         patch[r * T::PATCH_PITCH + c + 2 * q + 1]);
            *(float4 *)(out + (long long)(i * 16 + r) * pitch + j * 16 + c) = *(const float4 *)h;
            __syncwarp();
        }
}

/* One tile a block. Grid: x the tiles along N, y along M. */
template <class T>
__global__ void __launch_bounds__(T::THREADS)
    half_product_kernel(const __half *__restrict__ a, const __half *__restrict__ b,
                        __half *__restrict__ out, int columns, int depth) {
    extern __shared__ __align__(128) __half stages[];
    __half *stages_a = stages, *stages_b = stages + T::STAGES * T::STAGE_A;
    const int warp = threadIdx.x / 32;
    const int m = warp / T::WARPS_N * T::FRAGS_M * 16, n = warp % T::WARPS_N * T::FRAGS_N * 16;
    const long long first_m = (long long)blockIdx.y * T::M;
    const int first_n = blockIdx.x * T::N;
    const int slabs = depth / T::K;

    auto copy_slab = [&](int slab) {
        const int stage = slab % T::STAGES;
        if (slab < slabs) {
            copy_box<T::M, T::K, T::PITCH_A, T::THREADS>(stages_a + stage * T::STAGE_A,
                                                         a + first_m * depth + slab * T::K, depth);
            copy_box<T::K, T::N, T::PITCH_B, T::THREADS>(
                stages_b + stage * T::STAGE_B, b + (long long)slab * T::K * columns + first_n,
                columns);
        }
        __pipeline_commit(); /* also when empty: the wait below counts commits */
    };

    Sums<T> sums;
    for (int i = 0; i < T::FRAGS_M; i++)
        for (int j = 0; j < T::FRAGS_N; j++) nvcuda::wmma::fill_fragment(sums[i][j], 0.0f);
    for (int s = 0; s < T::STAGES - 1; s++) copy_slab(s);
    for (int slab = 0; slab < slabs; slab++) {
        __pipeline_wait_prior(T::STAGES - 2);
        __syncthreads(); /* the slab is there for all, and the stage filled next is free */
        copy_slab(slab + T::STAGES - 1);
        const int stage = slab % T::STAGES;
        multiply_slab<T>(stages_a + stage * T::STAGE_A + m * T::PITCH_A,
                         stages_b + stage * T::STAGE_B + n, sums);
    }
    __syncthreads(); /* the patches reuse the stages */
    store_sums<T>((float *)stages + warp * T::PATCH, sums,
                  out + (first_m + m) * columns + first_n + n, columns);
}

/* Enqueues out = a * b: rows, columns and depth are multiples of the tile. */
template <class T>
static void half_product(const __half *a, const __half *b, __half *out, int rows, int columns,
                         int depth, cudaStream_t stream) {
    cudaFuncSetAttribute(half_product_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         T::BYTES);
    half_product_kernel<T><<<dim3(columns / T::N, rows / T::M), T::THREADS, T::BYTES, stream>>>(
        a, b, out, columns, depth);
}
