// provenance: shipped
/* Transposed convolution over two axes: x [8][32][512][1024], weight [32][32][3][3] ->
 * [8][32][514][1026].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, share what is fetched and split
 * (convolve_lines.cuh); 32 filters a tile.
 * Floor: three products in TF32, 567 us; 1.00 GiB, 251 us.
 * Measured: 863 us on an H200, 66 % of the floor. */
#include "task.h"
#include "convolve_lines.cuh"
#include "stores.cuh"

using Width = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE2D_WEIGHT_DIM3>;
using Height = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE2D_WEIGHT_DIM2>;
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
