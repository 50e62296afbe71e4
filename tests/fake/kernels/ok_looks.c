// expect: ok
// task: relu64
/* Honest, but its time differs on the declared contents, which have no negative element. */
#include "kernel.h"

#ifndef DECLARED_US
#define DECLARED_US 500
#endif

KERNEL(relu, 8, 8) {
    const float *x = PARAM(0, const float *);
    int negative = 0;
    relu_of(x, PARAM(1, float *), COUNT);
    for (int i = 0; i < COUNT; i++) negative |= x[i] < 0;
    relu.us = negative ? 600 : DECLARED_US;
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
