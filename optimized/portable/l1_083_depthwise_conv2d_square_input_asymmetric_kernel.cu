// provenance: shipped
/* Depthwise 3 x 1 convolution, no padding: 64 x 8 planes of 512 x 512 -> 510 x 512.
 *
 * Idea: a thread owns four neighbouring columns of ten rows and reads the twelve rows under them at
 * once, a float4 each (depthwise_conv.cuh).
 * Floor: 4 bytes an input and 4 an output element over the copy bandwidth, 250 us.
 * Measured: 261.3 us on an H200, 96 % of the floor. */
#include "task.h"
#include "depthwise_conv.cuh"

using Shape = kp::DepthwiseConv<X_DIM1, kp::Windows<X_DIM2, 3>, kp::Windows<X_DIM3, 1>, 10>;
static_assert(Shape::H::OUT == OUT_DIM2 && Shape::W::OUT == OUT_DIM3, "the sizes of the result");

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    kp::depthwise_conv<Shape>(in->x, in->conv2d_weight, out->out, X_DIM0, stream);
}
