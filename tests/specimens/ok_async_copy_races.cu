// expect: ok
// task: l1_012_matmul_with_diagonal_matrices
// racecheck: errors
/* Each thread reads what a copy brings to shared memory before it waits for that, too, and makes
 * nothing of it: the result is right, the kernel is not. (Elsewhere than on Hopper: what
 * another warp writes.) */
#include "task.h"
#include "hopper.cuh"

enum { NO_INPUT = 0x7fc12345 }; /* the bits of a NaN */

__global__ void diagonal(const float *a, const float *b, float *out) {
    __shared__ __align__(16) float tile[256];
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
#if __CUDA_ARCH__ == 900
    __shared__ uint64_t bar;
    const uint32_t full = kp::shared_address(&bar);
    if (threadIdx.x == 0) {
        kp::bar_init(full, 1);
        kp::bar_init_done();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 0; k < 256; k += 4)
            kp::copy_async<16>(kp::shared_address(tile + k), b + i + k);
        kp::bar_arrive_copied(full);
    }
    const float early = tile[threadIdx.x];
    kp::bar_wait(full, 0);
#else
    tile[threadIdx.x] = b[i];
    const float early = tile[(threadIdx.x + 32) % 256];
#endif
    out[i] = a[i / B_DIM1] * tile[threadIdx.x] + (__float_as_int(early) == NO_INPUT ? 1 : 0);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    diagonal<<<OUT_ELEMENTS / 256, 256, 0, stream>>>(in->A, in->B, out->out);
}
