// provenance: shipped
/* Transposed convolution over two axes: x [16][32][128][256], weight [32][16][3][5], stride 2
 * x 3, padding 1 x 2, dilation 2 x 1, 4 groups -> [16][64][257][766].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh); 16
 * filters a tile.
 * Floor: three products in TF32, 59 us; 0.81 GiB, 204 us.
 * Measured: 1941 us on an H200, 10 % of the floor. */
#include "task.h"
#include "convolve.cuh"
#include "stores.cuh"

using Width = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE2D_WEIGHT_DIM3, 3, 2>;
using Height = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE2D_WEIGHT_DIM2, 2, 1, 2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE2D_WEIGHT_DIM1 * 4, 4, Width, Height>;
using Tile = kp::TileFor<Conv, 16>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::convolve<Conv, Tile>(in->x, in->conv_transpose2d_weight, out->out, kp::Same(), scratch,
                             stream);
}
