// provenance: shipped
/* group norm (8 groups) of sigmoid((conv + bias) scale), conv a convolution over two axes with
 * bias: x [128][8][256][256], weight [32][8][3][3] -> [128][32][254][254].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh); its stores
 * gather the moments of each channel, and the norm is one more pass, in place (convolve_norm.cuh).
 * Floor: 0.25 GiB read and 0.98 GiB written, read and written, 756 us; products in TF32, 279 us.
 * Measured: 1922 us on an H200, 39 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve_norm.cuh"

using Width = kp::Axis<X_DIM3, CONV_WEIGHT_DIM3>;
using Height = kp::Axis<X_DIM2, CONV_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_WEIGHT_DIM0, 1, Width, Height>;
using Tile = kp::TileFor<Conv, 32>;
using Parts = kp::Parts<Conv, 1, CONV_WEIGHT_DIM0 / 8>;

struct Activate {
    const float *conv_bias, *bias, *scale;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        v = (v + __ldg(conv_bias + filter)) + __ldg(bias + filter);
        return kp::Sigmoid()(v * __ldg(scale + filter));
    }
};

using Scratch = kp::NormScratch<Conv, Tile, Parts::COUNT>;

extern "C" size_t scratch_bytes(void) {
    return Scratch::bytes();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const Scratch own = Scratch::in(scratch);
    const Activate activate = {in->conv_bias, in->bias, in->scale};
    kp::convolve_moments<Conv, Tile>(in->x, in->conv_weight, out->out, activate, own.moments,
                                     scratch, stream);
    kp::join_moments<Parts>(own.moments, 1e-5, own.spread, stream);
    kp::normalize<Parts>(own.spread, in->group_norm_weight, in->group_norm_bias, kp::Same(),
                         out->out, stream);
}
