// expect: ok
// task: relu64
/* Honest, but slower in all processes after the first that runs it, which leaves a file. */
#include "kernel.h"

#include <fcntl.h>
#include <unistd.h>

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
    if (relu.us) return;
    int made = open("first", O_CREAT | O_EXCL, 0600);
    relu.us = made < 0 ? 700 : 500;
    if (made >= 0) close(made);
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
