// expect: timeout
// task: l1_019_relu
// reason: no answer from the candidate
/* Never ends. */
#include "task.h"

__global__ void forever() {
    for (;;) __nanosleep(1000);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    (void)in, (void)out;
    forever<<<1, 32, 0, stream>>>();
}
