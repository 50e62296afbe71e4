// expect: tape
// task: relu64
// reason: scratch_bytes() gave two answers
/* Requests a different amount of memory each time. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}

size_t scratch_bytes(void) {
    static size_t recordings;
    return ++recordings;
}
