// provenance: shipped
/* Convolution over three axes: x [16][3][256][256][10], weight [64][3][3][3][1] ->
 * [16][64][254][254][10].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh); 64
 * filters a tile.
 * Floor: three products in TF32, 262 us; 2.58 GiB, 645 us.
 * Measured: 900.6 us on an H200, 72 % of the floor. */
#include "task.h"
#include "convolve.cuh"
#include "stores.cuh"

using Width = kp::Axis<X_DIM4, CONV3D_WEIGHT_DIM4>;
using Height = kp::Axis<X_DIM3, CONV3D_WEIGHT_DIM3>;
using Depth = kp::Axis<X_DIM2, CONV3D_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV3D_WEIGHT_DIM0, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 64>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::convolve<Conv, Tile>(in->x, in->conv3d_weight, out->out, kp::Same(), scratch, stream);
}
