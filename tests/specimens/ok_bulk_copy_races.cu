// expect: ok
// task: l1_012_matmul_with_diagonal_matrices
// racecheck: errors
/* Each thread reads what a bulk copy brings to shared memory before it waits for that, too, and
 * makes nothing of it: the result is right, the kernel is not. (Elsewhere than on Hopper: what
 * another warp writes.) */
#include "task.h"
#include "hopper_f16.cuh"

enum { NO_INPUT = 0x7fc12345 }; /* the bits of a NaN */

__global__ void diagonal(const float *a, const float *b, float *out) {
    __shared__ __align__(16) float tile[256];
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
#if __CUDA_ARCH__ == 900
    __shared__ uint64_t full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_init_done();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        barrier_expect(&full, sizeof tile);
        bulk_copy(tile, b + i, sizeof tile, &full);
        bulk_copied(&full);
    }
    const float early = tile[threadIdx.x];
    barrier_wait(&full, 0);
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
