// provenance: shipped
/* group norm (8 groups) of gelu(conv), conv a transposed convolution over two axes with bias: x
 * [128][64][256][256], weight [64][64][3][3] -> [128][64][258][258].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, share what is fetched and split
 * (convolve_lines.cuh); its stores gather moments, and a fourth warpgroup of each block normalises
 * images that are complete while later ones are computed (norm_behind.cuh).
 * Floor: two products in TF32 and one in bf16, 3780 us; 2.00 GiB read and 2.03 GiB written, read
 * and written, 1910 us. Measured: 5529 us on an H200, 68 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "norm_behind.cuh"

using Width = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3>;
using Height = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2>;
using Plain = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height>;
using Conv = kp::InLines<Plain>;
using Tile = kp::LineTile<Conv, 64, true>;
using Groups = kp::GroupsBehind<Conv, CONV_TRANSPOSE_WEIGHT_DIM1 / 8>;

struct Activate {
    const float *conv_transpose_bias;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        return kp::Gelu()(v + __ldg(conv_transpose_bias + filter));
    }
};

extern "C" size_t scratch_bytes(void) {
    return kp::behind_bytes<Groups, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const Activate activate = {in->conv_transpose_bias};
    kp::normalize_behind<Groups, Tile>(in->x, in->conv_transpose_weight, in->group_norm_weight,
                                       in->group_norm_bias, 1e-5, activate, out->out, scratch,
                                       stream);
}
