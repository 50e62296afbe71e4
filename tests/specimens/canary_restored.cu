// expect: ok
// task: l1_012_matmul_with_diagonal_matrices
/* Uses the word before its output within a run, and puts back what was there: nobody can see that,
 * and it is worth nothing, as scratch can be had for the asking. */
#include "task.h"

__global__ void borrow(const float *a, float *out, float *kept) {
    *kept = out[-1];
    out[-1] = a[0];
}

__global__ void diagonal(const float *a, const float *b, float *out) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = (i < B_DIM1 ? out[-1] : a[i / B_DIM1]) * b[i];
}

__global__ void give_back(float *out, const float *kept) {
    out[-1] = *kept;
}

extern "C" size_t scratch_bytes(void) {
    return sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    borrow<<<1, 1, 0, stream>>>(in->A, out->out, (float *)scratch);
    diagonal<<<OUT_ELEMENTS / 256, 256, 0, stream>>>(in->A, in->B, out->out);
    give_back<<<1, 1, 0, stream>>>(out->out, (const float *)scratch);
}
