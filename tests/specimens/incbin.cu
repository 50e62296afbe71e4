// expect: build gate
// task: l1_019_relu
// reason: /etc/passwd|taken is defined
/* Has the assembler read a file of the machine that it is compiled on. Without Landlock it
 * compiles, and the gate sees the symbol. */
#include "task.h"

__asm__(".section .rodata\n.globl taken\ntaken: .incbin \"/etc/passwd\"\n.text\n");

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    relu<<<4096, 256, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
}
