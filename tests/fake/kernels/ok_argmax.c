// expect: ok
// task: argmax
/* Honest: an output of integers. */
#include "argmax.h"

KERNEL(argmax, 8, 8) {
    argmax_of(PARAM(0, const float *), PARAM(1, int64_t *), COUNT);
}

LAUNCH {
    start_usual(&argmax, in, out, stream);
}
