// expect: tape
// task: relu64
// reason: a copy that is not one row from device to device
/* Copies from host memory. */
#include "kernel.h"

static float table[COUNT];

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    start_usual(&relu, in, out, stream);
    cudaMemcpyAsync(out[0], table, sizeof table, cudaMemcpyHostToDevice, stream);
}
