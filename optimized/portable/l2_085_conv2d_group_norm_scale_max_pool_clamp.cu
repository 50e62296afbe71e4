// provenance: shipped
/* clamp(max of windows of 4 x 4 (scale * group norm (16 groups) of conv), 0, 1), conv a convolution
 * over two axes with bias: x [128][8][128][128], weight [64][8][3][3] -> [128][64][126][126] ->
 * [128][64][31][31].
 *
 * Idea: the norm of a channel rises, or falls, with its value: of a window it needs the largest, or
 * the smallest. A product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh)
 * stores its results in scratch memory, and gathers the moments of each channel
 * (convolve_norm.cuh). A thread then reads the 16 values of a window.
 * Floor: 0.06 GiB read, 0.48 GiB written and read, 0.03 GiB written, 250 us; products in TF32, 137
 * us. Measured: 563 us on an H200, 44 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve_norm.cuh"
#include "extremes.cuh"

using Width = kp::Axis<X_DIM3, CONV_WEIGHT_DIM3>;
using Height = kp::Axis<X_DIM2, CONV_WEIGHT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_WEIGHT_DIM0, 1, Width, Height>;
using Tile = kp::TileFor<Conv, 64>;
using Groups = kp::Parts<Conv, 1, CONV_WEIGHT_DIM0 / 16>;
constexpr int WINDOW = 4, THREADS = 128, BLOCKS = (int)((OUT_ELEMENTS + THREADS - 1) / THREADS);
static_assert(OUT_DIM2 == Height::OUT / WINDOW && OUT_DIM3 == Width::OUT / WINDOW, "sizes");

/* A thread a window. */
__global__ void __launch_bounds__(THREADS)
    pool_kernel(const float *__restrict__ results, const kp::Spread *__restrict__ spread,
                const float *__restrict__ weight, const float *__restrict__ bias,
                const float *__restrict__ scale, float *__restrict__ out) {
    const int i = blockIdx.x * THREADS + threadIdx.x, plane = i / (OUT_DIM2 * OUT_DIM3);
    if (i >= OUT_ELEMENTS) return;
    const int row = i / OUT_DIM3 % OUT_DIM2 * WINDOW, column = i % OUT_DIM3 * WINDOW;
    const float *from = results + plane * Conv::OUT_AREA + row * Width::OUT + column;
    float v[WINDOW][WINDOW], most = -INFINITY, least = INFINITY;
#pragma unroll
    for (int y = 0; y < WINDOW; y++)
#pragma unroll
        for (int x = 0; x < WINDOW; x++) v[y][x] = __ldg(from + y * Width::OUT + x);
#pragma unroll
    for (int y = 0; y < WINDOW; y++)
#pragma unroll
        for (int x = 0; x < WINDOW; x++) {
            most = kp::larger(most, v[y][x]);
            least = kp::smaller(least, v[y][x]);
        }
    const int filter = plane % Conv::FILTERS;
    const kp::Spread s = spread[Groups::of(plane)];
    const float w = weight[filter], by = scale[filter];
    const float extreme = (w < 0.0f) == (by < 0.0f) ? most : least;
    out[i] = kp::Clamp{0.0f, 1.0f}(((extreme - s.mean) * s.scale * w + bias[filter]) * by);
}

using Scratch = kp::NormScratch<Conv, Tile, Groups::COUNT, true>;

extern "C" size_t scratch_bytes(void) {
    return Scratch::bytes();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const Scratch own = Scratch::in(scratch);
    const kp::AddBias add = {in->conv_bias};
    kp::convolve_moments<Conv, Tile>(in->x, in->conv_weight, own.results, add, own.moments, scratch,
                                     stream);
    kp::join_moments<Groups>(own.moments, 1e-5, own.spread, stream);
    pool_kernel<<<BLOCKS, THREADS, 0, stream>>>(own.results, own.spread, in->group_norm_weight,
                                                in->group_norm_bias, in->scale, out->out);
}
