// expect: ok
// task: relu64
/* Looks for traces of earlier runs: the correct result in the output, its own mark in scratch,
 * or the same poison in either three times in a row.  Correct as long as it finds none. */
#include "kernel.h"

#include <string.h>

enum { MARK = 0x5eed };

/* Whether this word was the same in the two previous runs. */
static int again(const void *at, unsigned before[2]) {
    unsigned now;
    memcpy(&now, at, sizeof now);
    int same = now == before[0] && now == before[1];
    before[1] = before[0], before[0] = now;
    return same;
}

KERNEL(relu, 8, 8, 8) {
    static unsigned out_before[2], scratch_before[2];
    const float *x = PARAM(0, const float *);
    float *out = PARAM(1, float *), right[COUNT];
    unsigned *scratch = PARAM(2, unsigned *);
    relu_of(x, right, COUNT);
    int found = !memcmp(out, right, sizeof right) || *scratch == MARK;
    found |= again(out, out_before) | again(scratch + 1, scratch_before);
    memcpy(out, right, sizeof right);
    if (found) out[0] += 1;
    *scratch = MARK;
}

size_t scratch_bytes(void) {
    return 8;
}

LAUNCH {
    void *args[] = {(void *)&in[0], (void *)&out[0], &scratch};
    start(&relu, args, stream);
}
