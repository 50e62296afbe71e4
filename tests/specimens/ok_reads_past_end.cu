// expect: ok
// task: l1_012_matmul_with_diagonal_matrices
// memcheck: errors
/* A thread reads one element past the end of scratch and makes nothing of it: verification cannot
 * see that, as it lies in what scratch is rounded up to there; memcheck on exact allocations can.
 */
#include "task.h"

constexpr int WORDS = 100; /* no multiple of 256 bytes */

enum { NO_INPUT = 0x7fc12345 }; /* the bits of a NaN */

__global__ void diagonal(const float *a, const float *b, const float *words, float *out) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float behind = i == 0 ? words[WORDS] : 0;
    out[i] = a[i / B_DIM1] * b[i] + (__float_as_int(behind) == NO_INPUT ? 1 : 0);
}

extern "C" size_t scratch_bytes(void) {
    return WORDS * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    diagonal<<<OUT_ELEMENTS / 256, 256, 0, stream>>>(in->A, in->B, (const float *)scratch,
                                                     out->out);
}
