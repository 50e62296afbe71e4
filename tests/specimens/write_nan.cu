// expect: wrong
// task: l1_019_relu
// reason: elements are off
/* Fills the output with NaN, which passes any check of the form fabs(difference) >
 * tolerance. */
#include "task.h"

__global__ void fill(float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = __int_as_float(0x7fc00000);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    (void)in;
    fill<<<4096, 256, 0, stream>>>(out->out, OUT_ELEMENTS);
}
