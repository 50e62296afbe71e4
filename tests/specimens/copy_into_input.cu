// expect: tape crash
// task: l1_012_matmul_with_diagonal_matrices
// reason: cudaMemcpyAsync failed in launch|CUDA_ERROR
/* Copies an input over another by a copy node: inputs are read-only. */
#include "task.h"

__global__ void diagonal(const float *a, const float *b, float *out) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i / B_DIM1] * b[i];
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    float *b = const_cast<float *>(in->B);
    cudaMemcpyAsync(b, in->A, A_ELEMENTS * sizeof(float), cudaMemcpyDeviceToDevice, stream);
    diagonal<<<OUT_ELEMENTS / 256, 256, 0, stream>>>(in->A, in->B, out->out);
}
