// expect: ok
// task: l1_019_relu
/* Reads and writes boxes of 32 x 64 values by tensor maps, which the driver's function makes
 * (before Hopper there are none, and each thread takes a value). */
#include "task.h"
#include "hopper_f16.cuh"

constexpr int ROWS = 32, COLUMNS = 64, THREADS = 256;
static_assert(X_DIM0 % ROWS == 0 && X_DIM1 % COLUMNS == 0, "whole boxes");

__global__ void relu_boxes(const __grid_constant__ CUtensorMap from,
                           const __grid_constant__ CUtensorMap to) {
#if __CUDA_ARCH__ >= 900
    __shared__ __align__(128) float box[ROWS * COLUMNS];
    __shared__ uint64_t bar;
    const uint32_t at = kp::shared_address(box), full = kp::shared_address(&bar);
    const int column = blockIdx.x * COLUMNS, row = blockIdx.y * ROWS;
    if (threadIdx.x == 0) {
        kp::bar_init(full, 1);
        kp::bar_init_done();
        kp::bar_expect(full, sizeof box);
        kp::copy_box<1>(at, &from, row, column, full);
    }
    __syncthreads();
    kp::bar_wait(full, 0);
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS)
        box[i] = box[i] < 0 ? 0 : box[i]; /* a NaN stays one */
    kp::fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        kp::copy_box_out(&to, row, column, at);
        kp::copies_out_wait<0>();
    }
#endif
}

__global__ void relu(const float *x, float *out) {
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    out[i] = x[i] < 0 ? 0 : x[i];
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
        relu_boxes<<<dim3(X_DIM1 / COLUMNS, X_DIM0 / ROWS), THREADS, 0, stream>>>(map_of(in->x),
                                                                                  map_of(out->out));
    else
        relu<<<OUT_ELEMENTS / THREADS, THREADS, 0, stream>>>(in->x, out->out);
}
