// expect: ok
// task: relu64
/* The last bit of one element differs between runs, as with another order of additions. */
#include "kernel.h"

#include <math.h>

static unsigned flip; /* part of the pretend GPU, not a variable of the module */

KERNEL(relu, 8, 8) {
    const float *x = PARAM(0, const float *);
    float *out = PARAM(1, float *);
    relu_of(x, out, COUNT);
    if (flip++ & 1) out[0] = nextafterf(out[0], 2);
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
