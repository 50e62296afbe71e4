// provenance: shipped
/* 3 x 3 convolution 64 -> 128 channels with bias, instance norm of each plane, divided by two.
 *
 * Idea: three products of f16 parts on the tensor cores, fp32 sums (conv_f16.cuh). Neighbouring pixels
 * and channels share a scale, so the class is fp32-normwise.
 * Then each plane through the registers of one block, in place (instance_norm.cuh).
 * Floor: three f16 passes at 770 Tflop/s, 1.2 ms, and 0.5 ms for the norm.
 * Measured: 1.92 ms on an H200; cuDNN fp32 and the norm take 8.9. */
#include "task.h"
#include "conv_f16_unit.cuh"
#include "instance_norm.cuh"

/* 2 warpgroups, image stages, filter stages (0: resident), 1 part, 4 storers. */
using Plan =
    UnitPlan<CONV_WEIGHT_DIM0, X_DIM1, X_DIM0, 1, X_DIM2 * X_DIM3, 3, X_DIM3, 2, 2, 4, 1, 4>;
static_assert(Plan::OUT_ROWS == OUT_DIM2 && Plan::OUT_WIDTH == OUT_DIM3, "output size");
constexpr int FOURS = Plan::PIXELS / 4;

extern "C" size_t scratch_bytes(void) {
    return convolve_scratch<Plan>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    convolve<Plan, Biased>(in->x, in->conv_weight, in->conv_bias, out->out, scratch, stream);
    instance_norm_kernel<FOURS><<<X_DIM0 * CONV_WEIGHT_DIM0, INSTANCE_THREADS, 0, stream>>>(
        (float4 *)out->out, 1e-5, 0.5f);
}
