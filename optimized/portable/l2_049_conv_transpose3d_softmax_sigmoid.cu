// provenance: shipped
/* sigmoid(softmax over the filters of conv), conv a transposed convolution over three axes with
 * bias, stride 2 and padding 1: x [16][32][16][32][32], weight [32][64][3][3][3] ->
 * [16][64][32][64][64].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh), its
 * phases shared evenly (even_phases.cuh), and whose epilogue has all filters of a pixel and takes
 * softmax over them (convolve_filters.cuh).
 * Floor: three products in TF32, 212 us; 0.03 GiB read and 0.50 GiB written, 133 us.
 * Measured: 739 us on an H200, 29 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve_filters.cuh"
#include "even_phases.cuh"

using Width = kp::TransposedAxis<X_DIM4, CONV_TRANSPOSE_WEIGHT_DIM4, 2, 1, 1, 1>;
using Height = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 2, 1, 1, 1>;
using Depth = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 2, 1, 1, 1>;
using Plain = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height, Depth>;
using Conv = kp::EvenPhases<Plain>;
using Tile = kp::TileFor<Conv, 64>;

struct Finish {
    __device__ __forceinline__ float operator()(float v, int, int) const {
        return kp::Sigmoid()(v);
    }
};

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::convolve_softmax<Conv, Tile>(in->x, in->conv_transpose_weight, out->out,
                                     kp::AddBias{in->conv_transpose_bias}, Finish{}, scratch,
                                     stream);
}
