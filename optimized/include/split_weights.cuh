/* split_weights.cuh: products (product.cuh) whose right operands, weights of many layers, are split
 * all at once, by one kernel.
 *
 * Idea: where layers are short, a kernel before each that splits its weight takes nearly as long as
 * the product. What limits it: 12 bytes a weight over the bandwidth. Reaches: see l3_029 (no share
 * of its own was measured). */
#pragma once
#include "whole_channels.cuh"

namespace kp {

/* Weights as a right operand, blocks of T::N columns by a slab in a row; a slab's number is that of
 * its block among all. */
template <class T, int MOST> struct Weights {
    static constexpr bool ALONG_DEPTH = true;
    struct Weight {
        const float *data;
        int columns, depth, first, unused; /* first: of its blocks */
    } of[MOST];
    long long count, blocks;

    static constexpr int blocks_of(int columns, int depth) {
        return (columns + T::N - 1) / T::N * ((depth + TILE_K - 1) / TILE_K);
    }
    /* Adds weight [columns][depth]; returns its place among the split. */
    float *add(const float *weight, int columns, int depth, float *split) {
        const int first = (int)blocks;
        of[count++] = {weight, columns, depth, first, 0};
        blocks += blocks_of(columns, depth);
        return split + (size_t)first * T::B_WORDS;
    }
    __device__ __forceinline__ float at(int, int column, int block, int k) const {
        int which = 0;
#pragma unroll
        for (int i = 1; i < MOST; i++)
            if (i < count && block >= of[i].first) which = i;
        const Weight &w = of[which];
        const int slabs = (w.depth + TILE_K - 1) / TILE_K, local = block - w.first;
        column += local / slabs * T::N, k += local % slabs * TILE_K;
        return column < w.columns && k < w.depth ? __ldg(w.data + (size_t)column * w.depth + k)
                                                 : 0.0f;
    }
    /* Enqueues the splitting of all. */
    void enqueue(float *split, cudaStream_t stream) const {
        split_kernel<T, true><<<(int)blocks, 256, 0, stream>>>(*this, split);
    }
};

} // namespace kp
