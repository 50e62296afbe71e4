// provenance: shipped
/* tanh(tanh(the least filter of conv)), conv a convolution over two axes with bias: x
 * [128][16][256][256], weight [64][16][3][3] -> [128][64][254][254] -> one number a pixel.
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh), and whose
 * epilogue has all filters of a pixel and stores one number of it (convolve_filters.cuh).
 * Floor: three products in TF32, 1113 us; 0.50 GiB read, 118 us.
 * Measured: 1602 us on an H200, 69 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve_filters.cuh"
#include "extreme_op.cuh"

using Width = kp::Axis<X_DIM3, CONV_WEIGHT_DIM3>;
using Height = kp::Axis<X_DIM2, CONV_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_WEIGHT_DIM0, 1, Width, Height>;
using Tile = kp::TileFor<Conv, 64>;

struct Finish {
    __device__ __forceinline__ float operator()(float v) const { return kp::Tanh()(kp::Tanh()(v)); }
};

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::convolve_over_filters<Conv, Tile, kp::Extreme<false>>(
        in->x, in->conv_weight, out->out, kp::AddBias{in->conv_bias}, Finish{}, scratch, stream);
}
