// expect: wrong
// task: relu64
// reason: some never written; first at 2048
/* Writes only the first half of the output. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    const float *x = PARAM(0, const float *);
    float *out = PARAM(1, float *);
    relu_of(x, out, COUNT / 2);
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
