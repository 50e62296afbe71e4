// provenance: shipped
/* The sum over the filters of (the mean of the largest of windows of 2 x 2 x 2 of conv / 2, plus a
 * number for each filter), conv a convolution over three axes with bias: x [128][8][16][64][64],
 * weight [16][8][3][3][3] -> [128][16][14][62][62] -> [128][1][1][1].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh) stores its
 * results in scratch memory. A block adds up the windows of a plane (window_maps.cuh); their sums
 * are columns (columns.cuh).
 * Floor: three products in TF32, 348 us; 0.25 GiB read, 0.41 GiB written and read, 253 us.
 * Measured: 1344 us on an H200, 26 % of the floor. */
#include "task.h"
#include "columns.cuh"
#include "convolve.cuh"
#include "window_maps.cuh"

using Width = kp::Axis<X_DIM4, CONV_WEIGHT_DIM4>;
using Height = kp::Axis<X_DIM3, CONV_WEIGHT_DIM3>;
using Depth = kp::Axis<X_DIM2, CONV_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_WEIGHT_DIM0, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 16>;

struct Biased {
    const float *conv_bias;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        return (v + __ldg(conv_bias + filter)) * 0.5f;
    }
};

using Windows = kp::SideBySide<Depth::OUT, Height::OUT, Width::OUT, 2, 2, 2>;

struct Value {
    __device__ __forceinline__ float operator()(float v) const { return v; }
};

struct Finish {
    const float *bias;
    __device__ __forceinline__ float operator()(float sum, int plane) const {
        return sum * (1.0f / Windows::PLACES) + __ldg(bias + plane % Conv::FILTERS);
    }
};

/* The split weight; the convolution's results. */
constexpr size_t SPLIT = kp::split_bytes<Conv, Tile>();
constexpr size_t RESULTS = (size_t)X_DIM0 * Conv::FILTERS * Conv::OUT_AREA * sizeof(float);

extern "C" size_t scratch_bytes(void) {
    return SPLIT + RESULTS + (size_t)X_DIM0 * Conv::FILTERS * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *results = (float *)((char *)scratch + SPLIT);
    kp::convolve<Conv, Tile>(in->x, in->conv_weight, results, Biased{in->conv_bias}, scratch,
                             stream);
    float *planes = (float *)((char *)results + RESULTS);
    kp::sum_windows<kp::MaxOfWindow, Windows>(results, X_DIM0 * Conv::FILTERS, Value{},
                                              Finish{in->bias}, planes, stream);
    kp::reduce_columns<kp::SumOfColumn, Conv::FILTERS, 1>(planes, out->out, X_DIM0, stream);
}
