// expect: tape
// task: l1_019_relu
// reason: cudaLaunchKernel failed in launch: .*block 2048 1 1
/* Asks for more threads a block than there are and ignores the error, so nothing runs. */
#include "task.h"

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    relu<<<4096, 2048, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
    cudaGetLastError();
}
