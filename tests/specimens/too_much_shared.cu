// expect: tape
// task: l1_012_matmul_with_diagonal_matrices
// reason: cudaLaunchKernel failed in launch: .* 65536 bytes of dynamic shared memory
/* Launches with more shared memory than a kernel gets without asking, and looks at no error. */
#include "task.h"

__global__ void diagonal(const float *a, const float *b, float *out) {
    extern __shared__ float row[];
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    row[threadIdx.x] = a[i / B_DIM1];
    out[i] = row[threadIdx.x] * b[i];
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    diagonal<<<OUT_ELEMENTS / 256, 256, 64 << 10, stream>>>(in->A, in->B, out->out);
}
