// expect: wrong
// task: relu64
// reason: found nan
/* Writes NaN, which every comparison must treat as an error. */
#include "kernel.h"

#include <math.h>

KERNEL(relu, 8, 8) {
    const float *x = PARAM(0, const float *);
    float *out = PARAM(1, float *);
    relu_of(x, out, COUNT);
    out[COUNT - 1] = NAN;
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
