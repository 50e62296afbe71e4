// provenance: shipped
/* Transposed convolution over two axes: x [8][32][512][1024], weight [32][32][3][7], padding 1 x 3
 * -> [8][32][512][1024].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, share what is fetched and split
 * (convolve_lines.cuh); 32 filters a tile.
 * Floor: two products in TF32 and one in bf16, 1102 us; 1.00 GiB, 250 us.
 * Measured: 1525 us on an H200, 72 % of the floor. */
#include "task.h"
#include "convolve_lines.cuh"
#include "stores.cuh"

using Width = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE2D_WEIGHT_DIM3, 1, 3>;
using Height = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE2D_WEIGHT_DIM2, 1, 1>;
using Plain = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE2D_WEIGHT_DIM1, 1, Width, Height>;
using Conv = kp::InLines<Plain>;
using Tile = kp::LineTile<Conv, 32>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::convolve<Conv, Tile>(in->x, in->conv_transpose2d_weight, out->out, kp::Same(), scratch,
                             stream);
}
