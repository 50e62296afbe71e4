// expect: ok
// task: l1_019_relu
/* Its host code has a constant with the bytes of a system call, but not where nothing is
 * inlined: the second layout that is tried. */
#include "task.h"

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
#ifndef __NO_INLINE__
    volatile unsigned constant = 0x50f0000;
    (void)constant;
#endif
    relu<<<1056, 256, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
}
