// expect: tape
// task: relu64
// reason: outside the given stream
/* Computes on the default stream, which is not recorded, and records only a memset. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    start_usual(&relu, in, out, NULL);
    cudaMemsetAsync(scratch, 0, scratch_bytes(), stream);
}

size_t scratch_bytes(void) {
    return 64;
}
