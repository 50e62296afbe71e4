// provenance: shipped
/* 2-D convolution: 3 -> 96 channels, 11 x 11, stride 4, padding 2, with bias.
 *
 * Idea: three products of f16 parts on the tensor cores, fp32 sums (conv_f16.cuh). Neighbouring pixels
 * and channels share a scale, so the class is fp32-normwise.
 * Floor: three f16 passes at 770 Tflop/s, 0.21 ms; 451 MB of memory are 0.1 ms.
 * Measured: 412 us on an H200, twice the floor: depth and pixels are padded by a quarter, stores
 * are not whole sectors. cuDNN fp32 takes 2729. */
#include "task.h"
#include "conv_f16_alexnet.cuh"

using Plan = AlexnetPlan<X_DIM0, 3, 4>;
static_assert(Plan::OUT == OUT_DIM2 && Plan::N == OUT_DIM1 && Plan::SIDE == X_DIM2, "size");

extern "C" size_t scratch_bytes(void) {
    return convolve_scratch<Plan>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    convolve<Plan, Biased>(in->x, in->conv1_weight, in->conv1_bias, out->out, scratch, stream);
}
