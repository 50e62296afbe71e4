// expect: ok
// task: matmul8
/* Operands keep 24 bits relative to the largest of the matrix, as fixed-point halves do. */
#include "kernel.h"

#include <math.h>

static void round_to_largest(const float *x, double *to) {
    int e;
    double most = 0;
    for (int i = 0; i < 64; i++)
        if (isfinite(x[i])) most = fmax(most, fabsf(x[i]));
    frexp(most, &e);
    for (int i = 0; i < 64; i++) to[i] = ldexp(round(ldexp(x[i], 24 - e)), e - 24);
}

KERNEL(matmul, 8, 8, 8) {
    double a[64], b[64];
    round_to_largest(PARAM(0, const float *), a);
    round_to_largest(PARAM(1, const float *), b);
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            double s = 0;
            for (int k = 0; k < 8; k++) s += a[8 * i + k] * b[8 * k + j];
            PARAM(2, float *)[8 * i + j] = (float)s;
        }
}

LAUNCH {
    void *args[] = {(void *)&in[0], (void *)&in[1], (void *)&out[0]};
    start(&matmul, args, stream);
}
