// expect: tape
// task: relu64
// reason: enqueued nothing
/* Enqueues nothing. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {}
