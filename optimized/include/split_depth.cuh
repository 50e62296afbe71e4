/* split_depth.cuh: products (product.cuh) with few results and much depth (split-K): each of PARTS
 * batches sums a part of the depth into scratch memory, and a second kernel adds the parts in
 * order. Reaches 81 % of the products' floor (l1_006). */
#pragma once
#include "product.cuh"

namespace kp {

template <long long ROWS, int COLUMNS, int DEPTH, int PARTS>
struct SplitDepth : Matrices<ROWS, COLUMNS, DEPTH, PARTS, true> {
    static constexpr int SLABS = Matrices<ROWS, COLUMNS, DEPTH>::SLABS;
    static constexpr int EACH = (SLABS + PARTS - 1) / PARTS;
    static __device__ __forceinline__ int first_slab(int batch, int, int, int, int) {
        return min(batch * EACH, SLABS);
    }
    static __device__ __forceinline__ int end_slab(int batch, int, int, int, int) {
        return min((batch + 1) * EACH, SLABS);
    }
    static constexpr size_t parts_bytes() { return (size_t)PARTS * ROWS * COLUMNS * 4; }
};

/* out[i] = the sum of parts[p * count + i] over p. A thread an element. */
template <int PARTS>
__global__ void __launch_bounds__(256)
    add_parts_kernel(const float *__restrict__ parts, float *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    float sum[4] = {};
#pragma unroll 4
    for (int p = 0; p < PARTS; p++) sum[p % 4] += parts[(long long)p * count + i];
    out[i] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

template <int PARTS>
static void add_parts(const float *parts, float *out, int count, cudaStream_t stream) {
    add_parts_kernel<PARTS><<<(count + 255) / 256, 256, 0, stream>>>(parts, out, count);
}

} // namespace kp
