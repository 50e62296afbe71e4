// expect: ok
// task: l1_012_matmul_with_diagonal_matrices
// time: ok
/* Is right, but takes 200 us longer in a fifth of its runs, as its input says: a mean over the
 * middle half of its times does not show them. */
#include "task.h"

__global__ void diagonal(const float *a, const float *b, float *out) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0 && __float_as_uint(b[0]) % 5 == 0)
        for (int k = 0; k < 200; k++) __nanosleep(1000);
    out[i] = a[i / B_DIM1] * b[i];
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    diagonal<<<OUT_ELEMENTS / 256, 256, 0, stream>>>(in->A, in->B, out->out);
}
