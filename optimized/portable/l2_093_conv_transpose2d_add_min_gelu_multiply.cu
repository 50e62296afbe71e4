// provenance: shipped
/* 2 gelu(min(conv + 0.5, 0)), conv a transposed convolution over two axes with bias: x
 * [128][64][64][64], weight [64][128][4][4] -> [128][128][130][130].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh); 128
 * filters a tile; the rest in its epilogue.
 * Floor: three products in TF32, 1008 us; 1.16 GiB, 290 us.
 * Measured: 1669 us on an H200, 60 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve.cuh"

using Width = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 2>;
using Height = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height>;
using Tile = kp::TileFor<Conv, 128>;

struct Finish {
    const float *conv_transpose_bias;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        v += __ldg(conv_transpose_bias + filter);
        const float least = v + 0.5f;
        return kp::Gelu()(least > 0.0f ? 0.0f : least) * 2.0f;
    }
};

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const Finish finish = {in->conv_transpose_bias};
    kp::convolve<Conv, Tile>(in->x, in->conv_transpose_weight, out->out, finish, scratch, stream);
}
