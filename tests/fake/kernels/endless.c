// expect: timeout
// task: relu64
// reason: no answer from
/* Never ends. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    const float *x = PARAM(0, const float *);
    float *out = PARAM(1, float *);
    relu_of(x, out, COUNT);
    for (volatile int going = 1; going;) continue;
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
