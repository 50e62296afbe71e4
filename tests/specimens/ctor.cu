// expect: gate
// task: l1_019_relu
// reason: runs when the object is loaded
/* Runs code when it is loaded, before anyone calls launch. */
#include "task.h"

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

static int early;

__attribute__((constructor)) static void before_all() {
    early = 1;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    relu<<<4096, early ? 256 : 128, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
}
