// provenance: shipped
/* Convolution over two axes: x [16][16][1024][1024], weight [128][16][3][3] ->
 * [16][128][1022][1022].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh); 128
 * filters a tile.
 * Floor: three products in TF32, 4519 us; 8.97 GiB, 2255 us.
 * Measured: 5842 us on an H200, 77 % of the floor. */
#include "task.h"
#include "convolve.cuh"

using Width = kp::Axis<X_DIM3, CONV2D_WEIGHT_DIM3>;
using Height = kp::Axis<X_DIM2, CONV2D_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV2D_WEIGHT_DIM0, 1, Width, Height>;
using Tile = kp::TileFor<Conv, 128>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::convolve<Conv, Tile>(in->x, in->conv2d_weight, out->out, kp::Same(), scratch, stream);
}
