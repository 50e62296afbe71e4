// provenance: shipped
/* sigmoid(tanh(conv scale) bias), conv a convolution over three axes with bias: x
 * [128][3][16][64][64], weight [16][3][3][3][3] -> [128][16][14][62][62].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh); 16
 * filters a tile; the rest in its epilogue.
 * Floor: three products in TF32, 131 us; 0.50 GiB, 126 us.
 * Measured: 791 us on an H200, 17 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve.cuh"

using Width = kp::Axis<X_DIM4, CONV_WEIGHT_DIM4>;
using Height = kp::Axis<X_DIM3, CONV_WEIGHT_DIM3>;
using Depth = kp::Axis<X_DIM2, CONV_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_WEIGHT_DIM0, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 16>;

struct Finish {
    const float *conv_bias, *scaling_factor, *bias;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        v += __ldg(conv_bias + filter);
        return kp::Sigmoid()(kp::Tanh()(v * __ldg(scaling_factor + filter)) * __ldg(bias + filter));
    }
};

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const Finish finish = {in->conv_bias, in->scaling_factor, in->bias};
    kp::convolve<Conv, Tile>(in->x, in->conv_weight, out->out, finish, scratch, stream);
}
