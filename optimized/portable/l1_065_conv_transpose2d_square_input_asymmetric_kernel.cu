// provenance: shipped
/* Transposed convolution over two axes: x [8][64][512][512], weight [64][64][3][7] ->
 * [8][64][514][518].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, share what is fetched and split
 * (convolve_lines.cuh); 64 filters a tile.
 * Floor: one product in TF32 and two in bf16, 1806 us; 1.01 GiB, 252 us.
 * Measured: 2051 us on an H200, 88 % of the floor. */
#include "task.h"
#include "convolve_lines.cuh"
#include "stores.cuh"

using Width = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE2D_WEIGHT_DIM3>;
using Height = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE2D_WEIGHT_DIM2>;
using Plain = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE2D_WEIGHT_DIM1, 1, Width, Height>;
using Conv = kp::InLines<Plain>;
using Tile = kp::LineTile<Conv, 64>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::convolve<Conv, Tile>(in->x, in->conv_transpose2d_weight, out->out, kp::Same(), scratch,
                             stream);
}
