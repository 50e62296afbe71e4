// expect: crash
// task: l1_019_relu
// reason: CUDA_ERROR
/* Computes in place, by a tensor map over its input, and copies: inputs are read-only for the copy
 * engine, too.  (Hopper; before, each thread writes to its input.) */
#include "task.h"

#include <cuda.h>

constexpr int ROWS = 32, COLUMNS = 64, THREADS = 256;
static_assert(X_DIM0 % ROWS == 0 && X_DIM1 % COLUMNS == 0, "whole boxes");

__global__ void relu_in_place(const __grid_constant__ CUtensorMap map) {
#if __CUDA_ARCH__ >= 900
    __shared__ __align__(128) float box[ROWS * COLUMNS];
    __shared__ uint64_t bar;
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(box);
    const uint32_t full = (uint32_t)__cvta_generic_to_shared(&bar);
    const int column = blockIdx.x * COLUMNS, row = blockIdx.y * ROWS;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;\n"
                     "fence.mbarrier_init.release.cluster;\n"
                     "mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(full),
                     "n"(sizeof box)
                     : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx"
                     "::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(at),
                     "l"(&map), "r"(column), "r"(row), "r"(full)
                     : "memory");
    }
    __syncthreads();
    for (int done = 0; !done;)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0;\n"
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(full)
                     : "memory");
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS)
        box[i] = box[i] < 0 ? 0 : box[i]; /* a NaN stays one */
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
                     " [%0, {%1, %2}], [%3];\n"
                     "cp.async.bulk.commit_group;\n"
                     "cp.async.bulk.wait_group 0;" ::"l"(&map),
                     "r"(column), "r"(row), "r"(at)
                     : "memory");
#endif
}

__global__ void relu(float *x) {
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    x[i] = x[i] < 0 ? 0 : x[i];
}

static CUtensorMap map_of(const float *array) {
    const cuuint64_t dimension[] = {X_DIM1, X_DIM0}, stride[] = {(cuuint64_t)X_DIM1 * 4};
    const cuuint32_t box[] = {COLUMNS, ROWS}, element_stride[] = {1, 1};
    CUtensorMap m;
    cuTensorMapEncodeTiled(&m, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void *)array, dimension, stride,
                           box, element_stride, CU_TENSOR_MAP_INTERLEAVE_NONE,
                           CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                           CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return m;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    int device = 0, major = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (major >= 9)
        relu_in_place<<<dim3(X_DIM1 / COLUMNS, X_DIM0 / ROWS), THREADS, 0, stream>>>(map_of(in->x));
    else
        relu<<<OUT_ELEMENTS / THREADS, THREADS, 0, stream>>>((float *)in->x);
    cudaMemcpyAsync(out->out, in->x, sizeof(float) * OUT_ELEMENTS, cudaMemcpyDeviceToDevice,
                    stream);
}
