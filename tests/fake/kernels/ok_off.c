// expect: ok
// task: relu64
/* Honest, unless it is compiled to be off: every element by EVERY, the first by ONE, both relative.
 */
#include "kernel.h"

#ifndef EVERY
#define EVERY 0
#endif
#ifndef ONE
#define ONE 0
#endif

KERNEL(relu, 8, 8) {
    const float *x = PARAM(0, const float *);
    float *out = PARAM(1, float *);
    relu_of(x, out, COUNT);
    for (int i = 0; i < COUNT; i++) out[i] = (float)(out[i] * (1 + (double)EVERY));
    int most = 0;
    for (int i = 0; i < COUNT; i++) most = out[i] > out[most] ? i : most;
    out[most] = (float)(out[most] * (1 + (double)ONE));
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
