// expect: tape
// task: l1_012_matmul_with_diagonal_matrices
// reason: cudaFuncSetAttribute failed in launch
/* Asks for more shared memory than any GPU has, and looks at no error. */
#include "task.h"

__global__ void diagonal(const float *a, const float *b, float *out) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i / B_DIM1] * b[i];
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    cudaFuncSetAttribute(diagonal, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20);
    diagonal<<<OUT_ELEMENTS / 256, 256, 0, stream>>>(in->A, in->B, out->out);
}
