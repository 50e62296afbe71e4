// expect: ok
// task: matmul8
/* Honest, in TF32: inputs are rounded to 10 mantissa bits. */
#include "kernel.h"

#include <string.h>

static float tf32(float x) {
    unsigned bits;
    memcpy(&bits, &x, 4);
    bits = (bits + 0x1000) & ~0x1fffu;
    memcpy(&x, &bits, 4);
    return x;
}

KERNEL(matmul, 8, 8, 8) {
    const float *a = PARAM(0, const float *), *b = PARAM(1, const float *);
    float *out = PARAM(2, float *);
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            float s = 0;
            for (int k = 0; k < 8; k++) s += tf32(a[8 * i + k]) * tf32(b[8 * k + j]);
            out[8 * i + j] = s;
        }
}

LAUNCH {
    void *args[] = {(void *)&in[0], (void *)&in[1], (void *)&out[0]};
    start(&matmul, args, stream);
}
