// expect: wrong
// task: relu64
// reason: the largest error of an element exceeds
/* Wrong in one run alone, by default the first that is judged: no evidence is found later. */
#include "kernel.h"

#ifndef RUN
#define RUN 3
#endif

static int runs; /* no variable of the module: the GPU itself, so to speak */

KERNEL(relu, 8, 8) {
    float *out = PARAM(1, float *);
    relu_of(PARAM(0, const float *), out, COUNT);
    if (++runs == RUN) out[7] += 1;
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
