// provenance: shipped
/* Convolution over two axes: x [8][32][512][512], weight [64][32][5][9] -> [8][64][508][504].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, share what is fetched and split
 * (convolve_lines.cuh); 64 filters a tile.
 * Floor: one product in TF32 and two in bf16, 1890 us; 0.74 GiB, 185 us.
 * Measured: 1965 us on an H200, 96 % of the floor. */
#include "task.h"
#include "convolve_lines.cuh"
#include "stores.cuh"

using Width = kp::Axis<X_DIM3, CONV2D_WEIGHT_DIM3>;
using Height = kp::Axis<X_DIM2, CONV2D_WEIGHT_DIM2>;
using Plain = kp::Convolution<X_DIM0, X_DIM1, CONV2D_WEIGHT_DIM0, 1, Width, Height>;
using Conv = kp::InLines<Plain>;
using Tile = kp::LineTile<Conv, 64>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::convolve<Conv, Tile>(in->x, in->conv2d_weight, out->out, kp::Same(), scratch, stream);
}
