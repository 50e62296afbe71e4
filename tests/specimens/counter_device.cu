// expect: wrong
// task: l1_019_relu
// reason: the module variable calls
/* Counts its calls in a __device__ variable and does half of the work from the tenth on, when
 * it takes verification to be over. */
#include "task.h"

__device__ unsigned calls;

__global__ void relu(const float *x, float *out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    if (calls >= 10) n /= 2;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = fmaxf(x[i], 0.0f);
}

__global__ void count() {
    calls++;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    relu<<<4096, 256, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
    count<<<1, 1, 0, stream>>>();
}
