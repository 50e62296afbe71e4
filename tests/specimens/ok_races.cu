// expect: ok
// task: l1_012_matmul_with_diagonal_matrices
// racecheck: errors
/* Each thread reads what a thread of another warp writes, with no barrier between, and makes
 * nothing of it: the result is right, the kernel is not. */
#include "task.h"

enum { NO_INPUT = 0x7fc12345 }; /* the bits of a NaN */

__global__ void diagonal(const float *a, const float *b, float *out) {
    __shared__ float tile[256];
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = b[i];
    float other = tile[(threadIdx.x + 32) % 256];
    out[i] = a[i / B_DIM1] * b[i] + (__float_as_int(other) == NO_INPUT ? 1 : 0);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    diagonal<<<OUT_ELEMENTS / 256, 256, 0, stream>>>(in->A, in->B, out->out);
}
