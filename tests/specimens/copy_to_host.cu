// expect: tape
// task: l1_019_relu
// reason: a copy that is not one row from device to device
/* Reads its input on the host and decides there what to launch: at a replay the decision would
 * be an old one. */
#include "task.h"

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    static float first;
    cudaMemcpyAsync(&first, in->x, sizeof first, cudaMemcpyDeviceToHost, stream);
    int blocks = first > 0.5f ? 4096 : 2048;
    relu<<<blocks, 256, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
}
