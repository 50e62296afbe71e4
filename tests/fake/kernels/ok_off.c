// expect: ok
// task: relu64
/* Honest, unless compiled with an error: EVERY is the relative error of every element above ABOVE,
 * EITHER the same, up and down in turn, of the first UPTO; ONE that of the largest element up to 1.
 * TIMES is what elements are multiplied by on the way.  In run ONCE an element is wrong. */
#include "kernel.h"

#ifndef EVERY
#define EVERY 0
#endif
#ifndef ABOVE
#define ABOVE -1
#endif
#ifndef EITHER
#define EITHER 0
#endif
#ifndef UPTO
#define UPTO COUNT
#endif
#ifndef ONE
#define ONE 0
#endif
#ifndef ONCE
#define ONCE 0
#endif
#ifndef TIMES
#define TIMES 1
#endif

static int runs; /* part of the pretend GPU, not a variable of the module */

KERNEL(relu, 8, 8) {
    const float *x = PARAM(0, const float *);
    float *out = PARAM(1, float *);
    relu_of(x, out, COUNT);
    for (int i = 0; i < COUNT; i++) out[i] = out[i] * TIMES / TIMES;
    for (int i = 0; i < COUNT; i++)
        if (out[i] > ABOVE) out[i] = (float)(out[i] * (1 + (double)EVERY));
    for (int i = 0; i < UPTO; i++)
        out[i] = (float)(out[i] * (1 + (i % 2 ? -EITHER : (double)EITHER)));
    if (++runs == ONCE) out[7] += 1;
    float *most = NULL;
    for (int i = 0; i < COUNT; i++)
        if (out[i] <= 1 && (!most || out[i] > *most)) most = &out[i];
    if (most) *most = (float)(*most * (1 + (double)ONE));
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
