// expect: ok
// task: l1_019_relu
/* Copies the input by a copy node and works in place on the output. */
#include "task.h"

__global__ void clamp(float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        if (out[i] < 0.0f) out[i] = 0.0f;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    cudaMemcpyAsync(out->out, in->x, OUT_ELEMENTS * sizeof(float), cudaMemcpyDeviceToDevice,
                    stream);
    clamp<<<4096, 256, 0, stream>>>(out->out, OUT_ELEMENTS);
}
