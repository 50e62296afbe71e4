// expect: ok
// task: l1_019_relu
/* Passes its input through more shared memory than a kernel gets without asking. */
#include "task.h"

constexpr int BYTES = 96 << 10, THREADS = 1024;

__global__ void relu(const float *x, float *out, long long n) {
    extern __shared__ float held[];
    constexpr int EACH = BYTES / sizeof(float);
    for (long long at = (long long)blockIdx.x * EACH; at < n; at += (long long)gridDim.x * EACH) {
        for (int i = threadIdx.x; i < EACH && at + i < n; i += THREADS) held[i] = x[at + i];
        __syncthreads();
        for (int i = threadIdx.x; i < EACH && at + i < n; i += THREADS)
            out[at + i] = fmaxf(held[i], 0.0f);
        __syncthreads();
    }
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    cudaFuncSetAttribute(relu, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
    relu<<<1024, THREADS, BYTES, stream>>>(in->x, out->out, OUT_ELEMENTS);
}
