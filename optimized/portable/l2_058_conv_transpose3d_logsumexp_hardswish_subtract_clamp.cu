// provenance: shipped
/* t = the log of the sum of exponentials of conv over its filters; t sigmoid(t + 3) / 6 - a
 * number, between -1 and 1, conv a transposed convolution over three axes with bias, stride 2 and
 * padding 1: x [128][3][16][32][32], weight [3][16][3][3][3] -> [128][16][31][63][63] -> one
 * number a pixel.
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh), and whose
 * epilogue has all filters of a pixel and stores one number of it (convolve_filters.cuh).
 * Floor: three products in TF32, 37 us; 0.02 GiB read, 6 us.
 * Measured: 1048 us on an H200, 4 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve_filters.cuh"
#include "row_ops.cuh"

using Width = kp::TransposedAxis<X_DIM4, CONV_TRANSPOSE_WEIGHT_DIM4, 2, 1>;
using Height = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 2, 1>;
using Depth = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 2, 1>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 16>;

struct Finish {
    const float *bias;
    __device__ __forceinline__ float operator()(float v) const {
        const float t = v * kp::Sigmoid()(v + 3.0f) / 6.0f;
        return kp::Clamp{-1.0f, 1.0f}(t - __ldg(bias));
    }
};

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::convolve_over_filters<Conv, Tile, kp::LogSumExp>(in->x, in->conv_transpose_weight, out->out,
                                                         kp::AddBias{in->conv_transpose_bias},
                                                         Finish{in->bias}, scratch, stream);
}
