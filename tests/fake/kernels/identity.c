// expect: wrong
// task: relu64
// reason: inputs)
/* Correct only while no input is negative. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    const float *x = PARAM(0, const float *);
    float *out = PARAM(1, float *);
    for (int i = 0; i < COUNT; i++) out[i] = x[i];
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
