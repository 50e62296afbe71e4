// expect: gate
// task: l1_019_relu
// reason: thread-local
/* Keeps a counter in thread-local memory, next to which the C library keeps its own state. */
#include "task.h"

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

extern thread_local int calls;
thread_local int calls;

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    relu<<<calls++ ? 4096 : 2048, 256, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
}
