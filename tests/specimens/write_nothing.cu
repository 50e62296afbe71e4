// expect: wrong
// task: l1_019_relu
// reason: some never written
/* Writes nothing: what an earlier run left in the output would pass unless it is poisoned. */
#include "task.h"

__global__ void nothing() {}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    (void)in, (void)out;
    nothing<<<1, 32, 0, stream>>>();
}
