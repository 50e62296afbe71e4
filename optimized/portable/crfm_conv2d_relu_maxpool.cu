// provenance: shipped
/* The convolution of crfm_conv2d, ReLU, and the maximum of 3 x 3 windows at a stride of 2.
 *
 * Idea: implicit product with bias and ReLU in its epilogue (conv.cuh), then a pooling pass, a
 * block a plane.
 * Floor: 2 x channels in x taps flops a value of the convolution over the fp32 rate.
 * Measured: see results/. */
#include "task.h"
#include "activation.cuh"
#include "conv.cuh"

using Shape = ConvShape<X_DIM1, 1, X_DIM2, X_DIM3, 1, WEIGHT_DIM2, WEIGHT_DIM3, 4, 2>;
constexpr int CHANNELS = WEIGHT_DIM0, PLANES = X_DIM0 * CHANNELS, THREADS = 256;
constexpr int POOLED_H = OUT_DIM2, POOLED_W = OUT_DIM3;
static_assert((Shape::OH - 3) / 2 + 1 == POOLED_H && (Shape::OW - 3) / 2 + 1 == POOLED_W, "size");

struct BiasRelu {
    const float *bias;
    __device__ __forceinline__ float operator()(float v, int channel) const {
        return Relu()(v + __ldg(bias + channel));
    }
};

/* One plane of OH x OW a block. */
__global__ void __launch_bounds__(THREADS)
    pool_kernel(const float *__restrict__ x, float *__restrict__ y) {
    const float *plane = x + (long long)blockIdx.x * Shape::PIXELS;
    for (int i = threadIdx.x; i < POOLED_H * POOLED_W; i += THREADS) {
        const float *p = plane + i / POOLED_W * 2 * Shape::OW + i % POOLED_W * 2;
        float top = p[0];
#pragma unroll
        for (int t = 1; t < 9; t++) top = fmaxf(top, p[t / 3 * Shape::OW + t % 3]);
        y[(long long)blockIdx.x * POOLED_H * POOLED_W + i] = top;
    }
}

extern "C" size_t scratch_bytes(void) {
    return (size_t)PLANES * Shape::PIXELS * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *unpooled = (float *)scratch;
    const BiasRelu f = {in->bias};
    convolve<Shape, CHANNELS>(in->x, in->weight, unpooled, X_DIM0, f, stream);
    pool_kernel<<<PLANES, THREADS, 0, stream>>>(unpooled, out->out);
}
