/* split_heads.cuh: where a linear layer leaves queries, keys and values for tensor_heads.cuh.
 *
 * Queries stay as they are. Keys and values are split in a big part of TF32 and a residual, and lie
 * in blocks of 32 keys, as the tensor cores read them (product_hopper.cuh has the same blocks):
 * first the big parts, then the residuals, a column 128 bytes. Columns of keys are keys, 32
 * channels deep; columns of values are channels, 32 keys deep. All of a head's keys, and all of its
 * values, lie one after another. Four lanes write 32 bytes of a key, eight those of a channel.
 * Reaches: see tensor_heads.cuh. */
#pragma once
#include "product.cuh"

namespace kp {

constexpr int HEAD_KEYS = 32; /* of a block */

template <int LENGTH_, int HEADS_, int WIDTH_> struct HeadSizes {
    static constexpr int LENGTH = LENGTH_, HEADS = HEADS_, WIDTH = WIDTH_;
    static constexpr int CHANNELS = HEADS * WIDTH, TILES = LENGTH / HEAD_KEYS;
    static constexpr int GROUPS = WIDTH == 32 ? 4 : 2, QUERIES = 64 * GROUPS;
    static constexpr int THREADS = 128 * GROUPS, SLABS = WIDTH / TILE_K;
    using KeyTile = Tile<HEAD_KEYS, Tf32Rest, 1>;
    using ValueTile = Tile<WIDTH, Tf32Rest, 1>;
    static constexpr int KEY_BYTES = SLABS * KeyTile::B_BYTES, VALUE_BYTES = ValueTile::B_BYTES;
    static constexpr int STAGE = KEY_BYTES + VALUE_BYTES, STAGES = 208 * 1024 / STAGE;
    static constexpr int AHEAD = STAGES * 2 / 3; /* tiles that are asked for beforehand */
    static_assert(WIDTH == 32 || WIDTH == 64, "registers");
    static_assert(LENGTH % QUERIES == 0, "whole tiles");
};

/* Queries, keys and values of all heads, in scratch. */
template <class S, int BATCH> struct Heads {
    static constexpr size_t PLACES = (size_t)BATCH * S::TILES * HEAD_KEYS;
    static constexpr size_t COUNT = (size_t)BATCH * S::HEADS; /* heads in all */
    float *queries, *keys, *values;
    static constexpr size_t bytes() {
        return PLACES * S::CHANNELS * 4 + COUNT * S::TILES * (S::KEY_BYTES + S::VALUE_BYTES);
    }
    static Heads in(void *scratch) {
        float *queries = (float *)scratch, *keys = queries + PLACES * S::CHANNELS;
        return {queries, keys, keys + COUNT * S::TILES * (S::KEY_BYTES / 4)};
    }
};

/* The store (stores.cuh) of a linear layer that gives queries, keys and values, in this order: adds
 * the bias, to values with VALUE_BIAS only, and splits keys and values. Row `row` of batch `batch`
 * of the product is place batch * LENGTH + row of all. */
template <class S, int ROWS, bool VALUE_BIAS> struct StoreHeads {
    static_assert(S::CHANNELS % 128 == 0, "a tile is of one kind");
    const float *bias;
    float *queries, *keys, *values;

    /* The big part. The host's compiler reads this, too, and has no such function. */
    static __device__ __forceinline__ float big(float v) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        return nearest_tf32(v);
#else
        return v;
#endif
    }
    /* What a block holds of v beside the big part; of an infinity 0. */
    static __device__ __forceinline__ float rest(float v) {
        return v == big(v) ? 0.0f : v == v ? big(v - big(v)) : v;
    }
    /* Where a column's word lies in a block: wgmma_operand()'s order. */
    static __device__ __forceinline__ int word(int column, int slot) {
        return column * TILE_K + ((slot / 4) ^ (column % 8)) * 4 + slot % 4;
    }
    /* A key is a column; `k` is even. */
    __device__ __forceinline__ void store_key(int head, int key, int k, float2 v) const {
        using T = typename S::KeyTile;
        const long long tile = (long long)head * S::TILES + key / HEAD_KEYS;
        float *to =
            keys + (tile * S::SLABS + k / TILE_K) * T::B_WORDS + word(key % HEAD_KEYS, k % TILE_K);
        *(float2 *)to = make_float2(big(v.x), big(v.y));
        *(float2 *)(to + T::PART_BYTES / 4) = make_float2(rest(v.x), rest(v.y));
    }
    /* A channel is a column, whose slot t + 4 u of eight has key 2 t + u: that of the thread that
     * has this slot of the weights. */
    __device__ __forceinline__ void store_value(int head, int key, int k, float v) const {
        using T = typename S::ValueTile;
        const long long tile = (long long)head * S::TILES + key / HEAD_KEYS;
        const int slot = key % HEAD_KEYS / 8 * 8 + key % 8 / 2 + key % 2 * 4;
        float *to = values + tile * T::B_WORDS + word(k, slot);
        to[0] = big(v), to[T::PART_BYTES / 4] = rest(v);
    }
    __device__ __forceinline__ void store(int place, int kind, int channel, float2 v) const {
        const int key = place % S::LENGTH, head = place / S::LENGTH * S::HEADS + channel / S::WIDTH;
        const int k = channel % S::WIDTH;
        if (kind == 0)
            *(float2 *)(queries + (long long)place * S::CHANNELS + channel) = v;
        else if (kind == 1)
            store_key(head, key, k, v);
        else
            store_value(head, key, k, v.x), store_value(head, key, k + 1, v.y);
    }
    template <class P>
    __device__ __forceinline__ void tile(const P &part, int batch, int row, int column) const {
        const int kind = column / S::CHANNELS, channel = column % S::CHANNELS;
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int m = row + part.row(r / 2, r % 2);
            if (!whole_tiles(ROWS) && m >= ROWS) continue;
#pragma unroll
            for (int j = 0; j < P::N / 8; j++) {
                const float *v = part.v[r / 2] + 4 * j + r % 2 * 2;
                const float2 b = VALUE_BIAS || kind < 2
                                     ? __ldg((const float2 *)(bias + column + 8 * j))
                                     : make_float2(0.0f, 0.0f);
                store(batch * S::LENGTH + m, kind, channel + 8 * j,
                      make_float2(v[0] + b.x, v[1] + b.y));
            }
        }
    }
};

} // namespace kp
