/* tensor_gemm.cuh: C = A * B on the tensor cores with fp32 sums, and a hook for the result.
 *
 * Elements are f16, bf16 or float; floats are rounded to TF32. A block computes a tile; slabs of A
 * and B arrive in shared memory by asynchronous copies, some stages ahead of the warps that
 * multiply them as fragments of 16 x 16 by 32 bytes of the depth (the summed axis). The sums pass
 * through shared memory at the end, 16 x 16 at a time. All matrices are row-major, without gaps.
 * Reaches a third of the f16 rate (4096^3 in 512 us, in development; no result is of it).
 *
 * An epilogue is called once for each half row of a fragment, by whole warps:
 *   void row(int m, int n, int columns, const float (&v)[8])
 * where v belongs to columns n..n+7 of row m, and `columns` is how many there are. The two lanes
 * that share a row are neighbours (lane/2 is equal) and hold 16 consecutive columns of it.
 * Epilogues are kernel parameters: they have no padding (gemm.cuh says why). */
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
#include <type_traits>
#include "gemm.cuh" /* Same */

/* The sizes of a tile: M x N x K of a slab, warps along M and N, stages; and whether B is given
 * transposed. */
template <class Element_, int M_, int N_, int K_, int WARPS_M_, int WARPS_N_, int STAGES_,
          bool B_ALONG_DEPTH_ = false>
struct TensorTile {
    using Element = Element_;
    static constexpr int M = M_, N = N_, K = K_, STAGES = STAGES_;
    static constexpr int WARPS_M = WARPS_M_, WARPS_N = WARPS_N_, WARPS = WARPS_M * WARPS_N;
    static constexpr bool B_ALONG_DEPTH = B_ALONG_DEPTH_;
    static constexpr int THREADS = WARPS * 32;
    static constexpr int FRAGS_M = M / WARPS_M / 16, FRAGS_N = N / WARPS_N / 16; /* of a warp */
    static constexpr int FRAG_K = 32 / sizeof(Element);
    /* Rows are padded by 16 bytes, so that the rows of a fragment fall into different banks. */
    static constexpr int PAD = 16 / sizeof(Element);
    static constexpr int ROWS_B = B_ALONG_DEPTH ? N : K, COLUMNS_B = B_ALONG_DEPTH ? K : N;
    static constexpr int PITCH_A = K + PAD, PITCH_B = COLUMNS_B + PAD;
    static constexpr int STAGE_A = M * PITCH_A, STAGE_B = ROWS_B * PITCH_B; /* in elements */
    static constexpr int PATCH_PITCH = 20, PATCH = 16 * PATCH_PITCH; /* of floats, one a warp */
    static constexpr int BYTES = STAGES * (STAGE_A + STAGE_B) * (int)sizeof(Element);
    static_assert(M % (WARPS_M * 16) == 0 && N % (WARPS_N * 16) == 0, "whole fragments");
    static_assert(BYTES >= WARPS * PATCH * (int)sizeof(float), "the patches reuse the stages");
    static_assert(BYTES <= 99 * 1024, "shared memory of a block on the smaller GPUs");
    static_assert(K % FRAG_K == 0 && STAGE_A % FRAG_K == 0 && STAGE_B % FRAG_K == 0,
                  "fragment alignment");
};

/* Starts the copy of a ROWS x COLUMNS box to shared memory, 16 bytes at a time. */
template <int ROWS, int COLUMNS, int PITCH, int THREADS, class E>
__device__ __forceinline__ void copy_box(E *to, const E *from, int from_pitch) {
    constexpr int PIECE = 16 / sizeof(E), PIECES = ROWS * COLUMNS / PIECE;
    static_assert(PIECES % THREADS == 0, "every thread copies as much");
#pragma unroll
    for (int j = 0; j < PIECES / THREADS; j++) {
        const int piece = threadIdx.x + j * THREADS;
        const int r = piece / (COLUMNS / PIECE), c = piece % (COLUMNS / PIECE) * PIECE;
        __pipeline_memcpy_async(to + r * PITCH + c, from + (long long)r * from_pitch + c, 16);
    }
}

/* What elements are multiplied as. */
template <class E> struct Multiplied { using As = E; };
template <> struct Multiplied<float> { using As = nvcuda::wmma::precision::tf32; };

template <class T, class Use, bool ROW_MAJOR>
using Factor = nvcuda::wmma::fragment<
    Use, 16, 16, T::FRAG_K, typename Multiplied<typename T::Element>::As,
    std::conditional_t<ROW_MAJOR, nvcuda::wmma::row_major, nvcuda::wmma::col_major>>;

template <class T>
using Sums =
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, T::FRAG_K, float>[T::FRAGS_M]
                                                                               [T::FRAGS_N];

/* Loads a fragment. The tensor cores would cut the lower digits of floats off. */
template <class Fragment, class E>
__device__ __forceinline__ void load_factor(Fragment &to, const E *from, int pitch) {
    nvcuda::wmma::load_matrix_sync(to, from, pitch);
    if constexpr (std::is_same_v<E, float>) {
#pragma unroll
        for (int i = 0; i < to.num_elements; i++) to.x[i] = nvcuda::wmma::__float_to_tf32(to.x[i]);
    }
}

/* sums += a warp's part of one slab; `a` and `b` point at its first row and column. */
template <class T>
__device__ __forceinline__ void multiply_slab(const typename T::Element *a,
                                              const typename T::Element *b, Sums<T> &sums) {
    using namespace nvcuda::wmma;
    constexpr int STEP_K = T::B_ALONG_DEPTH ? 1 : T::PITCH_B;
    constexpr int STEP_N = T::B_ALONG_DEPTH ? T::PITCH_B : 1;
#pragma unroll
    for (int k = 0; k < T::K; k += T::FRAG_K) {
        Factor<T, matrix_a, true> left[T::FRAGS_M];
        Factor<T, matrix_b, !T::B_ALONG_DEPTH> right[T::FRAGS_N];
#pragma unroll
        for (int i = 0; i < T::FRAGS_M; i++)
            load_factor(left[i], a + i * 16 * T::PITCH_A + k, T::PITCH_A);
#pragma unroll
        for (int j = 0; j < T::FRAGS_N; j++)
            load_factor(right[j], b + k * STEP_K + j * 16 * STEP_N, T::PITCH_B);
#pragma unroll
        for (int i = 0; i < T::FRAGS_M; i++)
#pragma unroll
            for (int j = 0; j < T::FRAGS_N; j++)
                mma_sync(sums[i][j], left[i], right[j], sums[i][j]);
    }
}

/* Hands a warp's sums to the epilogue: each fragment goes through `patch`, from where a lane takes
 * half a row. */
template <class T, class Epilogue>
__device__ __forceinline__ void finish_sums(float *patch, Sums<T> &sums, const Epilogue &epilogue,
                                            int m, int n, int columns) {
    const int lane = threadIdx.x % 32, r = lane / 2, c = lane % 2 * 8;
#pragma unroll
    for (int i = 0; i < T::FRAGS_M; i++)
#pragma unroll
        for (int j = 0; j < T::FRAGS_N; j++) {
            nvcuda::wmma::store_matrix_sync(patch, sums[i][j], T::PATCH_PITCH,
                                            nvcuda::wmma::mem_row_major);
            __syncwarp();
            float v[8];
#pragma unroll
            for (int q = 0; q < 8; q++) v[q] = patch[r * T::PATCH_PITCH + c + q];
            epilogue.row(m + i * 16 + r, n + j * 16 + c, columns, v);
            __syncwarp();
        }
}

/* Stores eight neighbours, rounded to the type. */
__device__ __forceinline__ void store_eight(__half *to, const float (&v)[8]) {
    __align__(16) __half2 h[4];
#pragma unroll
    for (int q = 0; q < 4; q++) h[q] = __floats2half2_rn(v[2 * q], v[2 * q + 1]);
    *(float4 *)to = *(const float4 *)h;
}
__device__ __forceinline__ void store_eight(__nv_bfloat16 *to, const float (&v)[8]) {
    __align__(16) __nv_bfloat162 h[4];
#pragma unroll
    for (int q = 0; q < 4; q++) h[q] = __floats2bfloat162_rn(v[2 * q], v[2 * q + 1]);
    *(float4 *)to = *(const float4 *)h;
}
__device__ __forceinline__ void store_eight(float *to, const float (&v)[8]) {
#pragma unroll
    for (int h = 0; h < 8; h += 4)
        *(float4 *)(to + h) = make_float4(v[h], v[h + 1], v[h + 2], v[h + 3]);
}

/* Epilogue: f(value, column) stored as E; f is the base. Same: the sums themselves. */
template <class E, class F> struct StoreAs : F {
    E *out;
    __device__ __forceinline__ void row(int m, int n, int columns, const float (&v)[8]) const {
        const F &f = *this;
        float w[8];
#pragma unroll
        for (int i = 0; i < 8; i++) w[i] = f(v[i], n + i);
        store_eight(out + (long long)m * columns + n, w);
    }
};

/* One tile a block. Grid: x the tiles along N, y along M. */
template <class T, class Epilogue>
__global__ void __launch_bounds__(T::THREADS)
    tensor_product_kernel(const typename T::Element *__restrict__ a,
                          const typename T::Element *__restrict__ b, Epilogue epilogue, int columns,
                          int depth) {
    extern __shared__ __align__(128) __half memory[]; /* of one type, whatever the elements */
    typename T::Element *stages_a = (typename T::Element *)memory;
    typename T::Element *stages_b = stages_a + T::STAGES * T::STAGE_A;
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
            const long long place = T::B_ALONG_DEPTH ? (long long)first_n * depth + slab * T::K
                                                     : (long long)slab * T::K * columns + first_n;
            copy_box<T::ROWS_B, T::COLUMNS_B, T::PITCH_B, T::THREADS>(
                stages_b + stage * T::STAGE_B, b + place, T::B_ALONG_DEPTH ? depth : columns);
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
                         stages_b + stage * T::STAGE_B + (T::B_ALONG_DEPTH ? n * T::PITCH_B : n),
                         sums);
    }
    __syncthreads(); /* the patches reuse the stages */
    finish_sums<T>((float *)memory + warp * T::PATCH, sums, epilogue, first_m + m, first_n + n,
                   columns);
}

/* Enqueues a * b, where b is columns x depth if B is given transposed. Rows, columns and depth are
 * multiples of the tile. */
template <class T, class Epilogue>
static void tensor_product(const typename T::Element *a, const typename T::Element *b,
                           const Epilogue &epilogue, int rows, int columns, int depth,
                           cudaStream_t stream) {
    cudaFuncSetAttribute(tensor_product_kernel<T, Epilogue>,
                         cudaFuncAttributeMaxDynamicSharedMemorySize, T::BYTES);
    tensor_product_kernel<T><<<dim3(columns / T::N, rows / T::M), T::THREADS, T::BYTES, stream>>>(
        a, b, epilogue, columns, depth);
}
