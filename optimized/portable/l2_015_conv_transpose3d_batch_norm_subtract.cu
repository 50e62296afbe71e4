// provenance: shipped
/* batch norm(conv), by the batch's own mean and variance, less the mean of each of its planes,
 * conv a transposed convolution over three axes with bias, stride 2 and padding 1: x
 * [16][16][16][32][32], weight [16][32][3][3][3] -> [16][32][31][63][63].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh), its
 * phases shared evenly (even_phases.cuh); its stores gather the moments of each channel, and the
 * norm is one more pass, in place (convolve_norm.cuh). What is left of the norm is (conv - mean of
 * the plane) * scale of the channel * weight.
 * Floor: 0.02 GiB read and 0.23 GiB written, read and written, 170 us; products in TF32, 53 us.
 * Measured: 457 us on an H200, 37 % of the floor. */
#include "task.h"
#include "even_phases.cuh"
#include "one_by_one.cuh"
#include "convolve_norm.cuh"

using Width = kp::TransposedAxis<X_DIM4, CONV_TRANSPOSE_WEIGHT_DIM4, 2, 1>;
using Height = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 2, 1>;
using Depth = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 2, 1>;
using Plain = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height, Depth>;
using Conv = kp::EvenPhases<Plain>;
using Tile = kp::TileFor<Conv, 32>;
using Planes = kp::Parts<Conv, 1, 1>;
using Channels = kp::Parts<Conv, X_DIM0, 1>;
constexpr int THREADS = 128, BLOCKS = (Planes::COUNT + THREADS - 1) / THREADS;

/* Planes keep their means, and have the scales of their channels. */
__global__ void __launch_bounds__(THREADS)
    take_scales(kp::Spread *plane, const kp::Spread *channel) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < Planes::COUNT) plane[i].scale = channel[Channels::of(i)].scale;
}

using Scratch = kp::NormScratch<Conv, Tile, Planes::COUNT + Channels::COUNT>;

extern "C" size_t scratch_bytes(void) {
    return Scratch::bytes();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const Scratch own = Scratch::in(scratch);
    kp::Spread *plane = own.spread;
    kp::Spread *channel = plane + Planes::COUNT;
    const kp::OneByOne<kp::AddBias> add = {{in->conv_transpose_bias}};
    kp::convolve_moments<Conv, Tile>(in->x, in->conv_transpose_weight, out->out, add, own.moments,
                                     scratch, stream);
    kp::join_moments<Planes>(own.moments, 1e-5, plane, stream);
    kp::join_moments<Channels>(own.moments, 1e-5, channel, stream);
    take_scales<<<BLOCKS, THREADS, 0, stream>>>(plane, channel);
    kp::normalize<Planes>(plane, in->batch_norm_weight, nullptr, kp::Same(), out->out, stream);
}
