// expect: wrong
// task: l1_019_relu
// reason: elements are off
/* Clears the output and computes nothing. */
#include "task.h"

__global__ void clear(float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = 0.0f;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    (void)in;
    clear<<<4096, 256, 0, stream>>>(out->out, OUT_ELEMENTS);
}
