// expect: wrong crash
// task: l1_019_relu
/* Correct, but also writes the element after the last one. */
#include "task.h"

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

__global__ void one_more(float *out) {
    out[OUT_ELEMENTS] = 0.0f;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    relu<<<4096, 256, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
    one_more<<<1, 1, 0, stream>>>(out->out);
}
