// expect: ok
// task: l1_012_matmul_with_diagonal_matrices
// memcheck: errors
/* The last thread reads one element past the end of B and makes nothing of it: verification cannot
 * see that, as it lies in the padding there; memcheck on exact allocations can. */
#include "task.h"

__global__ void diagonal(const float *a, const float *b, float *out) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float next = b[i + 1];
    out[i] = a[i / B_DIM1] * b[i] + (isinf(next) ? 1 : 0);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    diagonal<<<OUT_ELEMENTS / 256, 256, 0, stream>>>(in->A, in->B, out->out);
}
