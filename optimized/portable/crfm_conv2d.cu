// provenance: shipped
/* AlexNet's first convolution: x [100][3][224][224], weight [96][3][11][11], stride 4, padding 2,
 * with bias -> [100][96][55][55].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh); all 96
 * filters in a tile.
 * Floor: two products in TF32 and one in bf16, 129 us; 0.16 GiB, 41 us.
 * Measured: 251.2 us on an H200, 51 % of the floor. */
#include "task.h"
#include "convolve.cuh"

using Width = kp::Axis<X_DIM3, WEIGHT_DIM3, 4, 2>;
using Height = kp::Axis<X_DIM2, WEIGHT_DIM2, 4, 2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, WEIGHT_DIM0, 1, Width, Height>;
using Tile = kp::TileFor<Conv, 96>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const kp::AddBias add = {in->bias};
    kp::convolve<Conv, Tile>(in->x, in->weight, out->out, add, scratch, stream);
}
