// expect: gate
// task: l1_019_relu
// reason: constant data
/* Carries a table of 1 MB in host code, room for answers computed beforehand. */
#include "task.h"

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

static const volatile int table[1 << 18] = {1, 2, 3};

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    relu<<<table[in != NULL] + 4094, 256, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
}
