// expect: wrong
// task: argmax
// reason: 1 of 16 elements
/* An index is close to the right one. */
#include "argmax.h"

KERNEL(argmax, 8, 8) {
    int64_t *out = PARAM(1, int64_t *);
    argmax_of(PARAM(0, const float *), out, COUNT);
    out[7]++;
}

LAUNCH {
    start_usual(&argmax, in, out, stream);
}
