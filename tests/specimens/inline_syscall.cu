// expect: gate
// task: l1_019_relu
// reason: object: .text
/* Calls the operating system without naming a function. */
#include "task.h"

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

static long process_id() {
    long result;
#if defined(__x86_64__)
    __asm__ volatile("syscall" : "=a"(result) : "a"(39) : "rcx", "r11", "memory");
#else
    register long number __asm__("x8") = 172;
    register long x0 __asm__("x0") = 0;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(number) : "memory");
    result = x0;
#endif
    return result;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    if (process_id() > 1) relu<<<4096, 256, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
}
