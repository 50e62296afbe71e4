// provenance: shipped
/* The mean over each channel of the group norm (4 groups) of hardswish(conv), conv a convolution
 * over three axes with bias: x [1024][3][16][32][32], weight [16][3][4][4][4] -> [1024][16].
 *
 * Idea: the mean of a norm is that of the channel, normalised. So the convolution's results are not
 * stored: its stores gather the moments of each channel (convolve_norm.cuh), which are joined to
 * those of channels, for their means, and to those of groups.
 * Floor: products in TF32, 505 us; 0.19 GiB read, 44 us.
 * Measured: 2242 us on an H200, 23 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve_norm.cuh"

using Width = kp::Axis<X_DIM4, CONV_WEIGHT_DIM4>;
using Height = kp::Axis<X_DIM3, CONV_WEIGHT_DIM3>;
using Depth = kp::Axis<X_DIM2, CONV_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_WEIGHT_DIM0, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 16>;
using Channels = kp::Parts<Conv, 1, 1>;
using Groups = kp::Parts<Conv, 1, CONV_WEIGHT_DIM0 / 4>;
constexpr int THREADS = 128, BLOCKS = (Channels::COUNT + THREADS - 1) / THREADS;

struct Activate {
    const float *conv_bias;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        return kp::Hardswish()(v + __ldg(conv_bias + filter));
    }
};

/* The means of all channels, normalised. */
__global__ void __launch_bounds__(THREADS)
    normalize_means(const kp::Spread *channel, const kp::Spread *group, const float *weight,
                    const float *bias, float *out) {
    const int i = blockIdx.x * THREADS + threadIdx.x, filter = i % Conv::FILTERS;
    if (i >= Channels::COUNT) return;
    const kp::Spread s = group[Groups::of(i)];
    out[i] = (channel[i].mean - s.mean) * s.scale * weight[filter] + bias[filter];
}

using Scratch = kp::NormScratch<Conv, Tile, Channels::COUNT + Groups::COUNT>;

extern "C" size_t scratch_bytes(void) {
    return Scratch::bytes();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const Scratch own = Scratch::in(scratch);
    kp::Spread *channel = own.spread;
    kp::Spread *group = channel + Channels::COUNT;
    const Activate activate = {in->conv_bias};
    kp::convolve_moments<Conv, Tile>(in->x, in->conv_weight, activate, own.moments, scratch,
                                     stream);
    kp::join_moments<Channels>(own.moments, 1e-5, channel, stream);
    kp::join_moments<Groups>(own.moments, 1e-5, group, stream);
    normalize_means<<<BLOCKS, THREADS, 0, stream>>>(channel, group, in->group_norm_weight,
                                                    in->group_norm_bias, out->out);
}
