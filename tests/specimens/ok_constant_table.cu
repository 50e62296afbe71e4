// expect: ok
// task: l1_019_relu
/* Reads its slopes from a __constant__ table that is initialised where it is defined. */
#include "task.h"

__constant__ float slope[2] = {0.0f, 1.0f};

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = slope[x[i] > 0.0f] * x[i];
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    relu<<<4096, 256, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
}
