// expect: build
// task: l1_019_relu
// reason: /etc/passwd
/* Includes a file of the machine it is compiled on, to show it in an error message. */
#include "task.h"
#include "/etc/passwd"

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    relu<<<4096, 256, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
}
