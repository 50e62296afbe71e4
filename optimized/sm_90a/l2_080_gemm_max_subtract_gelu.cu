// provenance: shipped
/* t = the largest of each row of x * transpose(W) + bias; out = gelu(t - mean(t)), the mean over
 * that one value: zero wherever t is finite. Computed as written, which shows a t that is not.
 * The product is computed in full, transposed; its epilogue keeps the largest of 32 features.
 *
 * Idea: one pass in TF32 and two in bf16 on the tensor cores (gemm_tf32x3.cuh).
 * Floor: 2 M N K flops over the TF32 rate and 4 M N K over that of bf16: 690 us.
 * Measured on an H200: 865 us, 80 % of the floor; cuBLAS fp32, the product alone: 2710 us. */
#include "task.h"
#include "activation.cuh"
#include "gemm_tf32x3.cuh"

constexpr int BATCH = X_DIM0, DEPTH = X_DIM1, FEATURES = GEMM_WEIGHT_DIM0, PARTS = FEATURES / 32;
constexpr size_t PART_OFFSET = tf32x3::split_bytes(BATCH, DEPTH);

/* The larger; NaN if either is one, as of a product with infinite operands. */
__device__ __forceinline__ float larger(float a, float b) {
    return a > b || a != a ? a : b;
}

/* Epilogue: part[item][feature / 32] = the largest value of 32 features, with bias: the rows of a
 * thread and of the eight lanes that share its columns. */
struct StoreMax {
    float *part;
    const float *bias;
    __device__ __forceinline__ void tile(const tf32x3::Part<true> &p, int row, int column) const {
        float b[2][2];
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int h = 0; h < 2; h++) b[i][h] = __ldg(bias + row + p.row(i, h));
#pragma unroll
        for (int j = 0; j < 16; j++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                float top = p.v[0][4 * j + e] + b[0][0];
                top = larger(top, p.v[0][4 * j + 2 + e] + b[0][1]);
                top = larger(top, p.v[1][4 * j + e] + b[1][0]);
                top = larger(top, p.v[1][4 * j + 2 + e] + b[1][1]);
#pragma unroll
                for (int apart = 4; apart < 32; apart *= 2)
                    top = larger(top, __shfl_xor_sync(~0u, top, apart));
                if (threadIdx.x % 32 < 4) part[(column + 8 * j + e) * PARTS + row / 32] = top;
            }
    }
};

/* out[item] from the item's parts, a warp an item. */
__global__ void __launch_bounds__(256)
    join_kernel(const float *__restrict__ part, float *__restrict__ out) {
    const int item = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    float top = part[item * PARTS + lane];
    for (int p = lane + 32; p < PARTS; p += 32) top = larger(top, part[item * PARTS + p]);
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) top = larger(top, __shfl_xor_sync(~0u, top, apart));
    const float mean = top / OUT_DIM1;
    if (lane == 0) out[item] = Gelu()(top - mean);
}

extern "C" size_t scratch_bytes(void) {
    return PART_OFFSET + (size_t)BATCH * PARTS * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *part = (float *)((char *)scratch + PART_OFFSET);
    const tf32x3::AlongDepth<DEPTH> weight = {in->gemm_weight};
    const StoreMax store = {part, in->gemm_bias};
    tf32x3::product<true, true>(weight, in->x, DEPTH, store, FEATURES, BATCH, DEPTH, scratch,
                                stream);
    join_kernel<<<BATCH / 8, 256, 0, stream>>>(part, out->out);
}
