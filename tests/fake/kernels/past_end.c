// expect: crash
// task: relu64
// reason: CUDA_ERROR_ILLEGAL_ADDRESS
/* Writes past the output, which ends where its mapping ends: a fault. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    const float *x = PARAM(0, const float *);
    float *out = PARAM(1, float *);
    relu_of(x, out, COUNT);
    out[COUNT] = 1;
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
