// provenance: shipped
/* 2 hardtanh(mish(conv) + 0.5), conv a transposed convolution over two axes with bias: x
 * [128][64][128][128], weight [64][64][3][3] -> [128][64][256][256].
 *
 * Idea: a product at fp32 accuracy whose rows are places of x, and its columns the taps along x of
 * 32 filters: a tile has both phases of a line, and stores it whole (both_phases.cuh); the rest in
 * its epilogue.
 * Floor: three products in TF32, 1134 us; 2.50 GiB, 626 us.
 * Measured: 1941 us on an H200, 58 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "both_phases.cuh"

using Width = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 2, 1, 1, 1>;
using Height = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 2, 1, 1, 1>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height>;

struct Finish {
    const float *conv_transpose_bias;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        v += __ldg(conv_transpose_bias + filter);
        return kp::Clamp{-1.0f, 1.0f}(kp::Mish()(v) + 0.5f) * 2.0f;
    }
};

extern "C" size_t scratch_bytes(void) {
    return kp::both_phases::scratch_bytes<Conv>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const Finish finish = {in->conv_transpose_bias};
    kp::both_phases::convolve<Conv>(in->x, in->conv_transpose_weight, out->out, finish, scratch,
                                    stream);
}
