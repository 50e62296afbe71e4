// expect: wrong
// task: relu64
// reason: an input was modified
/* Makes its input writable, as if through another mapping. */
#include "kernel.h"

#include <math.h>
#include <sys/mman.h>

KERNEL(relu, 8, 8) {
    float *x = PARAM(0, float *);
    float *out = PARAM(1, float *);
    uintptr_t page = (uintptr_t)x & ~(uintptr_t)4095;
    relu_of(x, out, COUNT);
    if (mprotect((void *)page, 4096, PROT_READ | PROT_WRITE)) return;
    x[0] = nextafterf(x[0], 2);
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
