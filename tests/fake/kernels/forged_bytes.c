// expect: tape
// task: relu64
// reason: launch enqueued � bytes
/* Answers in place of the recorder, with bytes that are no text. */
#include "kernel.h"

#include "replay/runner.h"

#include <unistd.h>

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    struct runner_reply r = {.status = RUNNER_TAPE, .message = "launch enqueued \xff\xc3 bytes"};
    start_usual(&relu, in, out, stream);
    if (write(RUNNER_REPLY_FD, &r, sizeof r) > 0) _exit(0);
}
