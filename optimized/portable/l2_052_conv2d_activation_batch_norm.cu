// provenance: shipped
/* batch norm(mish(conv)), by the batch's own mean and variance, conv a convolution over two axes
 * with bias: x [64][64][128][128], weight [128][64][3][3] -> [64][128][126][126].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh); its stores
 * gather the moments of each channel, and the norm is one more pass, in place (convolve_norm.cuh).
 * Floor: two products in TF32 and one in bf16, 916 us; 0.48 GiB read and written, 244 us.
 * Measured: 1602 us on an H200, 57 % of the floor.
 * Spills 80 bytes a thread (stored and loaded) on sm_90a. */
#include "task.h"
#include "activations.cuh"
#include "convolve_norm.cuh"

using Width = kp::Axis<X_DIM3, CONV_WEIGHT_DIM3>;
using Height = kp::Axis<X_DIM2, CONV_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_WEIGHT_DIM0, 1, Width, Height>;
using Tile = kp::TileFor<Conv, 128>;
using Parts = kp::Parts<Conv, X_DIM0, 1>;

struct BiasMish {
    const float *bias;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        return kp::Mish()(v + __ldg(bias + filter));
    }
};

using Scratch = kp::NormScratch<Conv, Tile, Parts::COUNT>;

extern "C" size_t scratch_bytes(void) {
    return Scratch::bytes();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const Scratch own = Scratch::in(scratch);
    const BiasMish activate = {in->conv_bias};
    kp::convolve_moments<Conv, Tile>(in->x, in->conv_weight, out->out, activate, own.moments,
                                     scratch, stream);
    kp::join_moments<Parts>(own.moments, 1e-5, own.spread, stream);
    kp::normalize<Parts>(own.spread, in->bn_weight, in->bn_bias, kp::Same(), out->out, stream);
}
