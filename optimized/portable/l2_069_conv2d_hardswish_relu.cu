// provenance: shipped
/* relu(hardswish(conv)), conv a convolution over two axes with bias: x [128][8][128][128],
 * weight [64][8][3][3] -> [128][64][126][126].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh); 64
 * filters a tile; the rest in its epilogue.
 * Floor: three products in TF32, 137 us; 0.55 GiB, 137 us.
 * Measured: 346 us on an H200, 40 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve.cuh"

using Width = kp::Axis<X_DIM3, CONV_WEIGHT_DIM3>;
using Height = kp::Axis<X_DIM2, CONV_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_WEIGHT_DIM0, 1, Width, Height>;
using Tile = kp::TileFor<Conv, 64>;

struct Finish {
    const float *conv_bias;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        v += __ldg(conv_bias + filter);
        return kp::Relu()(kp::Hardswish()(v));
    }
};

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const Finish finish = {in->conv_bias};
    kp::convolve<Conv, Tile>(in->x, in->conv_weight, out->out, finish, scratch, stream);
}
