// expect: crash
// task: relu64
/* Ends the recorder as a failing machine would: still the doing of the candidate. */
#include "kernel.h"

#include <unistd.h>

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    start_usual(&relu, in, out, stream);
    _exit(4);
}
