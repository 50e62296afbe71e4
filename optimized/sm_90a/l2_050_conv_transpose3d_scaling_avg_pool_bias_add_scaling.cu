// provenance: shipped
/* (the mean of windows of 2 x 2 x 2 of a number times conv, plus a number for each filter) times a
 * number, conv a transposed convolution over three axes with bias, stride 2 and padding 1: x
 * [128][3][16][32][32], weight [3][16][3][3][3] -> [128][16][31][63][63] -> [128][16][15][31][31].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh) stores its
 * results in scratch memory. A thread maps a window (window_maps.cuh).
 * Floor: three products in TF32, 37 us; 0.02 GiB read, 0.94 GiB written and read, 449 us.
 * Measured: 1493 us on an H200, 30 % of the floor. */
#include "task.h"
#include "one_by_one.cuh"
#include "activations.cuh"
#include "convolve.cuh"
#include "window_maps.cuh"

using Width = kp::TransposedAxis<X_DIM4, CONV_TRANSPOSE_WEIGHT_DIM4, 2, 1>;
using Height = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 2, 1>;
using Depth = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 2, 1>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 16>;

struct Biased {
    const float *conv_transpose_bias, *scale1;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        return (v + __ldg(conv_transpose_bias + filter)) * __ldg(scale1);
    }
};

using Windows = kp::SideBySide<Depth::OUT, Height::OUT, Width::OUT, 2, 2, 2>;

struct Finish {
    const float *bias, *scale2;
    __device__ __forceinline__ float operator()(float v, int plane, int) const {
        return (v + __ldg(bias + plane % Conv::FILTERS)) * __ldg(scale2);
    }
};

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
                             kp::OneByOne<Biased>{{in->conv_transpose_bias, in->scale1}}, scratch,
                             stream);
    kp::pool_windows<kp::MeanOfWindow, Windows>(results, X_DIM0 * Conv::FILTERS,
                                                Finish{in->bias, in->scale2}, out->out, stream);
}
