// expect: tape
// task: relu64
// reason: the most is 64 GiB
/* Requests more memory than there is. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}

size_t scratch_bytes(void) {
    return (size_t)1 << 40;
}
