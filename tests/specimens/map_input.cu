// expect: crash
// task: l1_019_relu
// reason: CUDA_ERROR
/* Clears its input by a tensor map, then computes the right answer for an input of zeros: inputs
 * are read-only for the copy engine, too.  (Before Hopper threads write.) */
#include "task.h"
#include "hopper_f16.cuh"

constexpr int ROWS = 32, COLUMNS = 32, THREADS = 256; /* of a box; to its map 64 halves a row */
static_assert(X_DIM0 % ROWS == 0 && X_DIM1 % COLUMNS == 0, "whole boxes");

__global__ void clear_boxes(const __grid_constant__ kp::TensorMap map) {
#if __CUDA_ARCH__ >= 900
    __shared__ __align__(1024) float box[ROWS * COLUMNS];
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS) box[i] = 0;
    kp::fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        kp::copy_box_out(&map, blockIdx.y * ROWS, blockIdx.x * COLUMNS * 2,
                         kp::shared_address(box));
        kp::copies_out_wait<0>();
    }
#endif
}

__global__ void clear(float *x) {
    x[(size_t)blockIdx.x * THREADS + threadIdx.x] = 0;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    int device = 0, major = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (major >= 9)
        clear_boxes<<<dim3(X_DIM1 / COLUMNS, X_DIM0 / ROWS), THREADS, 0, stream>>>(
            kp::map_of((const __half *)in->x, X_DIM0, X_DIM1 * 2, ROWS));
    else
        clear<<<OUT_ELEMENTS / THREADS, THREADS, 0, stream>>>((float *)in->x);
    cudaMemsetAsync(out->out, 0, sizeof(float) * OUT_ELEMENTS, stream);
}
