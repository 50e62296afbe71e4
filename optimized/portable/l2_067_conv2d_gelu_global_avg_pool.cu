// provenance: shipped
/* The mean over each filter of gelu(conv), conv a convolution over two axes with bias: x
 * [128][8][256][256], weight [64][8][3][3] -> [128][64][254][254] -> [128][64].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh), and whose
 * stores gather the means of each channel: no result goes to memory (convolve_means.cuh).
 * Floor: three products in TF32, 556 us; 0.25 GiB read, 59 us.
 * Measured: 1840 us on an H200, 30 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve_means.cuh"

using Width = kp::Axis<X_DIM3, CONV_WEIGHT_DIM3>;
using Height = kp::Axis<X_DIM2, CONV_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_WEIGHT_DIM0, 1, Width, Height>;
using Tile = kp::TileFor<Conv, 64>;

struct Biased {
    const float *conv_bias;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        return kp::Gelu()(v + __ldg(conv_bias + filter));
    }
};

struct Value {
    __device__ __forceinline__ float operator()(float mean, int) const { return mean; }
};

extern "C" size_t scratch_bytes(void) {
    return kp::MeansScratch<Conv, Tile>::bytes();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::convolve_means<Conv, Tile>(in->x, in->conv_weight, out->out, Biased{in->conv_bias}, Value{},
                                   scratch, stream);
}
