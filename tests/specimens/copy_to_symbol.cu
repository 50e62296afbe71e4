// expect: gate
// task: l1_019_relu
// reason: cudaMemcpyToSymbolAsync
/* Sets a __constant__ variable from the host: that does not travel on a tape. */
#include "task.h"

__constant__ float slope;

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = slope * fmaxf(x[i], 0.0f);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    static const float one = 1.0f;
    cudaMemcpyToSymbolAsync(slope, &one, sizeof one, 0, cudaMemcpyHostToDevice, stream);
    relu<<<4096, 256, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
}
