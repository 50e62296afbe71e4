/* whole_channels.cuh: networks whose channels are so small that a block has all values of one:
 * batch norm by the batch's own statistics in registers, beside what else the block does with them.
 *
 * Activations are [channel][image][pixel] then, a run a channel. What products (product.cuh) these
 * networks have is small, too: their filters are split beforehand, all by one kernel, as each
 * launch costs more than it does.
 * Reaches: see l3_019 (no share of its own was measured). */
#pragma once
#include "channel_norm.cuh"
#include "product.cuh"
#include "reduce.cuh"

namespace kp {

/* The norm of a block's COUNT values, by the biased variance: v[i] where inside(i), else zeros. */
template <int THREADS, int COUNT, int EACH, class Inside>
__device__ __forceinline__ ChannelNorm norm_of_block(const float (&v)[EACH], const Inside &inside,
                                                     float weight, float bias, double eps) {
    float sum = 0.0f, square = 0.0f;
#pragma unroll
    for (int i = 0; i < EACH; i++) sum += v[i];
    const float mean = (float)(block_reduce<THREADS>((double)sum, Add()) / COUNT);
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if (inside(i)) square += (v[i] - mean) * (v[i] - mean);
    const double variance = block_reduce<THREADS>((double)square, Add()) / COUNT;
    return {mean, (float)(weight / sqrt(variance + eps)), bias};
}

/* Filters to split for tiles T: [columns][channels][taps], and behind these columns, unless null,
 * those of a 1 x 1 convolution [columns][channels], which counts as the tap in the middle. A slab
 * is 32 channels of a tap, as convolve.cuh's; fewer are filled up with zeros. */
struct FiltersToSplit {
    const float *filters, *other;
    float *blocks;
    int channels, taps, columns, all_columns;
};
template <int COUNT> struct AllFilters {
    FiltersToSplit of[COUNT];
    /* Blocks of B that one has. */
    template <class T> static constexpr int blocks(int channels, int taps, int columns) {
        return (columns + T::N - 1) / T::N * ((channels + TILE_K - 1) / TILE_K * taps);
    }
};

/* Grid: x blocks of B, as many as the largest has, y the filters. */
template <class T, bool A_ALONG_DEPTH, int COUNT>
__global__ void __launch_bounds__(256)
    split_all_kernel(const __grid_constant__ AllFilters<COUNT> all) {
    __shared__ float slab[TILE_K][T::N + 1];
    const FiltersToSplit &own = all.of[blockIdx.y];
    const int a_tap = (own.channels + TILE_K - 1) / TILE_K, slabs = a_tap * own.taps;
    const int index = blockIdx.x % slabs, first = blockIdx.x / slabs * T::N;
    const int tap = index / a_tap;
    if (first >= own.all_columns) return;
    for (int i = threadIdx.x; i < T::N * TILE_K; i += 256) {
        const int n = first + i / TILE_K, channel = index % a_tap * TILE_K + i % TILE_K;
        float v = 0.0f;
        if (n < own.columns && channel < own.channels)
            v = __ldg(own.filters + ((long long)n * own.channels + channel) * own.taps + tap);
        else if (n < own.all_columns && channel < own.channels && tap == own.taps / 2)
            v = __ldg(own.other + (long long)(n - own.columns) * own.channels + channel);
        slab[i % TILE_K][n - first] = v;
    }
    __syncthreads();
    write_block<T, A_ALONG_DEPTH>(slab, own.blocks + (long long)blockIdx.x * T::B_WORDS);
}

/* ---- host ---- */

/* Enqueues the splitting of all filters, for operands A of this kind. */
template <class T, bool A_ALONG_DEPTH, int COUNT>
static void split_all(const AllFilters<COUNT> &all, cudaStream_t stream) {
    int most = 0;
    for (const FiltersToSplit &f : all.of) {
        const int own = AllFilters<COUNT>::template blocks<T>(f.channels, f.taps, f.all_columns);
        most = own > most ? own : most;
    }
    split_all_kernel<T, A_ALONG_DEPTH><<<dim3((unsigned)most, COUNT), 256, 0, stream>>>(all);
}

} // namespace kp
