// expect: gate
// task: l1_019_relu
// reason: no kernel
/* Clears the output by a memset and has no kernel at all. */
#include "task.h"

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    (void)in;
    cudaMemsetAsync(out->out, 0, OUT_ELEMENTS * sizeof(float), stream);
}
