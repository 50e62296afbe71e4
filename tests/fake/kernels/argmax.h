/* argmax.h: the first largest element of each row of 32; a NaN is larger than any number. */
#include "kernel.h"

#include <math.h>
#include <stdint.h>

static inline void argmax_of(const float *x, int64_t *out, int rows) {
    for (int r = 0; r < rows; r++, x += 32) {
        out[r] = 0;
        for (int i = 1; i < 32; i++)
            if (!isnan(x[out[r]]) && (x[i] > x[out[r]] || isnan(x[i]))) out[r] = i;
    }
}
