// expect: tape
// task: relu64
// reason: a memset writes outside the declared buffers
/* Writes memory outside the task's buffers. */
#include "kernel.h"

static float table[COUNT];

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    start_usual(&relu, in, out, stream);
    cudaMemsetAsync(table, 0, sizeof table, stream);
}
