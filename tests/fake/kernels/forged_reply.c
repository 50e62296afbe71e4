// expect: tape
// task: relu64
// reason: tampered with it
/* Answers in place of the recorder. */
#include "kernel.h"

#include "replay/runner.h"

#include <string.h>
#include <unistd.h>

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    struct runner_reply r = {.status = RUNNER_OK, .length = 4};
    start_usual(&relu, in, out, stream);
    if (write(RUNNER_REPLY_FD, &r, sizeof r) > 0 && write(RUNNER_REPLY_FD, "tape", 4) > 0) _exit(0);
}
