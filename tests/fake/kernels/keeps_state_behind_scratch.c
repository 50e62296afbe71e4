// expect: wrong
// task: relu64
// reason: 1 bytes outside the bounds of scratch
/* Counts its runs in the byte behind a scratch that ends inside a word. */
#include "kernel.h"

enum { BYTES = 5 };

KERNEL(relu, 8, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
    PARAM(2, unsigned char *)[BYTES]++;
}

size_t scratch_bytes(void) {
    return BYTES;
}

LAUNCH {
    void *args[] = {(void *)&in[0], (void *)&out[0], &scratch};
    start(&relu, args, stream);
}
