// expect: wrong
// task: relu64
// reason: outside the bounds of out
/* Writes one element before the first. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    const float *x = PARAM(0, const float *);
    float *out = PARAM(1, float *);
    relu_of(x, out, COUNT);
    out[-1] = 1;
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
