// expect: crash
// task: relu64
// reason: ended by signal 15
/* Ends its process as a cancelled job would; but the job goes on. */
#include "kernel.h"

#include <signal.h>

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
    raise(SIGTERM);
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
