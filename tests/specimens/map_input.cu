// expect: crash
// task: l1_019_relu
// reason: CUDA_ERROR
/* Clears its input by a tensor map, then computes the right answer for an input of zeros: inputs
 * are read-only for the copy engine, too.  (Before Hopper threads write.) */
#include "task.h"
#include "hopper_f16.cuh"

#include <cuda.h>

constexpr int ROWS = 32, COLUMNS = 64, THREADS = 256;
static_assert(X_DIM0 % ROWS == 0 && X_DIM1 % COLUMNS == 0, "whole boxes");

__global__ void clear_boxes(const __grid_constant__ CUtensorMap map) {
#if __CUDA_ARCH__ >= 900
    __shared__ __align__(128) float box[ROWS * COLUMNS];
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS) box[i] = 0;
    kp::fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        kp::copy_box_out((const kp::TensorMap *)&map, blockIdx.y * ROWS, blockIdx.x * COLUMNS,
                         kp::shared_address(box));
        kp::copies_out_wait<0>();
    }
#endif
}

__global__ void clear(float *x) {
    x[(size_t)blockIdx.x * THREADS + threadIdx.x] = 0;
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
        clear_boxes<<<dim3(X_DIM1 / COLUMNS, X_DIM0 / ROWS), THREADS, 0, stream>>>(map_of(in->x));
    else
        clear<<<OUT_ELEMENTS / THREADS, THREADS, 0, stream>>>((float *)in->x);
    cudaMemsetAsync(out->out, 0, sizeof(float) * OUT_ELEMENTS, stream);
}
