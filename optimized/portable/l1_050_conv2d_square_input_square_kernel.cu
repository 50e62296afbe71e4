// provenance: shipped
/* 2-D convolution: 3 -> 96 channels, 11 x 11, stride 4, padding 2, with bias.
 *
 * Idea: implicit matrix product, filters times patches, on the fp32 tile engine (conv.cuh).
 * Floor: 2 x channels in x taps flops an output value over the fp32 rate; memory is
 * a tenth of that.
 * Measured: see results/. */
#include "task.h"
#include "conv.cuh"

using Shape = ConvShape<X_DIM1, 1, X_DIM2, X_DIM3, 1, CONV1_WEIGHT_DIM2, CONV1_WEIGHT_DIM3, 4, 2>;
static_assert(Shape::OH == OUT_DIM2 && Shape::OW == OUT_DIM3, "output size");

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    const AddBias f = {in->conv1_bias};
    convolve<Shape, CONV1_WEIGHT_DIM0>(in->x, in->conv1_weight, out->out, X_DIM0, f, stream);
}
