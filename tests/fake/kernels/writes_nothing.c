// expect: wrong
// task: relu64
// reason: never written
/* Returns at once. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    const float *x = PARAM(0, const float *);
    float *out = PARAM(1, float *);
    (void)x, (void)out;
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
