// provenance: shipped
/* 3 x 3 convolution 64 -> 128 channels with bias, instance norm of each plane, divided by two.
 *
 * Idea: the convolution as an implicit product into out (conv.cuh), then each plane through the
 * registers of one block, in place (instance_norm.cuh).
 * Floor: 2 x channels in x 9 flops an output value over the fp32 rate.
 * Measured: see results/. */
#include "task.h"
#include "conv.cuh"
#include "instance_norm.cuh"

using Shape = ConvShape<X_DIM1, 1, X_DIM2, X_DIM3, 1, 3, 3, 1, 0>;
constexpr int CHANNELS = CONV_WEIGHT_DIM0, FOURS = Shape::PIXELS / 4;
static_assert(Shape::OH == OUT_DIM2 && Shape::OW == OUT_DIM3, "output size");
static_assert(Shape::PIXELS % 4 == 0, "whole float4");

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    const AddBias f = {in->conv_bias};
    convolve<Shape, CHANNELS>(in->x, in->conv_weight, out->out, X_DIM0, f, stream);
    instance_norm_kernel<FOURS>
        <<<X_DIM0 * CHANNELS, INSTANCE_THREADS, 0, stream>>>((float4 *)out->out, 1e-5, 0.5f);
}
