// provenance: shipped
/* Transposed convolution over three axes: x [4][32][32][64][128], weight [32][32][3][3][3],
 * stride 2, padding 1 -> [4][32][63][127][255].
 *
 * Idea: a product at fp32 accuracy whose rows are places of x, and its columns the taps along x of
 * 32 filters: a tile has both phases of a line, and stores it whole (both_phases.cuh).
 * Floor: three products in TF32, 425 us; 1.10 GiB, 275 us.
 * Measured: 744.2 us on an H200, 57 % of the floor. */
#include "task.h"
#include "both_phases.cuh"
#include "stores.cuh"

using Width = kp::TransposedAxis<X_DIM4, CONV_TRANSPOSE3D_WEIGHT_DIM4, 2, 1>;
using Height = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE3D_WEIGHT_DIM3, 2, 1>;
using Depth = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE3D_WEIGHT_DIM2, 2, 1>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE3D_WEIGHT_DIM1, 1, Width, Height, Depth>;

extern "C" size_t scratch_bytes(void) {
    return kp::both_phases::scratch_bytes<Conv>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::both_phases::convolve<Conv>(in->x, in->conv_transpose3d_weight, out->out, kp::Same(),
                                    scratch, stream);
}
