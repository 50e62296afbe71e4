// provenance: shipped
/* The convolution of crfm_conv2d, ReLU, and the maximum of 3 x 3 windows at a stride of 2.
 *
 * Idea: three products of f16 parts on the tensor cores, fp32 sums (conv_f16.cuh).
 * Then a pooling pass, a block a plane.
 * Floor: three f16 passes at 770 Tflop/s, 82 us.
 * Measured: 242 us on an H200; cuDNN fp32 takes 1219. */
#include "task.h"
#include "activation.cuh"
#include "conv_f16_alexnet.cuh"

using Plan = AlexnetPlan<X_DIM0, 3, 4>;
constexpr int PLANES = X_DIM0 * WEIGHT_DIM0, POOL_THREADS = 256;
constexpr int POOLED_H = OUT_DIM2, POOLED_W = OUT_DIM3;
static_assert((Plan::OUT - 3) / 2 + 1 == POOLED_H && POOLED_H == POOLED_W, "size");

struct BiasedRelu {
    static __device__ __forceinline__ float apply(float v, const float *bias, int channel) {
        return Relu()(v + __ldg(bias + channel));
    }
};

/* One plane of OUT x OUT a block. */
__global__ void __launch_bounds__(POOL_THREADS)
    pool_kernel(const float *__restrict__ x, float *__restrict__ y) {
    const float *plane = x + (long long)blockIdx.x * Plan::PIXELS;
    for (int i = threadIdx.x; i < POOLED_H * POOLED_W; i += POOL_THREADS) {
        const float *p = plane + i / POOLED_W * 2 * Plan::OUT + i % POOLED_W * 2;
        float top = p[0];
#pragma unroll
        for (int t = 1; t < 9; t++) top = fmaxf(top, p[t / 3 * Plan::OUT + t % 3]);
        y[(long long)blockIdx.x * POOLED_H * POOLED_W + i] = top;
    }
}

extern "C" size_t scratch_bytes(void) {
    return convolve_scratch<Plan>() + (size_t)PLANES * Plan::PIXELS * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *unpooled = (float *)((char *)scratch + convolve_scratch<Plan>());
    convolve<Plan, BiasedRelu>(in->x, in->weight, in->bias, unpooled, scratch, stream);
    pool_kernel<<<PLANES, POOL_THREADS, 0, stream>>>(unpooled, out->out);
}
