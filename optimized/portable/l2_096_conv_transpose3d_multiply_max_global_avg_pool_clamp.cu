// provenance: shipped
/* The mean over each filter of the largest of windows of 2 x 2 x 2 of conv / 2, between 0 and 1,
 * conv a transposed convolution over three axes with bias, stride 2 and padding 1: x
 * [128][3][16][32][32], weight [3][16][3][3][3] -> [128][16][31][63][63] -> [128][16][1][1][1].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh) stores its
 * results in scratch memory. A block adds up the windows of a plane (window_maps.cuh).
 * Floor: three products in TF32, 37 us; 0.02 GiB read, 0.94 GiB written and read, 449 us.
 * Measured: 1438 us on an H200, 31 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve.cuh"
#include "window_maps.cuh"

using Width = kp::TransposedAxis<X_DIM4, CONV_TRANSPOSE_WEIGHT_DIM4, 2, 1>;
using Height = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 2, 1>;
using Depth = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 2, 1>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 16>;

struct Biased {
    const float *conv_transpose_bias;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        return (v + __ldg(conv_transpose_bias + filter)) * 0.5f;
    }
};

using Windows = kp::SideBySide<Depth::OUT, Height::OUT, Width::OUT, 2, 2, 2>;

struct Value {
    __device__ __forceinline__ float operator()(float v) const { return v; }
};

struct Finish {
    __device__ __forceinline__ float operator()(float sum, int) const {
        return kp::Clamp{0.0f, 1.0f}(sum * (1.0f / Windows::PLACES));
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
                             kp::OneByOne<Biased>{{in->conv_transpose_bias}}, scratch, stream);
    kp::sum_windows<kp::MaxOfWindow, Windows>(results, X_DIM0 * Conv::FILTERS, Value{}, Finish{},
                                              out->out, stream);
}
