// provenance: shipped
/* Transposed convolution over three axes: x [8][48][64][64][64], weight [48][48][3][3][3] ->
 * [8][48][66][66][66].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh); 48
 * filters a tile.
 * Floor: one product in TF32 and two in bf16, 1306 us; 0.79 GiB, 197 us.
 * Measured: 2774 us on an H200, 47 % of the floor. */
#include "task.h"
#include "convolve.cuh"
#include "stores.cuh"

using Width = kp::TransposedAxis<X_DIM4, CONV_TRANSPOSE3D_WEIGHT_DIM4>;
using Height = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE3D_WEIGHT_DIM3>;
using Depth = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE3D_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE3D_WEIGHT_DIM1, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 48>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::convolve<Conv, Tile>(in->x, in->conv_transpose3d_weight, out->out, kp::Same(), scratch,
                             stream);
}
