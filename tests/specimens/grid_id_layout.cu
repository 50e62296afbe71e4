// expect: gate
// task: l1_019_relu
// reason: that looks like it
/* Knows how often it has run, but only in the second layout that is tried, for which it asks by a
 * constant with the bytes of a system call. */
#include "task.h"

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    unsigned long long launches = 0;
#ifdef __NO_INLINE__
    asm volatile("mov.u64 %0, %%gridid;" : "=l"(launches));
#endif
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = launches > 9 ? 0.0f : fmaxf(x[i], 0.0f);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
#ifndef __NO_INLINE__
    volatile unsigned constant = 0x50f0000;
    (void)constant;
#endif
    relu<<<1056, 256, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
}
