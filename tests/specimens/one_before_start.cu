// expect: wrong
// task: l1_012_matmul_with_diagonal_matrices
// reason: bytes outside the bounds of out
/* Correct, but also writes the element before the first one. */
#include "task.h"

__global__ void diagonal(const float *a, const float *b, float *out) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i / B_DIM1] * b[i];
}

__global__ void one_before(float *out) {
    out[-1] = 0.0f;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    diagonal<<<OUT_ELEMENTS / 256, 256, 0, stream>>>(in->A, in->B, out->out);
    one_before<<<1, 1, 0, stream>>>(out->out);
}
