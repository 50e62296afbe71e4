// expect: timeout
// task: relu64
// reason: all runs of the kernel, to verify and to time it, took more than
/* Is right, and takes long: each run less than the deadline, all runs together more. */
#include "kernel.h"

#include <unistd.h>

#ifndef MS
#define MS 700
#endif

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
    usleep(MS * 1000);
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
