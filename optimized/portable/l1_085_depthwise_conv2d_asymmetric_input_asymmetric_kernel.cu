// provenance: shipped
/* Depthwise 3 x 7 convolution, no padding: 32 x 128 planes of 128 x 256 -> 126 x 250.
 *
 * Idea: a thread owns four neighbouring columns of six rows and reads the eight rows under them at
 * once, twelve columns each; in odd rows it makes the four columns two further right, so that every
 * store is a whole float4 (depthwise_conv.cuh).
 * Floor: 4 bytes an input and 4 an output element over the copy bandwidth, 245 us.
 * Measured: 287.2 us on an H200, 85 % of the floor. */
#include "task.h"
#include "depthwise_conv.cuh"

using Shape = kp::DepthwiseConv<X_DIM1, kp::Windows<X_DIM2, 3>, kp::Windows<X_DIM3, 7>, 6>;
static_assert(Shape::H::OUT == OUT_DIM2 && Shape::W::OUT == OUT_DIM3, "the sizes of the result");

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    kp::depthwise_conv<Shape>(in->x, in->conv2d_weight, out->out, X_DIM0, stream);
}
