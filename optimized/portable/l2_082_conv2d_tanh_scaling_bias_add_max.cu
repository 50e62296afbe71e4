// provenance: shipped
/* The largest of windows of 4 x 4 of 2 tanh(conv) + a number for each filter, conv a convolution
 * over two axes with bias: x [128][8][256][256], weight [64][8][3][3] -> [128][64][254][254] ->
 * [128][64][63][63].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh) stores its
 * results in scratch memory. A thread maps a window (window_maps.cuh).
 * Floor: three products in TF32, 556 us; 0.25 GiB read, 1.97 GiB written and read, 988 us.
 * Measured: 1934 us on an H200, 51 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve.cuh"
#include "window_maps.cuh"

using Width = kp::Axis<X_DIM3, CONV_WEIGHT_DIM3>;
using Height = kp::Axis<X_DIM2, CONV_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_WEIGHT_DIM0, 1, Width, Height>;
using Tile = kp::TileFor<Conv, 64>;

struct Biased {
    const float *conv_bias, *bias;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        return kp::Tanh()(v + __ldg(conv_bias + filter)) * 2.0f + __ldg(bias + filter);
    }
};

using Windows = kp::SideBySide<1, Height::OUT, Width::OUT, 1, 4, 4>;

/* The split weight; the convolution's results. */
constexpr size_t SPLIT = kp::split_bytes<Conv, Tile>();
constexpr size_t RESULTS = (size_t)X_DIM0 * Conv::FILTERS * Conv::OUT_AREA * sizeof(float);

extern "C" size_t scratch_bytes(void) {
    return SPLIT + RESULTS;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *results = (float *)((char *)scratch + SPLIT);
    kp::convolve<Conv, Tile>(in->x, in->conv_weight, results, Biased{in->conv_bias, in->bias},
                             scratch, stream);
    kp::pool_windows<kp::MaxOfWindow, Windows>(results, X_DIM0 * Conv::FILTERS, kp::Same(),
                                               out->out, stream);
}
