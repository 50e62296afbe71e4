// expect: tape
// task: relu64
// reason: cudaLaunchKernel failed in launch: CUDA_ERROR_INVALID_VALUE (grid 1 1 1, block 2048 1 1,
// 0 bytes
/* Asks for more threads than a block can have, and reads the error away.  The tape would go on
 * without that launch. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    void *args[] = {(void *)&in[0], (void *)&out[0]};
    cudaMemsetAsync(out[0], 0, 4 * COUNT, stream);
    cudaLaunchKernel(&relu, (dim3){1, 1, 1}, (dim3){2048, 1, 1}, args, 0, stream);
    cudaGetLastError();
}
