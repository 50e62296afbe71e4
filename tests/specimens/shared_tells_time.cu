// expect: wrong
// task: l1_012_matmul_with_diagonal_matrices
// reason: elements are off
/* Takes the pattern that a flush leaves in shared memory as the sign of being timed, and is less
 * exact then.  Verification asks for the same flush. */
#include "task.h"

__global__ void diagonal(const float *a, const float *b, float *out) {
    extern __shared__ unsigned left[];
    bool timed = *(volatile unsigned *)&left[threadIdx.x] == 0x7bad7badu;
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i / B_DIM1] * b[i] * (timed ? 1.001f : 1.0f);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    diagonal<<<OUT_ELEMENTS / 256, 256, 1024, stream>>>(in->A, in->B, out->out);
}
