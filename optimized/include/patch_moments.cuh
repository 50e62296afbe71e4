/* patch_moments.cuh: the batch norm of a convolution of few channels, without the convolution.
 *
 * Idea: a result is w . p, p a patch, so that a channel's mean is w . E[p] and its mean square
 * w' E[pp'] w. The moments of patches serve all filters, also those of a smaller kernel. For 3 x 3
 * taps a pixel takes no outer product of 9 * CHANNELS values: with u(y) the row of a patch (3 *
 * CHANNELS values) it is u(y) with u(y), u(y + 1) and u(y + 2), whose sums are those of all pairs
 * of rows of taps, but for the first row of the image or the last one.
 *
 * A thread goes down a strip of a column; sums are its own in fp32, over ROWS rows and then a warp,
 * and double from there on, always in the same order.
 *
 * Contract: images [IMAGES][CHANNELS][HEIGHT][WIDTH], stride 1, padding 1 of zeros; filters
 * [channel][CHANNELS][3][3], or [channel][CHANNELS] of the patch's middle.
 * Reaches: l3_008 took 522 us where it had taken 573 with a product and a join for each norm. */
#pragma once
#include "channel_norm.cuh"
#include "reduce.cuh"

namespace kp {

template <int IMAGES_, int CHANNELS_, int HEIGHT_, int WIDTH_> struct PatchMoments {
    static constexpr int IMAGES = IMAGES_, CHANNELS = CHANNELS_, HEIGHT = HEIGHT_, WIDTH = WIDTH_;
    static constexpr int U = 3 * CHANNELS, THREADS = 128, WARPS = THREADS / 32, ROWS = 16;
    static constexpr int STRIPS = (HEIGHT + ROWS - 1) / ROWS;
    static constexpr int BLOCKS = (IMAGES * WIDTH + THREADS - 1) / THREADS; /* across */
    static constexpr double PIXELS = (double)IMAGES * HEIGHT * WIDTH;
    /* Sums: of u, of u(y)u(y), u(y)u(y + 1), u(y)u(y + 2). */
    static constexpr int SELF = U, NEXT = SELF + U * (U + 1) / 2, AFTER = NEXT + U * U;
    static constexpr int SUMS = AFTER + U * U;
    enum { ALL, FIRST, LAST, REGIONS }; /* of all rows, of the first, of the last one */
    static constexpr int PARTS = STRIPS * BLOCKS * WARPS, EDGE_PARTS = BLOCKS * WARPS;
    static constexpr int TOTAL_PARTS = PARTS + 2 * EDGE_PARTS; /* of a sum */

    /* Scratch. */
    struct Sums {
        float part[SUMS][TOTAL_PARTS];
        double sum[REGIONS][SUMS];
    };
};

/* The sums of one warp's strips: those that READ says, u(y)u(y + 2), or the others. Grid: x the
 * columns of all images, y the strips, then the first row and the last one; z 0 or 1. */
template <class M>
__global__ void __launch_bounds__(M::THREADS, 2)
    patch_sums_kernel(const float *__restrict__ x, typename M::Sums *__restrict__ sums) {
    constexpr int U = M::U;
    const int column = blockIdx.x * M::THREADS + threadIdx.x;
    const int image = column / M::WIDTH, at = column % M::WIDTH, strip = blockIdx.y;
    const int begin = strip < M::STRIPS ? strip * M::ROWS : strip == M::STRIPS ? 0 : M::HEIGHT - 1;
    const int end = strip < M::STRIPS ? min(begin + M::ROWS, M::HEIGHT) : begin + 1;
    auto row_of = [&](float(&u)[U], int y) {
#pragma unroll
        for (int c = 0; c < M::CHANNELS; c++)
#pragma unroll
            for (int dx = 0; dx < 3; dx++) {
                const int to = at + dx - 1;
                const bool inside = image < M::IMAGES && y < M::HEIGHT && to >= 0 && to < M::WIDTH;
                u[c * 3 + dx] =
                    inside ? __ldg(x + ((image * M::CHANNELS + c) * M::HEIGHT + y) * M::WIDTH + to)
                           : 0.0f;
            }
    };
    const int part = (strip * M::BLOCKS + blockIdx.x) * M::WARPS + threadIdx.x / 32;
    auto put = [&](int i, float v) {
        v = warp_reduce(v, Add());
        if (threadIdx.x % 32 == 0) sums->part[i][part] = v;
    };
    float now[U], next[U];
    row_of(now, begin);
    row_of(next, begin + 1);
    if (blockIdx.z == 0) {
        float sum[U] = {}, self[U][U] = {}, pair[U][U] = {};
#pragma unroll 1
        for (int y = begin; y < end; y++) {
#pragma unroll
            for (int i = 0; i < U; i++) {
                sum[i] += now[i];
#pragma unroll
                for (int j = 0; j < U; j++) {
                    if (j >= i) self[i][j] += now[i] * now[j];
                    pair[i][j] += now[i] * next[j];
                }
            }
#pragma unroll
            for (int i = 0; i < U; i++) now[i] = next[i];
            row_of(next, y + 2);
        }
        int n = M::SELF;
#pragma unroll
        for (int i = 0; i < U; i++) {
            put(i, sum[i]);
#pragma unroll
            for (int j = 0; j < U; j++) {
                if (j >= i) put(n++, self[i][j]);
                put(M::NEXT + i * U + j, pair[i][j]);
            }
        }
    } else {
        float pair[U][U] = {}, after[U];
#pragma unroll 1
        for (int y = begin; y < end; y++) {
            row_of(after, y + 2);
#pragma unroll
            for (int i = 0; i < U; i++)
#pragma unroll
                for (int j = 0; j < U; j++) pair[i][j] += now[i] * after[j];
#pragma unroll
            for (int i = 0; i < U; i++) now[i] = next[i], next[i] = after[i];
        }
#pragma unroll
        for (int i = 0; i < U; i++)
#pragma unroll
            for (int j = 0; j < U; j++) put(M::AFTER + i * U + j, pair[i][j]);
    }
}

/* Adds up the parts. A warp for a sum; grid: x the sums, y the regions. */
template <class M>
__global__ void __launch_bounds__(32) join_patches_kernel(typename M::Sums *sums) {
    const int region = blockIdx.y;
    const float *part = sums->part[blockIdx.x] +
                        (region == M::ALL ? 0 : M::PARTS + (region - M::FIRST) * M::EDGE_PARTS);
    const int count = region == M::ALL ? M::PARTS : M::EDGE_PARTS;
    double sum = 0;
    for (int i = threadIdx.x; i < count; i += 32) sum += part[i];
    sum = warp_reduce(sum, Add());
    if (threadIdx.x == 0) sums->sum[region][blockIdx.x] = sum;
}

/* What patches have in tap t = (channel * 3 + row) * 3 + column: its sum, and that of the product
 * with tap s. */
template <class M> struct PatchSums {
    const double (*sum)[M::SUMS];
    static constexpr int U = M::U;
    static __device__ __forceinline__ int row(int t) { return t / 3 % 3; }
    static __device__ __forceinline__ int of_u(int t) { return t / 9 * 3 + t % 3; }

    /* The i-th sum over the rows of the image that row `r` of the taps meets. */
    __device__ __forceinline__ double rows(int i, int r) const {
        return sum[M::ALL][i] - (r == 0 ? sum[M::LAST][i] : r == 2 ? sum[M::FIRST][i] : 0.0);
    }
    __device__ __forceinline__ double one(int t) const { return rows(of_u(t), row(t)); }
    __device__ __forceinline__ double two(int t, int s) const {
        const int apart = row(s) - row(t), i = of_u(t), j = of_u(s);
        if (apart < 0) return two(s, t);
        if (apart == 1) return sum[M::ALL][M::NEXT + i * U + j];
        if (apart == 2) return sum[M::ALL][M::AFTER + i * U + j];
        const int low = min(i, j), high = max(i, j);
        return rows(M::SELF + low * U - low * (low - 1) / 2 + high - low, row(t));
    }
};

/* to[channel] = the batch norm of the results of its filter of TAPS x TAPS taps a channel, 3 or 1.
 * A warp a filter. */
template <class M, int TAPS>
__global__ void __launch_bounds__(32)
    patch_norm_kernel(const double (*sum)[M::SUMS], const float *__restrict__ filters,
                      const float *__restrict__ weight, const float *__restrict__ bias, double eps,
                      ChannelNorm *to) {
    constexpr int DEPTH = M::CHANNELS * TAPS * TAPS;
    const PatchSums<M> of = {sum};
    const int channel = blockIdx.x;
    const float *w = filters + channel * DEPTH;
    auto tap = [](int k) { return TAPS == 3 ? k : k * 9 + 4; };
    double mean = 0, square = 0;
    for (int k = threadIdx.x; k < DEPTH; k += 32) mean += w[k] * of.one(tap(k));
    for (int k = threadIdx.x; k < DEPTH * DEPTH; k += 32)
        square += (double)w[k / DEPTH] * w[k % DEPTH] * of.two(tap(k / DEPTH), tap(k % DEPTH));
    mean = warp_reduce(mean, Add()) / M::PIXELS;
    square = warp_reduce(square, Add()) / M::PIXELS;
    if (threadIdx.x) return;
    const double variance = square - mean * mean;
    const double deviation = sqrt((variance < 0.0 ? 0.0 : variance) + eps); /* NaN stays NaN */
    to[channel] = {(float)mean, (float)(weight[channel] / deviation), bias[channel]};
}

/* Enqueues the moments of the patches of x. */
template <class M>
static void sum_patches(const float *x, typename M::Sums *sums, cudaStream_t stream) {
    patch_sums_kernel<M><<<dim3(M::BLOCKS, M::STRIPS + 2, 2), M::THREADS, 0, stream>>>(x, sums);
    join_patches_kernel<M><<<dim3(M::SUMS, M::REGIONS), 32, 0, stream>>>(sums);
}

/* Enqueues to[channel] = the batch norm of a convolution of x, by its patches' moments. */
template <class M, int TAPS, int FILTERS>
static void norm_by_patches(const typename M::Sums *sums, const float *filters, const float *weight,
                            const float *bias, double eps, ChannelNorm *to, cudaStream_t stream) {
    patch_norm_kernel<M, TAPS>
        <<<FILTERS, 32, 0, stream>>>(sums->sum, filters, weight, bias, eps, to);
}

} // namespace kp
