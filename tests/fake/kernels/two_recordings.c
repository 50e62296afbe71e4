// expect: tape
// task: relu64
// reason: two recordings differ
/* Launches something different in each recording. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    static unsigned recordings;
    void *args[] = {(void *)&in[0], (void *)&out[0]};
    cudaLaunchKernel(&relu, (dim3){++recordings, 1, 1}, (dim3){32, 1, 1}, args, 0, stream);
}
