/* pointwise.cuh: 1 x 1 convolutions as products (product.cuh) of pixels by filters that have been
 * split beforehand, between kernels that have a channel a block (made_channels.cuh).
 *
 * The depth is split where pixels are few; where channels are large, the product writes their
 * moments, 32 values each.
 * Reaches: see l3_022 (no share of its own was measured). */
#pragma once
#include <algorithm>
#include "made_channels.cuh"
#include "split_depth.cuh"
#include "stores.cuh"

namespace kp {

/* From a channel of an operand to the next: whole tiles of clusters. */
__host__ __device__ constexpr int operand_pitch(int values) {
    return (values + 2 * TILE_M - 1) / (2 * TILE_M) * (2 * TILE_M);
}

/* Channels of an operand: whole slabs. */
__host__ __device__ constexpr int operand_channels(int channels) {
    return (channels + TILE_K - 1) / TILE_K * TILE_K;
}

using PointwiseTile = Tile<64, Tf32Rest>; /* layers pass on what rests in bf16 lose */

/* Parts of a product's depth: so that clusters have a tile each. */
__host__ __device__ constexpr int depth_parts(int rows, int columns, int depth) {
    const int tiles = (rows + 2 * TILE_M - 1) / (2 * TILE_M) *
                      ((columns + PointwiseTile::N - 1) / PointwiseTile::N);
    const int slabs = (depth + TILE_K - 1) / TILE_K, most = slabs < 4 ? 1 : slabs / 2;
    const int wished = rows > MOST_HELD || tiles > 33 ? 1 : 66 / tiles < most ? 66 / tiles : most;
    const int each = (slabs + wished - 1) / wished;
    return (slabs + each - 1) / each;
}

/* A 1 x 1 convolution. WIDE: its channels are large, and it writes their moments. */
template <int ROWS_, int COLUMNS_, int DEPTH, bool WIDE_ = (ROWS_ > MOST_HELD)> struct Pointwise {
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_;
    static constexpr bool WIDE = WIDE_;
    static constexpr int PARTS = WIDE ? 1 : depth_parts(ROWS, COLUMNS, DEPTH);
    using Sizes = SplitDepth<ROWS, COLUMNS, DEPTH, PARTS>;
    using Parts = ProductParts<Sizes>;
    using Store = StoreColumns<Same, ROWS, COLUMNS, (long long)ROWS * COLUMNS>;
    using Operand = Across<operand_pitch(ROWS), operand_channels(DEPTH)>;

    template <class A>
    static void multiply(const A &a, const float *blocks, float *to, Centred *parts,
                         cudaStream_t stream) {
        const Store store = {{}, to};
        if constexpr (WIDE)
            kp::multiply<Sizes, PointwiseTile>(a, blocks, WithMoments<Sizes, Store>{store, parts},
                                               stream);
        else
            kp::multiply<Sizes, PointwiseTile>(a, blocks, store, stream);
    }
};

/* What a network's products need: floats that one makes, and parts of its channels, at most; words
 * of all split filters. */
struct PointwiseMost {
    size_t made = 0, centred = 0, words = 0;
    constexpr void take(int rows, int columns, int depth) {
        made = std::max(made, (size_t)depth_parts(rows, columns, depth) * rows * columns);
        if (rows > MOST_HELD) centred = std::max(centred, (size_t)(rows + 31) / 32 * columns);
        words += (size_t)AllFilters<1>::blocks<PointwiseTile>(depth, 1, columns) *
                 PointwiseTile::B_WORDS;
    }
};

/* What a product's operand does to a value of a channel. */
template <class Act> struct MapNormAct {
    const ChannelNorm *norm;
    __device__ __forceinline__ NormAct<Act> mapper(int channel) const {
        return {ChannelNorm::of(norm, channel)};
    }
};

} // namespace kp
