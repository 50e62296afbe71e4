// expect: tape
// task: l1_019_relu
// reason: outputs were written while launch was being recorded
/* Launches on the default stream: on the given one it only clears an element. */
#include "task.h"

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    cudaMemsetAsync(out->out, 0, sizeof(float), stream);
    relu<<<4096, 256>>>(in->x, out->out, OUT_ELEMENTS);
}
