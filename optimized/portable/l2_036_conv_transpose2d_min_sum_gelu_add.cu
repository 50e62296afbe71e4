// provenance: shipped
/* gelu(the sum over the rows of the least filter of conv) + a number, conv a transposed
 * convolution over two axes with bias, stride 2 and padding 1: x [16][64][128][128], weight
 * [64][128][3][3] -> [16][128][256][256] -> [16][1][256][256] -> [16][1][1][256].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh), its
 * phases shared evenly (even_phases.cuh), and whose epilogue has all filters of a pixel and stores
 * one number of it (convolve_filters.cuh). Their sums are columns (columns.cuh).
 * Floor: three products in TF32, 282 us; 0.06 GiB read, 15 us.
 * Measured: 332 us on an H200, 85 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "columns.cuh"
#include "convolve_filters.cuh"
#include "even_phases.cuh"
#include "extreme_op.cuh"

using Width = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 2, 1, 1, 1>;
using Height = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 2, 1, 1, 1>;
using Plain = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height>;
using Conv = kp::EvenPhases<Plain>;
using Tile = kp::TileFor<Conv, 128>;

using Finish = kp::Itself;

constexpr int THREADS = 128, BLOCKS = (int)((OUT_ELEMENTS + THREADS - 1) / THREADS);

__global__ void __launch_bounds__(THREADS)
    finish_kernel(const float *__restrict__ sum, const float *__restrict__ bias,
                  float *__restrict__ out) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < OUT_ELEMENTS) out[i] = kp::Gelu()(sum[i]) + *bias;
}

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>() +
           ((size_t)X_DIM0 * Conv::OUT_AREA + OUT_ELEMENTS) * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *least = (float *)((char *)scratch + kp::split_bytes<Conv, Tile>());
    float *sum = least + (size_t)X_DIM0 * Conv::OUT_AREA;
    kp::convolve_over_filters<Conv, Tile, kp::Extreme<false>>(
        in->x, in->conv_transpose_weight, least, kp::AddBias{in->conv_transpose_bias}, Finish{},
        scratch, stream);
    kp::reduce_columns<kp::SumOfColumn, Height::OUT, Width::OUT>(least, sum, X_DIM0, stream);
    finish_kernel<<<BLOCKS, THREADS, 0, stream>>>(sum, in->bias, out->out);
}
