// provenance: shipped
/* tanh(the mean over each filter of hardtanh(the largest of windows of 2 x 2 of conv)), conv a
 * transposed convolution over two axes with bias, padding 1: x [128][64][256][256], weight
 * [64][64][3][3] -> [128][64][256][256] -> [128][64][1][1].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, share what is fetched and split
 * (convolve_lines.cuh), stores its results in scratch memory. A block adds up the windows of a
 * plane (window_maps.cuh).
 * Floor: two products in TF32 and one in bf16, 3771 us; 2.00 GiB read, 2.00 GiB written and read,
 * 1416 us. Measured: 4705 us on an H200, 80 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve_lines.cuh"
#include "window_maps.cuh"

using Width = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 1, 1>;
using Height = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 1, 1>;
using Plain = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height>;
using Conv = kp::InLines<Plain>;
using Tile = kp::LineTile<Conv, 64>;

using Windows = kp::SideBySide<1, Height::OUT, Width::OUT, 1, 2, 2>;

struct Finish {
    __device__ __forceinline__ float operator()(float sum, int) const {
        return kp::Tanh()(sum * (1.0f / Windows::PLACES));
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
                             kp::AddBias{in->conv_transpose_bias}, scratch, stream);
    kp::sum_windows<kp::MaxOfWindow, Windows>(results, X_DIM0 * Conv::FILTERS,
                                              kp::Clamp{-1.0f, 1.0f}, Finish{}, out->out, stream);
}
