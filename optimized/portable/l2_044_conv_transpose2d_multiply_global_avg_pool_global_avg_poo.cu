// provenance: shipped
/* The mean over each filter of conv / 2, conv a transposed convolution over two axes with bias,
 * stride 2 and padding 1: x [16][64][128][128], weight [64][128][3][3] -> [16][128][256][256] ->
 * [16][128][1][1].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh), its
 * phases shared evenly (even_phases.cuh), and whose stores gather the means of each channel: no
 * result goes to memory (convolve_means.cuh).
 * Floor: three products in TF32, 282 us; 0.06 GiB read, 15 us.
 * Measured: 427 us on an H200, 66 % of the floor.
 * Spills 8 bytes a thread (stored and loaded) on sm_90a. */
#include "task.h"
#include "convolve_means.cuh"
#include "even_phases.cuh"

using Width = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 2, 1, 1, 1>;
using Height = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 2, 1, 1, 1>;
using Plain = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height>;
using Conv = kp::EvenPhases<Plain>;
using Tile = kp::TileFor<Conv, 128>;

struct Biased {
    const float *conv_transpose_bias;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        return (v + __ldg(conv_transpose_bias + filter)) * 0.5f;
    }
};

struct Value {
    __device__ __forceinline__ float operator()(float mean, int) const { return mean; }
};

extern "C" size_t scratch_bytes(void) {
    return kp::MeansScratch<Conv, Tile>::bytes();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::convolve_means<Conv, Tile>(in->x, in->conv_transpose_weight, out->out,
                                   Biased{in->conv_transpose_bias}, Value{}, scratch, stream);
}
