// provenance: shipped
/* relu(the log of the sum of exponentials over the filters of the largest of windows of 2 x 2 x 2
 * of conv), conv a convolution over three axes with bias, padding 1: x [4][32][32][128][128],
 * weight [64][32][3][3][3] -> [4][64][32][128][128] -> [4][1][16][64][64].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh) stores its
 * results in scratch memory. A thread has all filters of a window (window_maps.cuh). Floor: two
 * products in TF32 and one in bf16, 1414 us; 0.25 GiB read, 0.50 GiB written and read, 295 us.
 * Measured: 2180 us on an H200, 65 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve.cuh"
#include "window_maps.cuh"
#include <float.h>

using Width = kp::Axis<X_DIM4, CONV_WEIGHT_DIM4, 1, 1>;
using Height = kp::Axis<X_DIM3, CONV_WEIGHT_DIM3, 1, 1>;
using Depth = kp::Axis<X_DIM2, CONV_WEIGHT_DIM2, 1, 1>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_WEIGHT_DIM0, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 64>;

using Windows = kp::SideBySide<Depth::OUT, Height::OUT, Width::OUT, 2, 2, 2>;
constexpr int FILTERS = Conv::FILTERS;

struct Finish {
    float *out;
    __device__ __forceinline__ void operator()(float (&v)[FILTERS], int image, int place) const {
        float top = -FLT_MAX, sum = 0.0f;
#pragma unroll
        for (int c = 0; c < FILTERS; c++) top = fmaxf(top, v[c]);
#pragma unroll
        for (int c = 0; c < FILTERS; c++) sum += expf(v[c] - top);
        out[(long long)image * Windows::PLACES + place] = kp::Relu()(top + logf(sum));
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
    kp::convolve<Conv, Tile>(in->x, in->conv_weight, results, kp::AddBias{in->conv_bias}, scratch,
                             stream);
    kp::map_windows<kp::MaxOfWindow, Windows, FILTERS>(results, X_DIM0, Finish{out->out}, stream);
}
