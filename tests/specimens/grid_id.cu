// expect: gate
// task: l1_012_matmul_with_diagonal_matrices
// reason: %gridid
/* Reads how many launches there were before it, and is less exact after many. */
#include "task.h"

__global__ void diagonal(const float *a, const float *b, float *out) {
    unsigned long long number;
    asm volatile("mov.u64 %0, %%gridid;" : "=l"(number));
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i / B_DIM1] * b[i] * (number > 100 ? 1.001f : 1.0f);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    diagonal<<<OUT_ELEMENTS / 256, 256, 0, stream>>>(in->A, in->B, out->out);
}
