// expect: ok
// task: matmul8
/* Honest: in float, but for the sum, as the pretend oracle's noise knows no long sums.  With MOST
 * larger results become that; with BLOCK operands keep 24 bits relative to the largest of the
 * matrix, as fixed-point parts do; with LOOKS its time differs where an element is large; with OFF
 * so large a part of results above 1000 is missing. */
#include "kernel.h"

#include <math.h>

#ifndef K
#define K 8
#endif
#ifndef OFF
#define OFF 0
#endif
#ifndef MOST
#define MOST INFINITY
#endif

/* x[i] as the product sees it. */
static float seen(const float *x, int i) {
#ifdef BLOCK
    int e;
    float most = 0;
    for (int k = 0; k < 8 * K; k++)
        if (isfinite(x[k])) most = fmaxf(most, fabsf(x[k]));
    frexpf(most, &e);
    return (float)ldexp(round(ldexp(x[i], 24 - e)), e - 24);
#else
    return x[i];
#endif
}

KERNEL(matmul, 8, 8, 8) {
    const float *a = PARAM(0, const float *), *b = PARAM(1, const float *);
    float *out = PARAM(2, float *);
#ifdef LOOKS
    matmul.us = 500;
    for (int i = 0; i < 8 * K; i++)
        if (fabsf(a[i]) > 1e6f) matmul.us = 600;
#endif
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            double sum = 0;
            for (int k = 0; k < K; k++) sum += (double)seen(a, K * i + k) * seen(b, 8 * k + j);
            float s = (float)(fabs(sum) > 1000 ? sum * (1 - (double)OFF) : sum);
            out[8 * i + j] = s > MOST ? MOST : s < -MOST ? -MOST : s;
        }
}

LAUNCH {
    void *args[] = {(void *)&in[0], (void *)&in[1], (void *)&out[0]};
    start(&matmul, args, stream);
}
