// provenance: shipped
/* The convolution of crfm_conv2d, ReLU, and the maximum of 3 x 3 windows at a stride of 2.
 *
 * Idea: three products of f16 parts on the tensor cores, fp32 sums (conv_f16.cuh). Neighbouring pixels
 * and channels share a scale, so the class is fp32-normwise.
 * Then a pooling pass, a block a plane.
 * Floor: three f16 passes at 770 Tflop/s, 82 us.
 * Measured: 242 us on an H200; cuDNN fp32 takes 1219. */
#include "task.h"
#include "activation.cuh"
#include "conv_f16_alexnet.cuh"
#include "pool.cuh"

using Plan = AlexnetPlan<X_DIM0, 3, 4>;
using Windows = PoolShape<Plan::OUT, Plan::OUT, 3, 2, 0>;
constexpr int PLANES = X_DIM0 * WEIGHT_DIM0;
static_assert(Windows::OH == OUT_DIM2 && Windows::OW == OUT_DIM3, "output size");

struct BiasedRelu {
    static __device__ __forceinline__ float apply(float v, const float *bias, int channel) {
        return Relu()(v + __ldg(bias + channel));
    }
};

extern "C" size_t scratch_bytes(void) {
    return convolve_scratch<Plan>() + (size_t)PLANES * Plan::PIXELS * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *unpooled = (float *)((char *)scratch + convolve_scratch<Plan>());
    convolve<Plan, BiasedRelu>(in->x, in->weight, in->bias, unpooled, scratch, stream);
    pool2d<Windows, MaxPool>(unpooled, out->out, PLANES, stream);
}
