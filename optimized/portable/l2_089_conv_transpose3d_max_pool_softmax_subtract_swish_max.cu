// provenance: shipped
/* The largest over the filters of swish(softmax over the filters of the largest of windows of 2 x
 * 2 x 2 of conv, minus a number for each filter), conv a transposed convolution over three axes
 * with bias, stride 2 and padding 1: x [128][3][16][32][32], weight [3][16][3][3][3] ->
 * [128][16][32][64][64] -> [128][16][32][32].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh) stores its
 * results in scratch memory. A thread has all filters of a window (window_maps.cuh).
 * Floor: three products in TF32, 39 us; 0.02 GiB read, 1.00 GiB written and read, 478 us.
 * Measured: 1359 us on an H200, 35 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve.cuh"
#include "window_maps.cuh"

using Width = kp::TransposedAxis<X_DIM4, CONV_TRANSPOSE_WEIGHT_DIM4, 2, 1, 1, 1>;
using Height = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 2, 1, 1, 1>;
using Depth = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 2, 1, 1, 1>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 16>;

using Windows = kp::SideBySide<Depth::OUT, Height::OUT, Width::OUT, 2, 2, 2>;
constexpr int FILTERS = Conv::FILTERS;

struct Finish {
    const float *subtract;
    float *out;
    __device__ __forceinline__ void operator()(float (&v)[FILTERS], int image, int place) const {
        kp::softmax_values(v);
        float most = -INFINITY;
#pragma unroll
        for (int c = 0; c < FILTERS; c++)
            most = kp::larger(most, kp::Swish()(v[c] - __ldg(subtract + c)));
        out[(long long)image * Windows::PLACES + place] = most;
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
    kp::map_windows<kp::MaxOfWindow, Windows, FILTERS>(results, X_DIM0,
                                                       Finish{in->subtract, out->out}, stream);
}
