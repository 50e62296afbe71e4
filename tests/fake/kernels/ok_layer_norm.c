// expect: ok
// task: layer_norm
/* Honest.  Computes in double, because the badly scaled inputs are few and a row has only 16
 * elements. */
#include "kernel.h"

#include <math.h>

KERNEL(layer_norm, 8, 8, 8, 8) {
    const float *x = PARAM(0, const float *), *w = PARAM(1, const float *);
    const float *b = PARAM(2, const float *);
    float *out = PARAM(3, float *);
    for (int r = 0; r < 4; r++, x += 16, out += 16) {
        double mean = 0, variance = 0;
        for (int i = 0; i < 16; i++) mean += x[i] / 16.0;
        for (int i = 0; i < 16; i++) variance += (x[i] - mean) * (x[i] - mean) / 16;
        for (int i = 0; i < 16; i++)
            out[i] = (float)((x[i] - mean) / sqrt(variance + 1e-5) * w[i] + b[i]);
    }
}

LAUNCH {
    void *args[] = {(void *)&in[0], (void *)&in[1], (void *)&in[2], (void *)&out[0]};
    start(&layer_norm, args, stream);
}
