// expect: ok
// task: l1_012_matmul_with_diagonal_matrices
/* Leaves a mark in local memory, and is wrong if it finds one of an earlier run. */
#include "task.h"

constexpr unsigned MARK = 0x5eed5eed;
constexpr int WORDS = 1024;

/* Threads of the same run find each other's marks: so a kernel looks, and another one leaves them.
 */
__device__ unsigned marked(int at) {
    volatile unsigned kept[WORDS];
    return kept[at] == MARK;
}

__global__ void diagonal(const float *a, const float *b, float *out, int at) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i / B_DIM1] * b[i] * (marked(at) ? 2.0f : 1.0f);
}

__global__ void leave() {
    volatile unsigned kept[WORDS];
#pragma unroll 1
    for (int k = 0; k < WORDS; k++) kept[k] = MARK;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    diagonal<<<OUT_ELEMENTS / 256, 256, 0, stream>>>(in->A, in->B, out->out, WORDS / 2);
    leave<<<4096, 256, 0, stream>>>();
}
