// provenance: shipped
/* The mean over each image of group norm (8 groups) of conv, conv a convolution over three axes
 * with bias: x [128][3][24][32][32], weight [24][3][3][3][3] -> [128][24][22][30][30] -> [128].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh), of whose
 * results nothing is stored: the mean of a norm is that of the channel, normalised. Its stores
 * gather the moments of each channel (convolve_norm.cuh).
 * Floor: three products in TF32, 72 us; 0.04 GiB read, 8 us.
 * Measured: 343.7 us on an H200, 21 % of the floor. */
#include "task.h"
#include "convolve_norm.cuh"

using Width = kp::Axis<X_DIM4, CONV_WEIGHT_DIM4>;
using Height = kp::Axis<X_DIM3, CONV_WEIGHT_DIM3>;
using Depth = kp::Axis<X_DIM2, CONV_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_WEIGHT_DIM0, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 32>;
using Moments = kp::ChannelMoments<Conv>;
constexpr int GROUPS = 8, EACH = Conv::FILTERS / GROUPS;

/* out[image] = the mean of the image's channels, normalised. A warp an image, a lane a group. What
 * is left of the means is small: they are doubles. */
__global__ void __launch_bounds__(32)
    mean_of_norms_kernel(const Moments::Plane *__restrict__ plane, const float *__restrict__ weight,
                         const float *__restrict__ bias, float *__restrict__ out) {
    const int first = threadIdx.x * EACH; /* channel */
    double total = 0.0;
    if (threadIdx.x < GROUPS) {
        plane += blockIdx.x * Conv::FILTERS + first;
        double mean = 0.0, square = 0.0;
        for (int c = 0; c < EACH; c++) mean += plane[c].mean * (1.0 / EACH);
        for (int c = 0; c < EACH; c++) {
            const double off = (plane[c].mean - mean) * kp::MOMENT_UNIT;
            square += plane[c].square / plane[c].count + off * off;
        }
        const double variance = square / EACH / ((double)kp::MOMENT_UNIT * kp::MOMENT_UNIT);
        const double scale = 1.0 / sqrt(variance + 1e-5);
        for (int c = 0; c < EACH; c++)
            total += (plane[c].mean - mean) * scale * weight[first + c] + bias[first + c];
    }
    total = kp::lanes_sum(total);
    if (threadIdx.x == 0) out[blockIdx.x] = (float)(total / Conv::FILTERS);
}

using Scratch = kp::NormScratch<Conv, Tile, 1>;

extern "C" size_t scratch_bytes(void) {
    return Scratch::bytes();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const Scratch own = Scratch::in(scratch);
    const kp::AddBias biased = {in->conv_bias};
    kp::convolve_moments<Conv, Tile>(in->x, in->conv_weight, biased, own.moments, scratch, stream);
    mean_of_norms_kernel<<<X_DIM0, 32, 0, stream>>>(own.moments.plane, in->group_norm_weight,
                                                    in->group_norm_bias, out->out);
}
