// provenance: shipped
/* The largest of windows of 4 x 4 x 4 (twice 2 x 2 x 2) of softmax over the filters of conv, conv
 * a convolution over three axes with bias: x [128][3][16][32][32], weight [16][3][3][3][3] ->
 * [128][16][14][30][30] -> [128][16][3][7][7].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh), whose
 * epilogue has all filters of a pixel and takes softmax over them (convolve_filters.cuh), stores
 * its results in scratch memory. A thread maps a window (window_maps.cuh). Floor: three products in
 * TF32, 30 us; 0.02 GiB read, 0.10 GiB written and read, 51 us. Measured: 216.1 us on an H200, 24 %
 * of the floor. */
#include "task.h"
#include "convolve_filters.cuh"
#include "window_maps.cuh"

using Width = kp::Axis<X_DIM4, CONV_WEIGHT_DIM4>;
using Height = kp::Axis<X_DIM3, CONV_WEIGHT_DIM3>;
using Depth = kp::Axis<X_DIM2, CONV_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_WEIGHT_DIM0, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 16>;

using Windows = kp::SideBySide<Depth::OUT, Height::OUT, Width::OUT, 4, 4, 4>;

/* The split weight; the convolution's results. */
constexpr size_t SPLIT = kp::split_bytes<Conv, Tile>();
constexpr size_t RESULTS = (size_t)X_DIM0 * Conv::FILTERS * Conv::OUT_AREA * sizeof(float);

extern "C" size_t scratch_bytes(void) {
    return SPLIT + RESULTS;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *results = (float *)((char *)scratch + SPLIT);
    kp::convolve_softmax<Conv, Tile>(in->x, in->conv_weight, results, kp::AddBias{in->conv_bias},
                                     kp::Same(), scratch, stream);
    kp::pool_windows<kp::MaxOfWindow, Windows>(results, X_DIM0 * Conv::FILTERS, kp::Same(),
                                               out->out, stream);
}
