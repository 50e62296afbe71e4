// expect: ok
// task: relu10
/* Honest; its output ends inside the canaries. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    const float *x = PARAM(0, const float *);
    float *out = PARAM(1, float *);
    relu_of(x, out, COUNT);
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
