// provenance: shipped
/* Convolution over one axis: x [32][64][131072], weight [128][64][3] -> [32][128][131070].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh); 128
 * filters a tile.
 * Floor: three products in TF32, 1512 us; 3.00 GiB, 754 us.
 * Measured: 1856 us on an H200, 81 % of the floor. */
#include "task.h"
#include "convolve.cuh"

using Width = kp::Axis<X_DIM2, CONV1D_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV1D_WEIGHT_DIM0, 1, Width>;
using Tile = kp::TileFor<Conv, 128>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::convolve<Conv, Tile>(in->x, in->conv1d_weight, out->out, kp::Same(), scratch, stream);
}
