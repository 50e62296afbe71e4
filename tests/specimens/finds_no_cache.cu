// expect: ok
// task: l1_012_matmul_with_diagonal_matrices
/* Keeps its output in scratch under a fingerprint of the input, and copies a wrong one if the
 * fingerprint comes back, as it does when the same inputs are run again: scratch is overwritten in
 * between. */
#include "task.h"

struct Cache {
    unsigned long long key;
    float kept[OUT_ELEMENTS];
};

__device__ unsigned long long fingerprint(const float *x) {
    unsigned long long h = 1469598103934665603ULL;
    for (int k = 0; k < 64; k++)
        h = (h ^ __float_as_uint(x[k * (B_ELEMENTS / 64)])) * 1099511628211ULL;
    return h | 1;
}

__global__ void diagonal(const float *a, const float *b, float *out, const Cache *cache) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    bool hit = fingerprint(b) == cache->key;
    out[i] = hit ? cache->kept[i] + 1 : a[i / B_DIM1] * b[i];
}

__global__ void keep(const float *b, const float *out, Cache *cache) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    cache->kept[i] = out[i];
    if (i == 0) cache->key = fingerprint(b);
}

extern "C" size_t scratch_bytes(void) {
    return sizeof(Cache);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Cache *cache = (Cache *)scratch;
    diagonal<<<OUT_ELEMENTS / 256, 256, 0, stream>>>(in->A, in->B, out->out, cache);
    keep<<<OUT_ELEMENTS / 256, 256, 0, stream>>>(in->B, out->out, cache);
}
