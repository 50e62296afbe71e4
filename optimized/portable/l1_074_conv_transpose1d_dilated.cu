// provenance: shipped
/* Transposed convolution over one axis: x [32][32][131072], weight [32][64][5], dilation 3 ->
 * [32][64][131084].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh); 64
 * filters a tile.
 * Floor: three products in TF32, 630 us; 1.50 GiB, 375 us.
 * Measured: 932 us on an H200, 68 % of the floor. */
#include "task.h"
#include "convolve.cuh"
#include "stores.cuh"

using Width = kp::TransposedAxis<X_DIM2, CONV1D_TRANSPOSE_WEIGHT_DIM2, 1, 0, 3>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV1D_TRANSPOSE_WEIGHT_DIM1, 1, Width>;
using Tile = kp::TileFor<Conv, 64>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::convolve<Conv, Tile>(in->x, in->conv1d_transpose_weight, out->out, kp::Same(), scratch,
                             stream);
}
