// expect: crash
// task: l1_019_relu
// reason: CUDA_ERROR_ILLEGAL_ADDRESS
/* Computes in place and copies: inputs are read-only. */
#include "task.h"

__global__ void relu_in_place(float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = x[i] = fmaxf(x[i], 0.0f);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    relu_in_place<<<4096, 256, 0, stream>>>(const_cast<float *>(in->x), out->out, OUT_ELEMENTS);
}
