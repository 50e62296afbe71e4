// provenance: shipped
/* Transposed convolution over three axes: x [8][32][12][24][48], weight [32][8][3][5][7],
 * stride 2, padding 1 x 2 x 3, output padding 1, 4 groups -> [8][32][24][48][96].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh); 16
 * filters a tile. 8 filters fill it by 50 %.
 * Floor: two products in TF32 and one in bf16, 37 us; 0.12 GiB, 30 us.
 * Measured: 401.2 us on an H200, 9 % of the floor. */
#include "task.h"
#include "convolve.cuh"
#include "stores.cuh"

using Width = kp::TransposedAxis<X_DIM4, CONV_TRANSPOSE3D_WEIGHT_DIM4, 2, 3, 1, 1>;
using Height = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE3D_WEIGHT_DIM3, 2, 2, 1, 1>;
using Depth = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE3D_WEIGHT_DIM2, 2, 1, 1, 1>;
using Conv =
    kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE3D_WEIGHT_DIM1 * 4, 4, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 16>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::convolve<Conv, Tile>(in->x, in->conv_transpose3d_weight, out->out, kp::Same(), scratch,
                             stream);
}
