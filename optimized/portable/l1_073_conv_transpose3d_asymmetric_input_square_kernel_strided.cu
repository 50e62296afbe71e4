// provenance: shipped
/* Transposed convolution over three axes: x [4][32][32][64][128], weight [32][32][3][3][3],
 * stride 2, padding 1 -> [4][32][63][127][255].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh); 32
 * filters a tile.
 * Floor: three products in TF32, 425 us; 1.10 GiB, 275 us.
 * Measured: 1939 us on an H200, 22 % of the floor. */
#include "task.h"
#include "one_by_one.cuh"
#include "convolve.cuh"
#include "stores.cuh"

using Width = kp::TransposedAxis<X_DIM4, CONV_TRANSPOSE3D_WEIGHT_DIM4, 2, 1>;
using Height = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE3D_WEIGHT_DIM3, 2, 1>;
using Depth = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE3D_WEIGHT_DIM2, 2, 1>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE3D_WEIGHT_DIM1, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 32>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::convolve<Conv, Tile>(in->x, in->conv_transpose3d_weight, out->out, kp::OneByOne<kp::Same>(),
                             scratch, stream);
}
