// provenance: shipped
/* 2 tanh(softmax over the filters of (the mean over the depth of conv, plus a number for each
 * filter)), conv a transposed convolution over three axes with bias, padding 1: x
 * [16][16][32][128][128], weight [16][64][3][3][3] -> [16][64][32][128][128] ->
 * [16][64][1][128][128].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh) stores its
 * results in scratch memory. A thread has all filters of a window (window_maps.cuh). Floor: two
 * products in TF32 and one in bf16, 2828 us; 0.50 GiB read, 2.00 GiB written and read, 1062 us.
 * Measured: 4722 us on an H200, 60 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve.cuh"
#include "window_maps.cuh"

using Width = kp::TransposedAxis<X_DIM4, CONV_TRANSPOSE_WEIGHT_DIM4, 1, 1>;
using Height = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 1, 1>;
using Depth = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 1, 1>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 64>;

using Windows = kp::SideBySide<Depth::OUT, Height::OUT, Width::OUT, Depth::OUT, 1, 1>;
constexpr int FILTERS = Conv::FILTERS;

struct Finish {
    const float *bias;
    float *out;
    __device__ __forceinline__ void operator()(float (&v)[FILTERS], int image, int place) const {
#pragma unroll
        for (int c = 0; c < FILTERS; c++) v[c] += __ldg(bias + c);
        kp::softmax_values(v);
#pragma unroll
        for (int c = 0; c < FILTERS; c++)
            out[((long long)image * FILTERS + c) * Windows::PLACES + place] =
                kp::Tanh()(v[c]) * 2.0f;
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
    kp::map_windows<kp::MeanOfWindow, Windows, FILTERS>(results, X_DIM0, Finish{in->bias, out->out},
                                                        stream);
}
