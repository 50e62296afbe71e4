// provenance: shipped
/* softmax over the filters of the least over the depth of conv, conv a convolution over three axes
 * with bias: x [128][3][24][32][32], weight [24][3][3][3][3] -> [128][24][22][30][30] ->
 * [128][24][30][30].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh) stores its
 * results in scratch memory. A thread has all filters of a window (window_maps.cuh).
 * Floor: three products in TF32, 72 us; 0.04 GiB read, 0.23 GiB written and read, 115 us.
 * Measured: 378 us on an H200, 30 % of the floor. */
#include "task.h"
#include "convolve.cuh"
#include "window_maps.cuh"

using Width = kp::Axis<X_DIM4, CONV_WEIGHT_DIM4>;
using Height = kp::Axis<X_DIM3, CONV_WEIGHT_DIM3>;
using Depth = kp::Axis<X_DIM2, CONV_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_WEIGHT_DIM0, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 32>;

using Windows = kp::SideBySide<Depth::OUT, Height::OUT, Width::OUT, Depth::OUT, 1, 1>;
constexpr int FILTERS = Conv::FILTERS;

struct Finish {
    float *out;
    __device__ __forceinline__ void operator()(float (&v)[FILTERS], int image, int place) const {
        kp::softmax_values(v);
#pragma unroll
        for (int c = 0; c < FILTERS; c++)
            out[((long long)image * FILTERS + c) * Windows::PLACES + place] = v[c];
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
    kp::map_windows<kp::MinOfWindow, Windows, FILTERS>(results, X_DIM0, Finish{out->out}, stream);
}
