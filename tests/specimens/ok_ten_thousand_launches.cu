// expect: ok
// task: l1_012_matmul_with_diagonal_matrices
/* As many launches as a tape may hold, one after another, each doing its part. */
#include "task.h"

constexpr long long LAUNCHES = 10000;

__global__ void part(const float *a, const float *b, float *out, long long from, long long to) {
    long long i = from + blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < to) out[i] = a[i / B_DIM1] * b[i];
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    constexpr unsigned BLOCKS = (unsigned)(OUT_ELEMENTS / LAUNCHES / 256 + 1);
    for (long long k = 0; k < LAUNCHES; k++)
        part<<<BLOCKS, 256, 0, stream>>>(in->A, in->B, out->out, OUT_ELEMENTS * k / LAUNCHES,
                                         OUT_ELEMENTS * (k + 1) / LAUNCHES);
}
