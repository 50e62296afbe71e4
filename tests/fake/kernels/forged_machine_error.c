// expect: crash
// task: relu64
/* Reports a machine error in order to get no verdict. */
#include "kernel.h"

#include "replay/runner.h"

#include <string.h>
#include <unistd.h>

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    struct runner_reply r = {.status = RUNNER_MACHINE, .message = "the GPU is lost"};
    start_usual(&relu, in, out, stream);
    if (write(RUNNER_REPLY_FD, &r, sizeof r) > 0) _exit(0);
}
