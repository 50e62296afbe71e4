// expect: crash
// task: relu64
// reason: CUDA_ERROR_ILLEGAL_ADDRESS
/* Writes an input, which is mapped read-only. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    const float *x = PARAM(0, const float *);
    float *out = PARAM(1, float *);
    relu_of(x, out, COUNT);
    ((float *)x)[0] = 1;
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
