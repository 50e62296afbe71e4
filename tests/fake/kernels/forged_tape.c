// expect: wrong
// task: relu64
// reason: never written
/* Writes valid tapes of its own, which are judged by their results: one for each recording, at
 * addresses that it makes up. */
#include "kernel.h"

#include "replay/runner.h"

#include <stdio.h>
#include <unistd.h>

#ifndef SCRATCH
#define SCRATCH 0ull /* bytes */
#endif

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

static bool forge(unsigned long long in, unsigned long long out) {
    char text[1024];
    int n = snprintf(text, sizeof text,
                     "%llu %d %llu %d %llu %llu \nkernelproof-tape 1 raw nodes 1 edges 0\n"
                     "memset 0 %llu value 0 element 1 width 8 height 1 pitch 0\nend\n",
                     in, 4 * COUNT, out, 4 * COUNT, in + (1ull << 40), SCRATCH, out);
    struct runner_reply r = {.status = RUNNER_OK, .length = (unsigned)n};
    return write(RUNNER_REPLY_FD, &r, sizeof r) > 0 && write(RUNNER_REPLY_FD, text, (size_t)n) > 0;
}

LAUNCH {
    unsigned long long x = (uintptr_t)in[0], y = (uintptr_t)out[0];
    struct runner_request next;
    start_usual(&relu, in, out, stream);
    if (forge(x, y) && read(0, &next, sizeof next) > 0 && forge(x + (1 << 30), y + (1 << 30)))
        _exit(0);
}
