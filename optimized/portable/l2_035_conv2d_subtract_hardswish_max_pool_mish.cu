// provenance: shipped
/* mish(the largest of windows of 2 x 2 of hardswish(conv - 0.5)), conv a convolution over two axes
 * with bias: x [128][64][128][128], weight [128][64][3][3] -> [128][128][126][126] ->
 * [128][128][63][63].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh) stores its
 * results in scratch memory. A thread maps a window (window_maps.cuh). Floor: two products in TF32
 * and one in bf16, 1827 us; 0.50 GiB read, 0.97 GiB written and read, 575 us. Measured: 2402 us on
 * an H200, 76 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve.cuh"
#include "window_maps.cuh"

using Width = kp::Axis<X_DIM3, CONV_WEIGHT_DIM3>;
using Height = kp::Axis<X_DIM2, CONV_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_WEIGHT_DIM0, 1, Width, Height>;
using Tile = kp::TileFor<Conv, 128>;

struct Biased {
    const float *conv_bias;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        return kp::Hardswish()(v + __ldg(conv_bias + filter) - 0.5f);
    }
};

using Windows = kp::SideBySide<1, Height::OUT, Width::OUT, 1, 2, 2>;

struct Finish {
    __device__ __forceinline__ float operator()(float v, int, int) const { return kp::Mish()(v); }
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
    kp::convolve<Conv, Tile>(in->x, in->conv_weight, results, Biased{in->conv_bias}, scratch,
                             stream);
    kp::pool_windows<kp::MaxOfWindow, Windows>(results, X_DIM0 * Conv::FILTERS, Finish(), out->out,
                                               stream);
}
