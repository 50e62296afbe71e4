// provenance: shipped
/* The sum over filters and pixels of sigmoid(the mean of windows of 4 x 4 of conv), conv a
 * convolution over two axes with bias: x [128][8][384][384], weight [64][8][3][3] ->
 * [128][64][382][382] -> [128].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh) stores its
 * results in scratch memory. A block adds up the windows of a plane (window_maps.cuh); their sums
 * are columns (columns.cuh).
 * Floor: three products in TF32, 1259 us; 0.56 GiB read, 4.45 GiB written and read, 2235 us.
 * Measured: 3945 us on an H200, 57 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "columns.cuh"
#include "convolve.cuh"
#include "window_maps.cuh"

using Width = kp::Axis<X_DIM3, CONV_WEIGHT_DIM3>;
using Height = kp::Axis<X_DIM2, CONV_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_WEIGHT_DIM0, 1, Width, Height>;
using Tile = kp::TileFor<Conv, 64>;

using Windows = kp::SideBySide<1, Height::OUT, Width::OUT, 1, 4, 4>;

struct Finish {
    __device__ __forceinline__ float operator()(float sum, int) const { return sum; }
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
    kp::convolve<Conv, Tile>(in->x, in->conv_weight, results, kp::AddBias{in->conv_bias}, scratch,
                             stream);
    float *planes = (float *)((char *)results + RESULTS);
    kp::sum_windows<kp::MeanOfWindow, Windows>(results, X_DIM0 * Conv::FILTERS, kp::Sigmoid(),
                                               Finish{}, planes, stream);
    kp::reduce_columns<kp::SumOfColumn, Conv::FILTERS, 1>(planes, out->out, X_DIM0, stream);
}
