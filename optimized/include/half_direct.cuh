/* half_direct.cuh: out = A * B for small products, f16 in and out, fp32 sums: no stages and no
 * shared memory before the end, because time is a launch and a few trips to memory.
 *
 * A block computes a tile; its warps share the depth, 32 at a time, and add up in shared memory.
 * Both operands are read along the depth. Its order is free, so a lane reads 16 bytes of a row,
 * and takes them for what it multiplies in two steps of 16.
 *
 * Reaches 3.9 to 5.7 us, of which the bytes' floor is 5 % at most (80 shapes of hgemm,
 * results/h200). */
#pragma once
#include <cuda_fp16.h>
#include "mma_f16.cuh"

namespace kp {

/* The sizes of a product, of a tile, and warps that share its depth. */
template <int M_, int N_, int K_, int TILE_M_, int TILE_N_, int WARPS_> struct DirectTile {
    static constexpr int M = M_, N = N_, K = K_, TILE_M = TILE_M_, TILE_N = TILE_N_;
    static constexpr int WARPS = WARPS_, THREADS = WARPS * 32, CHUNKS = K / 32 / WARPS;
    static constexpr int AT_ONCE = TILE_M > 16 ? 2 : 4, PITCH = TILE_N + 8;
    static constexpr int FRAGS_M = TILE_M / 16, FRAGS_N = TILE_N / 8;
    static_assert(M % TILE_M == 0 && N % TILE_N == 0 && K % (32 * WARPS) == 0, "whole tiles");
    static_assert(WARPS * TILE_M * PITCH * 4 <= 96 * 1024, "shared memory");
    static_assert((M > N ? M : N) * (long long)(N > K ? N : K) < 1ll << 31, "32-bit offsets");
};

/* A chunk of 32 of the depth, as a lane has it. */
template <class T> struct DirectChunk {
    uint4 a[T::FRAGS_M][2], b[T::FRAGS_N];

    __device__ __forceinline__ void load(const __half *pa, const __half *pb) {
#pragma unroll
        for (int i = 0; i < T::FRAGS_M * 2; i++)
            a[i / 2][i % 2] = __ldg((const uint4 *)(pa + i * 8 * T::K));
#pragma unroll
        for (int j = 0; j < T::FRAGS_N; j++) b[j] = __ldg((const uint4 *)(pb + j * 8 * T::K));
    }

    __device__ __forceinline__ void multiply(float (&sums)[T::FRAGS_M][T::FRAGS_N][4]) const {
#pragma unroll
        for (int i = 0; i < T::FRAGS_M; i++)
#pragma unroll
            for (int j = 0; j < T::FRAGS_N; j++) {
                const uint4 x = a[i][0], y = a[i][1], z = b[j];
                mma_f16(sums[i][j], {x.x, y.x, x.y, y.y}, {z.x, z.y});
                mma_f16(sums[i][j], {x.z, y.z, x.w, y.w}, {z.z, z.w});
            }
    }
};

/* Grid: x the tiles along N, y along M. */
template <class T>
__global__ void __launch_bounds__(T::THREADS)
    direct_kernel(const __half *__restrict__ a, const __half *__restrict__ bt,
                  __half *__restrict__ out) {
    extern __shared__ __align__(16) float sums_of_warps[];
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const int m = blockIdx.y * T::TILE_M, n = blockIdx.x * T::TILE_N;
    const __half *pa = a + (m + g) * T::K + warp * 32 + t * 8;
    const __half *pb = bt + (n + g) * T::K + warp * 32 + t * 8;
    float sums[T::FRAGS_M][T::FRAGS_N][4] = {};
    constexpr int EACH = T::CHUNKS < T::AT_ONCE ? T::CHUNKS : T::AT_ONCE;
    static_assert(T::CHUNKS % EACH == 0, "a warp's chunks are whole groups");
    for (int chunk = 0; chunk < T::CHUNKS; chunk += EACH) {
        DirectChunk<T> c[EACH];
#pragma unroll
        for (int e = 0; e < EACH; e++, pa += 32 * T::WARPS, pb += 32 * T::WARPS) c[e].load(pa, pb);
#pragma unroll
        for (int e = 0; e < EACH; e++) c[e].multiply(sums);
    }
    float *mine = sums_of_warps + warp * T::TILE_M * T::PITCH;
#pragma unroll
    for (int i = 0; i < T::FRAGS_M; i++)
#pragma unroll
        for (int j = 0; j < T::FRAGS_N; j++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                *(float2 *)(mine + (i * 16 + h * 8 + g) * T::PITCH + j * 8 + t * 2) =
                    make_float2(sums[i][j][h * 2], sums[i][j][h * 2 + 1]);
    __syncthreads();
    for (int i = threadIdx.x; i < T::TILE_M * T::TILE_N / 4; i += T::THREADS) {
        const int row = i / (T::TILE_N / 4), column = i % (T::TILE_N / 4) * 4;
        const float *from = sums_of_warps + row * T::PITCH + column;
        float4 v = *(const float4 *)from;
#pragma unroll
        for (int w = 1; w < T::WARPS; w++) {
            const float4 x = *(const float4 *)(from + w * T::TILE_M * T::PITCH);
            v = make_float4(v.x + x.x, v.y + x.y, v.z + x.z, v.w + x.w);
        }
        __half2 *to = (__half2 *)(out + (m + row) * T::N + n + column);
        to[0] = __floats2half2_rn(v.x, v.y);
        to[1] = __floats2half2_rn(v.z, v.w);
    }
}

/* Enqueues the product of a (M x K) and bt (N x K) transposed. */
template <class T>
static void direct_product(const __half *a, const __half *bt, __half *out, cudaStream_t stream) {
    constexpr int BYTES = T::WARPS * T::TILE_M * T::PITCH * 4;
    cudaFuncSetAttribute(direct_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
    direct_kernel<T>
        <<<dim3(T::N / T::TILE_N, T::M / T::TILE_M), T::THREADS, BYTES, stream>>>(a, bt, out);
}

} // namespace kp
