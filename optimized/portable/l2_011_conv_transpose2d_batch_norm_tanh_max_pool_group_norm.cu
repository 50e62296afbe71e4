// provenance: shipped
/* group norm (8 groups) of the max of windows of 2 x 2 of tanh(batch norm(conv)), by the batch's
 * own mean and variance, conv a transposed convolution over two axes with bias and padding 1: x
 * [512][64][32][32], weight [64][128][5][5] -> [512][128][34][34] -> [512][128][17][17].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh) stores its
 * results in scratch memory, and gathers the moments of each channel (convolve_norm.cuh). A block
 * then has a group of an image in registers. The largest of a window is that of the results, or the
 * smallest where batch norm falls.
 * Floor: one product in TF32 and two in bf16, 1213 us; 0.13 GiB read, 0.28 GiB written and read,
 * 0.07 GiB written, 180 us.
 * Measured: 1720 us on an H200, 71 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve_norm.cuh"
#include "extremes.cuh"

using Width = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 1, 1>;
using Height = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 1, 1>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height>;
using Tile = kp::TileFor<Conv, 128>;
using Channels = kp::Parts<Conv, X_DIM0, 1>;
constexpr int GROUPS = 8, EACH = Conv::FILTERS / GROUPS, AREA = OUT_DIM2 * OUT_DIM3;
constexpr int SIZE = EACH * AREA; /* of a group of an image */
constexpr int THREADS = 512, OWN = (SIZE + THREADS - 1) / THREADS;
static_assert(OUT_DIM2 == Height::OUT / 2 && OUT_DIM3 == Width::OUT / 2, "sizes");

/* The sum of v over the block, for all threads. */
__device__ __forceinline__ double block_sum(double v) {
    __shared__ double part[THREADS / 32];
    v = kp::lanes_sum(v);
    __syncthreads(); /* the sum before this is read */
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.0;
#pragma unroll
    for (int i = 0; i < THREADS / 32; i++) v += part[i];
    return v;
}

/* A block a group of an image. */
__global__ void __launch_bounds__(THREADS, 2)
    pool_norm_kernel(const float *__restrict__ results, const kp::Spread *__restrict__ spread,
                     const float *__restrict__ weight, const float *__restrict__ bias,
                     const float *__restrict__ group_weight, const float *__restrict__ group_bias,
                     float *__restrict__ out) {
    const int first = blockIdx.x % GROUPS * EACH; /* channel */
    float v[OWN];
    double sum = 0.0, square = 0.0;
#pragma unroll
    for (int j = 0; j < OWN; j++) {
        const int i = threadIdx.x + j * THREADS, c = first + i / AREA;
        if (SIZE % THREADS && i >= SIZE) break;
        const float *window = results + ((long long)blockIdx.x * EACH + i / AREA) * Conv::OUT_AREA +
                              i % AREA / OUT_DIM3 * 2 * Width::OUT + i % OUT_DIM3 * 2;
        const float a = __ldg(window), b = __ldg(window + 1);
        const float d = __ldg(window + Width::OUT), e = __ldg(window + Width::OUT + 1);
        const float most = kp::larger(kp::larger(a, b), kp::larger(d, e));
        const float least = kp::smaller(kp::smaller(a, b), kp::smaller(d, e));
        const float w = __ldg(weight + c);
        const kp::Spread s = spread[c];
        v[j] = kp::Tanh()(((w < 0.0f ? least : most) - s.mean) * s.scale * w + __ldg(bias + c));
        sum += v[j];
    }
    const float mean = (float)(block_sum(sum) / SIZE);
#pragma unroll
    for (int j = 0; j < OWN; j++) {
        if (SIZE % THREADS && threadIdx.x + j * THREADS >= SIZE) break;
        square += (v[j] - mean) * (v[j] - mean);
    }
    const float scale = (float)(1.0 / sqrt(block_sum(square) / SIZE + 1e-5));
#pragma unroll
    for (int j = 0; j < OWN; j++) {
        const int i = threadIdx.x + j * THREADS, c = first + i / AREA;
        if (SIZE % THREADS && i >= SIZE) break;
        out[(long long)blockIdx.x * SIZE + i] =
            (v[j] - mean) * scale * __ldg(group_weight + c) + __ldg(group_bias + c);
    }
}

using Scratch = kp::NormScratch<Conv, Tile, Channels::COUNT, true>;

extern "C" size_t scratch_bytes(void) {
    return Scratch::bytes();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const Scratch own = Scratch::in(scratch);
    const kp::AddBias add = {in->conv_transpose_bias};
    kp::convolve_moments<Conv, Tile>(in->x, in->conv_transpose_weight, own.results, add,
                                     own.moments, scratch, stream);
    kp::join_moments<Channels>(own.moments, 1e-5, own.spread, stream);
    pool_norm_kernel<<<X_DIM0 * GROUPS, THREADS, 0, stream>>>(
        own.results, own.spread, in->batch_norm_weight, in->batch_norm_bias, in->group_norm_weight,
        in->group_norm_bias, out->out);
}
