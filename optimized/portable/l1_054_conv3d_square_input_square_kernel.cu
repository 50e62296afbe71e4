// provenance: shipped
/* 3-D convolution: 3 -> 64 channels, 3 x 3 x 3, no padding, no bias.
 *
 * Idea: implicit matrix product, filters times patches, on the fp32 tile engine (conv.cuh).
 * Floor: 2 x channels in x taps flops an output value over the fp32 rate; the
 * output's 4 bytes a value over the write bandwidth come close.
 * Measured: see results/. */
#include "task.h"
#include "conv.cuh"

using Shape = ConvShape<X_DIM1, X_DIM2, X_DIM3, X_DIM4, 3, 3, 3, 1, 0>;
static_assert(Shape::OD == OUT_DIM2 && Shape::OH == OUT_DIM3 && Shape::OW == OUT_DIM4, "size");

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    const Same f;
    convolve<Shape, CONV3D_WEIGHT_DIM0>(in->x, in->conv3d_weight, out->out, X_DIM0, f, stream);
}
