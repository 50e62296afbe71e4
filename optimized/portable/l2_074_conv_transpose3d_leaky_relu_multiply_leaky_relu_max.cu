// provenance: shipped
/* The largest of windows of 2 x 2 x 2 of leaky(m leaky(conv)), m a number for each filter, leaky a
 * leaky relu of slope 0.2, conv a transposed convolution over three axes with bias, stride 2 and
 * padding 1: x [16][16][16][32][32], weight [16][32][3][3][3] -> [16][32][32][64][64] ->
 * [16][32][16][32][32].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh) stores its
 * results in scratch memory. A thread maps a window (window_maps.cuh).
 * Floor: three products in TF32, 53 us; 0.02 GiB read, 0.25 GiB written and read, 122 us.
 * Measured: 377 us on an H200, 32 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve.cuh"
#include "window_maps.cuh"

using Width = kp::TransposedAxis<X_DIM4, CONV_TRANSPOSE_WEIGHT_DIM4, 2, 1, 1, 1>;
using Height = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 2, 1, 1, 1>;
using Depth = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 2, 1, 1, 1>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 32>;

struct Biased {
    const float *conv_transpose_bias, *multiplier;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        return kp::LeakyRelu{0.2f}(kp::LeakyRelu{0.2f}(v + __ldg(conv_transpose_bias + filter)) *
                                   __ldg(multiplier + filter));
    }
};

using Windows = kp::SideBySide<Depth::OUT, Height::OUT, Width::OUT, 2, 2, 2>;

/* The split weight; the convolution's results. */
constexpr size_t SPLIT = kp::split_bytes<Conv, Tile>();
constexpr size_t RESULTS = (size_t)X_DIM0 * Conv::FILTERS * Conv::OUT_AREA * sizeof(float);

extern "C" size_t scratch_bytes(void) {
    return SPLIT + RESULTS;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *results = (float *)((char *)scratch + SPLIT);
    kp::convolve<Conv, Tile>(in->x, in->conv_transpose_weight, results,
                             Biased{in->conv_transpose_bias, in->multiplier}, scratch, stream);
    kp::pool_windows<kp::MaxOfWindow, Windows>(results, X_DIM0 * Conv::FILTERS, kp::Same(),
                                               out->out, stream);
}
