// expect: ok
// task: relu64
/* Changes a module variable and restores it in each run. */
#include "kernel.h"

MODULE_VARIABLE int arrived = 1;

KERNEL(relu, 8, 8) {
    const float *x = PARAM(0, const float *);
    float *out = PARAM(1, float *);
    arrived++;
    relu_of(x, out, COUNT);
    arrived--;
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
