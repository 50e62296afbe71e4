// provenance: shipped
/* sigmoid(gelu(leaky_relu(relu(conv)))) + bias, conv a convolution over three axes with bias:
 * x [64][8][32][64][64], weight [32][8][3][3][3] -> [64][32][30][62][62].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh); 32
 * filters a tile; the rest in its epilogue.
 * Floor: three products in TF32, 748 us; 1.13 GiB, 283 us.
 * Measured: 1960 us on an H200, 38 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve.cuh"

using Width = kp::Axis<X_DIM4, CONV_WEIGHT_DIM4>;
using Height = kp::Axis<X_DIM3, CONV_WEIGHT_DIM3>;
using Depth = kp::Axis<X_DIM2, CONV_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_WEIGHT_DIM0, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 32>;

struct Finish {
    const float *conv_bias, *bias;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        v += __ldg(conv_bias + filter);
        return kp::Sigmoid()(kp::Gelu()(kp::LeakyRelu{0.01f}(kp::Relu()(v)))) +
               __ldg(bias + filter);
    }
};

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const Finish finish = {in->conv_bias, in->bias};
    kp::convolve<Conv, Tile>(in->x, in->conv_weight, out->out, finish, scratch, stream);
}
