// expect: wrong
// task: relu64
// reason: but not when the same inputs are run again
/* Wrong in one run only, by default the first one judged, so that a later run finds no evidence. */
#include "kernel.h"

#ifndef RUN
#define RUN 3
#endif

static int runs; /* part of the pretend GPU, not a variable of the module */

KERNEL(relu, 8, 8) {
    float *out = PARAM(1, float *);
    relu_of(PARAM(0, const float *), out, COUNT);
    if (++runs == RUN) out[7] += 1;
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
