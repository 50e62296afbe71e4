// expect: crash
// task: relu64
// reason: signal 11
/* The host code faults. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    start_usual(&relu, in, out, stream);
    *(volatile int *)8 = 0;
}
