// expect: gate
// task: l1_019_relu
// reason: fopen
/* Opens a file: an expected answer, a seed, a result. */
#include "task.h"
#include <cstdio>

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    FILE *f = fopen("/proc/self/cmdline", "r");
    relu<<<f ? 4096 : 2048, 256, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
}
