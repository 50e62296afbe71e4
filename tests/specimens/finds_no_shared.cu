// expect: ok
// task: l1_012_matmul_with_diagonal_matrices
/* Leaves a mark in shared memory, and is wrong if it finds one of an earlier run. */
#include "task.h"

constexpr unsigned MARK = 0x5eed5eed;

/* Blocks of the same run find each other's marks: only those of the first wave look. */
__global__ void diagonal(const float *a, const float *b, float *out, unsigned *started) {
    extern __shared__ unsigned left[];
    __shared__ unsigned before;
    if (threadIdx.x == 0) before = atomicAdd(started, 1);
    unsigned was = *(volatile unsigned *)&left[threadIdx.x];
    __syncthreads();
    *(volatile unsigned *)&left[threadIdx.x] = MARK;
    bool found = was == MARK && before < 32;
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i / B_DIM1] * b[i] * (found ? 2.0f : 1.0f);
}

extern "C" size_t scratch_bytes(void) {
    return sizeof(unsigned);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    cudaMemsetAsync(scratch, 0, sizeof(unsigned), stream);
    diagonal<<<OUT_ELEMENTS / 1024, 1024, 32 << 10, stream>>>(in->A, in->B, out->out,
                                                              (unsigned *)scratch);
}
