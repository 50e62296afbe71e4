// provenance: shipped
/* sigmoid(2 (softmax over the filters of conv + a number for each filter)), conv a transposed
 * convolution over two axes with bias, stride 2 and padding 1: x [128][64][64][64], weight
 * [64][128][4][4] -> [128][128][129][129].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh), and whose
 * epilogue has all filters of a pixel and takes softmax over them (convolve_filters.cuh). What
 * follows is computed and stored a column at a time (one_by_one.cuh).
 * Floor: three products in TF32, 1021 us; 0.12 GiB read and 1.02 GiB written, 269 us.
 * Measured: 1787 us on an H200, 57 % of the floor.
 * Spills 8 bytes a thread (stored and loaded) on sm_90a. */
#include "task.h"
#include "one_by_one.cuh"
#include "activations.cuh"
#include "convolve_filters.cuh"

using Width = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 2, 1, 1, 1>;
using Height = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 2, 1, 1, 1>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height>;
using Tile = kp::TileFor<Conv, 128>;

struct Finish {
    __device__ __forceinline__ float operator()(float v, int, int) const {
        return kp::Sigmoid()(v * 2.0f);
    }
};

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::convolve_softmax<Conv, Tile>(
        in->x, in->conv_transpose_weight, out->out, kp::AddBias{in->conv_transpose_bias},
        kp::OneByOne<Finish, kp::AddBias>{{}, {in->bias}}, scratch, stream);
}
