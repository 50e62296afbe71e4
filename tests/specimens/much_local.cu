// expect: tape
// task: l1_012_matmul_with_diagonal_matrices
// reason: bytes of local memory
/* Has more local memory than can be overwritten between runs. */
#include "task.h"

constexpr int WORDS = 25600;

__global__ void diagonal(const float *a, const float *b, float *out, int at) {
    volatile float row[WORDS];
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
    for (int k = 0; k < WORDS; k += 1024) row[k + at] = a[i / B_DIM1];
    out[i] = row[at] * b[i];
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    diagonal<<<OUT_ELEMENTS / 256, 256, 0, stream>>>(in->A, in->B, out->out, 7);
}
