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
#include "pool.cuh"

using Shape = ConvShape<X_DIM1, 1, X_DIM2, X_DIM3, 1, WEIGHT_DIM2, WEIGHT_DIM3, 4, 2>;
using Windows = PoolShape<Shape::OH, Shape::OW, 3, 2, 0>;
constexpr int CHANNELS = WEIGHT_DIM0, PLANES = X_DIM0 * CHANNELS;
static_assert(Windows::OH == OUT_DIM2 && Windows::OW == OUT_DIM3, "output size");

struct BiasRelu {
    const float *bias;
    __device__ __forceinline__ float operator()(float v, int channel) const {
        return Relu()(v + __ldg(bias + channel));
    }
};

extern "C" size_t scratch_bytes(void) {
    return (size_t)PLANES * Shape::PIXELS * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *unpooled = (float *)scratch;
    const BiasRelu f = {in->bias};
    convolve<Shape, CHANNELS>(in->x, in->weight, unpooled, X_DIM0, f, stream);
    pool2d<Windows, MaxPool>(unpooled, out->out, PLANES, stream);
}
