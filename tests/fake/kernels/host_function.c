// expect: tape
// task: relu64
// reason: a host function was enqueued
/* Makes the host compute during replay. */
#include "kernel.h"

static void nothing(UNUSED void *context) {}

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    start_usual(&relu, in, out, stream);
    cudaLaunchHostFunc(stream, nothing, NULL);
}
