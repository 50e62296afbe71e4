// provenance: shipped
/* The means of windows of 4 x 4 x 4 (twice 2 x 2 x 2) of batch norm(conv), by the batch's own mean
 * and variance, conv a transposed convolution over three axes with bias, stride 2 and padding 1: x
 * [64][3][32][32][32], weight [3][16][3][3][3] -> [64][16][63][63][63] -> [64][16][15][15][15].
 *
 * Idea: the mean of a norm is the mean, normalised. A product at fp32 accuracy whose rows, the
 * patches, are gathered (convolve.cuh) stores its results in scratch memory, and gathers the
 * moments of each channel (convolve_norm.cuh); the pool (pools.cuh) reads the results once, and its
 * means are normalised.
 * Floor: 0.02 GiB read and 0.95 GiB written and read, 459 us; products in TF32, 40 us.
 * Measured: 1561 us on an H200, 30 % of the floor. */
#include "task.h"
#include "one_by_one.cuh"
#include "convolve_norm.cuh"
#include "pools.cuh"

using Width = kp::TransposedAxis<X_DIM4, CONV_TRANSPOSE_WEIGHT_DIM4, 2, 1>;
using Height = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 2, 1>;
using Depth = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 2, 1>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 16>;
using Channels = kp::Parts<Conv, X_DIM0, 1>;
using Pool = kp::PoolShape<kp::Windows<Depth::OUT, 4, 4>, kp::Windows<Height::OUT, 4, 4>,
                           kp::Windows<Width::OUT, 4, 4>, 64, 1, 2, 15>;
static_assert(Pool::D::OUT == OUT_DIM2 && Pool::H::OUT == OUT_DIM3 && Pool::W::OUT == OUT_DIM4,
              "the sizes of the result");
constexpr int PLANES = X_DIM0 * Conv::FILTERS;

using Scratch = kp::NormScratch<Conv, Tile, Channels::COUNT, true>;

extern "C" size_t scratch_bytes(void) {
    return Scratch::bytes();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const Scratch own = Scratch::in(scratch);
    const kp::OneByOne<kp::AddBias> add = {{in->conv_transpose_bias}};
    kp::convolve_moments<Conv, Tile>(in->x, in->conv_transpose_weight, own.results, add,
                                     own.moments, scratch, stream);
    kp::join_moments<Channels>(own.moments, 1e-5, own.spread, stream);
    kp::pool_windows<kp::MeanOfWindow, Pool>(own.results, out->out, PLANES, stream);
    kp::normalize<Channels, OUT_DIM2 * OUT_DIM3 * OUT_DIM4>(
        own.spread, in->batch_norm_weight, in->batch_norm_bias, kp::Same(), out->out, stream);
}
