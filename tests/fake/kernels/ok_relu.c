// expect: ok
// task: relu64
/* Honest.  With SCRATCH it asks for so much, and makes nothing of it. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    const float *x = PARAM(0, const float *);
    float *out = PARAM(1, float *);
    relu_of(x, out, COUNT);
}

#ifdef SCRATCH
size_t scratch_bytes(void) {
    return SCRATCH;
}
#endif

LAUNCH {
    start_usual(&relu, in, out, stream);
}
