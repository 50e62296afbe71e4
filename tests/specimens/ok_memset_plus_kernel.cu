// expect: ok
// task: l1_019_relu
/* Clears the output by a memset, then writes the positive values only. */
#include "task.h"

__global__ void write_positive(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        if (x[i] > 0.0f) out[i] = x[i];
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    cudaMemsetAsync(out->out, 0, OUT_ELEMENTS * sizeof(float), stream);
    write_positive<<<4096, 256, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
}
