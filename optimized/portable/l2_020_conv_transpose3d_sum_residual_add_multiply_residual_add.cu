// provenance: shipped
/* ((conv + bias) + conv) conv + conv, conv a transposed convolution over three axes with bias: x
 * [16][32][16][32][32], weight [32][64][3][3][3] -> [16][64][32][64][64].
 *
 * Idea: a product at fp32 accuracy whose rows are places of x, and its columns the taps along x of
 * 32 filters: a tile has both phases of a line, and stores it whole (both_phases.cuh); the rest in
 * its epilogue.
 * Floor: three products in TF32, 213 us; 0.53 GiB, 133 us.
 * Measured: 345 us on an H200, 62 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "both_phases.cuh"

using Width = kp::TransposedAxis<X_DIM4, CONV_TRANSPOSE_WEIGHT_DIM4, 2, 1, 1, 1>;
using Height = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 2, 1, 1, 1>;
using Depth = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 2, 1, 1, 1>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height, Depth>;

struct Finish {
    const float *conv_transpose_bias, *bias;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        v += __ldg(conv_transpose_bias + filter);
        return ((v + __ldg(bias + filter)) + v) * v + v;
    }
};

extern "C" size_t scratch_bytes(void) {
    return kp::both_phases::scratch_bytes<Conv>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const Finish finish = {in->conv_transpose_bias, in->bias};
    kp::both_phases::convolve<Conv>(in->x, in->conv_transpose_weight, out->out, finish, scratch,
                                    stream);
}
