// expect: tape
// task: relu64
// reason: is not an address of a declared buffer
/* Passes a value computed from an address that is not an address itself. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

LAUNCH {
    float *hidden = (float *)((uintptr_t)out[0] ^ 0xff00000000000000);
    start_usual(&relu, in, &hidden, stream);
}
