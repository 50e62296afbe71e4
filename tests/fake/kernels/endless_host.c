// expect: timeout
// task: relu64
// reason: no answer from the recording process
/* The host code never returns. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    start_usual(&relu, in, out, stream);
    for (volatile int going = 1; going;) continue;
}
