// expect: tape crash
// task: l1_019_relu
// reason: cudaMemsetAsync failed in launch|CUDA_ERROR
/* Clears its input by a memset node, then computes the right answer for an input of zeros. */
#include "task.h"

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    cudaMemsetAsync(const_cast<float *>(in->x), 0, X_ELEMENTS * sizeof(float), stream);
    relu<<<4096, 256, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
}
