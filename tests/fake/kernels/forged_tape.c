// expect: wrong
// task: relu64
// reason: never written
/* Writes a valid tape of its own, which is judged by its results. */
#include "kernel.h"

#include "replay/runner.h"

#include <stdio.h>
#include <unistd.h>

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    char text[1024];
    int n = snprintf(text, sizeof text,
                     "%llu %d %llu %d 0 0 \nkernelproof-tape 1 raw nodes 1 edges 0\n"
                     "memset 0 %llu value 0 element 1 width 8 height 1 pitch 0\nend\n",
                     (unsigned long long)(uintptr_t)in[0], 4 * COUNT,
                     (unsigned long long)(uintptr_t)out[0], 4 * COUNT,
                     (unsigned long long)(uintptr_t)out[0]);
    struct runner_reply r = {.status = RUNNER_OK, .length = (unsigned)n};
    start_usual(&relu, in, out, stream);
    if (write(RUNNER_REPLY_FD, &r, sizeof r) > 0 && write(RUNNER_REPLY_FD, text, (size_t)n) > 0)
        _exit(0);
}
