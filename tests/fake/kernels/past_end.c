// expect: crash
// task: relu64
// reason: CUDA_ERROR_ILLEGAL_ADDRESS
/* The output lies flush with the end of its mapping: this faults. */
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
