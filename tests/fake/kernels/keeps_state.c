// expect: wrong
// task: relu64
// reason: module variable runs
/* Counts its runs in a module variable. */
#include "kernel.h"

MODULE_VARIABLE int runs = 1;

KERNEL(relu, 8, 8) {
    const float *x = PARAM(0, const float *);
    float *out = PARAM(1, float *);
    relu_of(x, out, COUNT);
    runs++;
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
