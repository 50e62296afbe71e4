// expect: wrong
// task: relu64
// reason: 1 of 4096 elements
/* One element of many is wrong. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    const float *x = PARAM(0, const float *);
    float *out = PARAM(1, float *);
    relu_of(x, out, COUNT);
    out[7] += 1;
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
