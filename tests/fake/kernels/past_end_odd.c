// expect: wrong
// task: relu10
// reason: outside the bounds of out
/* Writes one element past the output, inside its mapping: no fault. */
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
