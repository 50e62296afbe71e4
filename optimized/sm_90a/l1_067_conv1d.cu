// provenance: shipped
/* 1-D convolution: 64 -> 128 channels, 3 taps, no padding, no bias.
 *
 * Idea: three products of f16 parts on the tensor cores, fp32 sums (conv_f16.cuh). Neighbouring pixels
 * and channels share a scale, so the class is fp32-normwise.
 * Floor: three f16 passes at 770 Tflop/s, 0.8 ms; 3.2 GB of memory, 0.75 ms.
 * Measured: 1.21 ms on an H200, 1.5 times the floor; cuDNN fp32 takes 5.5. */
#include "task.h"
#include "conv_f16_unit.cuh"

/* 2 warpgroups, image stages, filter stages (0: resident), 1 part, 4 storers. */
using Plan = UnitPlan<CONV1D_WEIGHT_DIM0, X_DIM1, X_DIM0, 1, X_DIM2, 1, 0, 2, 6, 0, 1, 4>;
static_assert(Plan::OUT_WIDTH == OUT_DIM2, "output size");

extern "C" size_t scratch_bytes(void) {
    return convolve_scratch<Plan>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    convolve<Plan, Plain>(in->x, in->conv1d_weight, nullptr, out->out, scratch, stream);
}
