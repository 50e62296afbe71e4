// provenance: shipped
/* group norm (8 groups) of relu(conv), conv a transposed convolution over three axes: x
 * [16][64][32][32][32], weight [64][128][3][3][3] -> [16][128][34][34][34].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh); its stores
 * gather the moments of each channel, and the norm is one more pass, in place (convolve_norm.cuh).
 * Floor: one product in TF32 and two in bf16, 1393 us; 0.13 GiB read and 0.30 GiB written, read and
 * written, 242 us.
 * Measured: 1913 us on an H200, 73 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve_norm.cuh"

using Width = kp::TransposedAxis<X_DIM4, CONV_TRANSPOSE_WEIGHT_DIM4>;
using Height = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3>;
using Depth = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 128>;
using Parts = kp::Parts<Conv, 1, CONV_TRANSPOSE_WEIGHT_DIM1 / 8>;

struct Activate {
    __device__ __forceinline__ float operator()(float v, int, int) const { return kp::Relu()(v); }
};

using Scratch = kp::NormScratch<Conv, Tile, Parts::COUNT>;

extern "C" size_t scratch_bytes(void) {
    return Scratch::bytes();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const Scratch own = Scratch::in(scratch);
    kp::convolve_moments<Conv, Tile>(in->x, in->conv_transpose_weight, out->out, Activate(),
                                     own.moments, scratch, stream);
    kp::join_moments<Parts>(own.moments, 1e-5, own.spread, stream);
    kp::normalize<Parts>(own.spread, in->group_norm_weight, in->group_norm_bias, kp::Same(),
                         out->out, stream);
}
