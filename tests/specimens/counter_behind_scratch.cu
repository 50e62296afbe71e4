// expect: wrong
// task: l1_012_matmul_with_diagonal_matrices
// reason: bytes outside the bounds of scratch
/* Asks for a scratch that ends inside a word, counts its runs in the byte behind it, and is less
 * exact from the tenth on, when it takes verification to be over. */
#include "task.h"

__global__ void diagonal(const float *a, const float *b, float *out, const unsigned char *runs) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i / B_DIM1] * b[i] * (*runs > 10 ? 1.001f : 1.0f);
}

__global__ void count(unsigned char *runs) {
    ++*runs;
}

extern "C" size_t scratch_bytes(void) {
    return 5;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    unsigned char *runs = (unsigned char *)scratch + 5;
    diagonal<<<OUT_ELEMENTS / 256, 256, 0, stream>>>(in->A, in->B, out->out, runs);
    count<<<1, 1, 0, stream>>>(runs);
}
