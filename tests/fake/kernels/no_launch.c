// expect: tape
// task: relu64
// reason: launch is not defined
/* The entry point has another name. */
#include "kernel.h"

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

void launch_relu(const float *const in[], float *const out[], void *scratch, cudaStream_t stream);
void launch_relu(const float *const in[], float *const out[], UNUSED void *scratch,
                 cudaStream_t stream) {
    start_usual(&relu, in, out, stream);
}
