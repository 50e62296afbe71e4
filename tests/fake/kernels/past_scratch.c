// expect: wrong
// task: relu64
// reason: outside the bounds of scratch
/* Writes one word past its scratch, inside the mapping: no fault. */
#include "kernel.h"

KERNEL(relu, 8, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
    PARAM(2, float *)[4] = 1;
}

size_t scratch_bytes(void) {
    return 16;
}

LAUNCH {
    void *args[] = {(void *)&in[0], (void *)&out[0], &scratch};
    start(&relu, args, stream);
}
