// expect: ok
// task: relu64
/* Honest, but every fifth run takes 40 % longer. */
#include "kernel.h"

static unsigned runs; /* part of the pretend GPU, not a variable of the module */

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
    relu.us = runs++ % 5 ? 500 : 700;
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
