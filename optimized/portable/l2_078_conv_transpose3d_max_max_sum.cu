// provenance: shipped
/* The sum over the filters of the largest of windows of 6 x 6 x 6 (2 x 2 x 2, then 3 x 3 x 3) of
 * conv, conv a transposed convolution over three axes with bias, stride 2 and padding 2: x
 * [16][32][32][32][32], weight [32][64][5][5][5] -> [16][64][63][63][63] -> [16][1][10][10][10].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh), its
 * phases shared evenly (even_phases.cuh), stores its results in scratch memory. A thread maps a
 * window (window_maps.cuh); sums over the filters are columns (columns.cuh). Floor: two products
 * in TF32 and one in bf16, 1561 us; 0.06 GiB read, 0.95 GiB written and read, 465 us. Measured:
 * 2912 us on an H200, 54 % of the floor. */
#include "task.h"
#include "columns.cuh"
#include "convolve.cuh"
#include "even_phases.cuh"
#include "window_maps.cuh"

using Width = kp::TransposedAxis<X_DIM4, CONV_TRANSPOSE_WEIGHT_DIM4, 2, 2>;
using Height = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 2, 2>;
using Depth = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 2, 2>;
using Plain = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height, Depth>;
using Conv = kp::EvenPhases<Plain>;
using Tile = kp::TileFor<Conv, 64>;

using Windows = kp::SideBySide<Depth::OUT, Height::OUT, Width::OUT, 6, 6, 6>;

/* The split weight; the convolution's results. */
constexpr size_t SPLIT = kp::split_bytes<Conv, Tile>();
constexpr size_t RESULTS = (size_t)X_DIM0 * Conv::FILTERS * Conv::OUT_AREA * sizeof(float);

extern "C" size_t scratch_bytes(void) {
    return SPLIT + RESULTS + (size_t)X_DIM0 * Conv::FILTERS * Windows::PLACES * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *results = (float *)((char *)scratch + SPLIT);
    kp::convolve<Conv, Tile>(in->x, in->conv_transpose_weight, results,
                             kp::AddBias{in->conv_transpose_bias}, scratch, stream);
    float *largest = (float *)((char *)results + RESULTS);
    kp::pool_windows<kp::MaxOfWindow, Windows>(results, X_DIM0 * Conv::FILTERS, kp::Same(), largest,
                                               stream);
    kp::reduce_columns<kp::SumOfColumn, Conv::FILTERS, Windows::PLACES>(largest, out->out, X_DIM0,
                                                                        stream);
}
