// expect: crash
// task: l1_019_relu
// reason: CUDA_ERROR_ILLEGAL_ADDRESS
/* Correct, but also writes 1 TiB beyond its output. */
#include "task.h"

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

__global__ void far(float *out) {
    out[1LL << 38] = 0.0f;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    relu<<<4096, 256, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
    far<<<1, 1, 0, stream>>>(out->out);
}
