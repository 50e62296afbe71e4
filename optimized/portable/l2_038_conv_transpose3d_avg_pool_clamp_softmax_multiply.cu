// provenance: shipped
/* softmax over the pixels of each filter of conv, between 0 and 1, times a number for each filter,
 * conv a transposed convolution over three axes with bias, stride 2 and padding 1, of the means of
 * windows of 2 x 2 x 2 of x: x [32][32][32][64][64] -> [32][32][16][32][32], weight
 * [32][64][3][3][3] -> [32][64][32][64][64].
 *
 * Idea: a thread takes the mean of a window (window_maps.cuh). A product at fp32 accuracy, whose
 * tiles have both phases of a line (both_phases.cuh), stores its results in scratch memory. A row
 * of softmax is a plane: sixteen slices of row_ring.cuh, which reads it once. Floor: three
 * products in TF32, 424 us; 0.50 GiB read, 1.06 GiB written and read, 1 GiB written, 860 us.
 * Measured: 1334 us on an H200, 64 % of the floor.
 * */
#include "task.h"
#include "activations.cuh"
#include "both_phases.cuh"
#include "row_ops.cuh"
#include "row_ring.cuh"
#include "window_maps.cuh"

constexpr int THREADS = 256;
using Width = kp::TransposedAxis<X_DIM4 / 2, CONV_TRANSPOSE_WEIGHT_DIM4, 2, 1, 1, 1>;
using Height = kp::TransposedAxis<X_DIM3 / 2, CONV_TRANSPOSE_WEIGHT_DIM3, 2, 1, 1, 1>;
using Depth = kp::TransposedAxis<X_DIM2 / 2, CONV_TRANSPOSE_WEIGHT_DIM2, 2, 1, 1, 1>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height, Depth>;

struct Biased {
    const float *conv_transpose_bias;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        return kp::Clamp{0.0f, 1.0f}(v + __ldg(conv_transpose_bias + filter));
    }
};

using Windows = kp::SideBySide<X_DIM2, X_DIM3, X_DIM4, 2, 2, 2>;
constexpr int ROWS = X_DIM0 * Conv::FILTERS;

struct ScaledSoftmax : kp::Softmax {
    const float *scale;
    __device__ __forceinline__ Mapper mapper(Row r, long long place) const {
        return {{r.top, r.share * __ldg(scale + place / Conv::OUT_AREA % Conv::FILTERS)}};
    }
};

/* The split weight; the means of x; the convolution's results; what softmax needs. */
constexpr size_t SPLIT = kp::both_phases::scratch_bytes<Conv>();
constexpr size_t MEANS = (size_t)X_DIM0 * X_DIM1 * Windows::PLACES * sizeof(float);
constexpr size_t RESULTS = (size_t)ROWS * Conv::OUT_AREA * sizeof(float);

extern "C" size_t scratch_bytes(void) {
    return SPLIT + MEANS + RESULTS +
           kp::rows_once_scratch<ROWS, Conv::OUT_AREA, THREADS, ScaledSoftmax>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *means = (float *)((char *)scratch + SPLIT);
    float *results = (float *)((char *)means + MEANS);
    kp::pool_windows<kp::MeanOfWindow, Windows>(in->x, X_DIM0 * X_DIM1, kp::Same(), means, stream);
    kp::both_phases::convolve<Conv>(means, in->conv_transpose_weight, results,
                                    Biased{in->conv_transpose_bias}, scratch, stream);
    kp::rows_once<ROWS, Conv::OUT_AREA, THREADS>(stream, ScaledSoftmax{{}, in->scale}, results,
                                                 out->out, (char *)results + RESULTS);
}
