// provenance: shipped
/* Transposed convolution over one axis: x [64][128][65536], weight [128][128][3] ->
 * [64][128][65538].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh); 128
 * filters a tile.
 * Floor: two products in TF32 and one in bf16, 2520 us; 4.00 GiB, 1001 us.
 * Measured: 3458 us on an H200, 73 % of the floor.
 * Spills 40 bytes a thread (stored and loaded) on sm_90a. */
#include "task.h"
#include "convolve.cuh"
#include "stores.cuh"

using Width = kp::TransposedAxis<X_DIM2, CONV1D_TRANSPOSE_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV1D_TRANSPOSE_WEIGHT_DIM1, 1, Width>;
using Tile = kp::TileFor<Conv, 128>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::convolve<Conv, Tile>(in->x, in->conv1d_transpose_weight, out->out, kp::Same(), scratch,
                             stream);
}
