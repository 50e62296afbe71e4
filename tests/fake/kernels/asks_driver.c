// expect: tape
// task: relu64
// reason: launch asks for cuMemAlloc of the driver: only cuTensorMapEncodeTiled is offered
/* Asks for a function of the driver that no recording can hold. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    void *found;
    cudaGetDriverEntryPointByVersion("cuMemAlloc", &found, 12000, cudaEnableDefault, NULL);
    start_usual(&relu, in, out, stream);
}
