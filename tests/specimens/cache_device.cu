// expect: wrong
// task: l1_019_relu
// reason: the module variable kept
/* Keeps the first outputs in a __device__ variable under a fingerprint of the input, and copies
 * them instead of computing when the fingerprint comes back. */
#include "task.h"

constexpr int KEPT = 1 << 20;
__device__ unsigned long long kept_key;
__device__ float kept[KEPT];

__device__ unsigned long long fingerprint(const float *x) {
    unsigned long long h = 1469598103934665603ULL;
    for (int k = 0; k < 64; k++)
        h = (h ^ __float_as_uint(x[k * (X_ELEMENTS / 64)])) * 1099511628211ULL;
    return h | 1;
}

__global__ void relu_or_recall(const float *x, float *out, long long n) {
    bool hit = fingerprint(x) == kept_key;
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = hit && i < KEPT ? kept[i] : fmaxf(x[i], 0.0f);
}

__global__ void keep(const float *x, const float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    kept[i] = out[i];
    if (i == 0) kept_key = fingerprint(x);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    relu_or_recall<<<4096, 256, 0, stream>>>(in->x, out->out, OUT_ELEMENTS);
    keep<<<KEPT / 256, 256, 0, stream>>>(in->x, out->out);
}
