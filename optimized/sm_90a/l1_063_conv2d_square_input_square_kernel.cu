// provenance: shipped
/* 2-D convolution: 16 -> 128 channels, 3 x 3, no padding, no bias; the output has 2.1e9 values.
 *
 * Idea: three products of f16 parts on the tensor cores, fp32 sums (conv_f16.cuh). Neighbouring pixels
 * and channels share a scale, so the class is fp32-normwise.
 * Floor: three f16 passes at 770 Tflop/s, 2.4 ms; 9.6 GB of memory, 2.2 ms.
 * Measured: 4.1 ms on an H200, 1.7 times the floor (2.8 ms without the stores); cuDNN fp32
 * takes 17.2, TF32 6.5. */
#include "task.h"
#include "conv_f16_unit.cuh"

/* 2 warpgroups, image stages, filter stages (0: resident), 1 part, 4 storers. */
using Plan = UnitPlan<CONV2D_WEIGHT_DIM0, X_DIM1, X_DIM0, X_DIM2, X_DIM3, 3, 0, 2, 3, 0, 1, 4>;
static_assert(Plan::OUT_ROWS == OUT_DIM2 && Plan::OUT_WIDTH == OUT_DIM3, "output size");

extern "C" size_t scratch_bytes(void) {
    return convolve_scratch<Plan>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    convolve<Plan, Plain>(in->x, in->conv2d_weight, nullptr, out->out, scratch, stream);
}
