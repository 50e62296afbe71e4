// expect: crash
// task: relu64
// reason: without an answer
/* Ends the recorder with exit status 0. */
#include "kernel.h"

#include <unistd.h>

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    start_usual(&relu, in, out, stream);
    _exit(0);
}
