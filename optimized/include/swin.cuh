/* swin.cuh: what the Swin networks share: parameters, linear layers, and what begins and ends them.
 * They have four stages, each of half the side and twice the features of the one before; features
 * are [image][y][x][channel].
 *
 * Idea: in three stages a product is features times weight, which is split beforehand with all
 * others (split_weights.cuh); in the last, where weights are larger, weight times features. Tiles
 * are so wide, and the depth of layers with few results is in so many parts, that each layer is
 * about one round of 132 multiprocessors. All three passes are in TF32: layers in a row pass on
 * what residuals in bf16 lose. What limits it: the products. Reaches 33 % of their floor (l3_029,
 * l3_030). */
#pragma once
#include "few_rows.cuh"
#include "operands.cuh"
#include "split_depth.cuh"
#include "split_weights.cuh"
#include "stores.cuh"
#include "swin_rows.cuh"

namespace kp {

/* ---- parameters ---- */

/* Between stages: the weight that halves four places' features, and the norm before or behind. */
struct SwinDownsample {
    const float *weight, *norm_weight, *norm_bias;
};

/* Parameters as they follow each other in struct Inputs; a Block has those of a block. */
template <class Block> struct SwinParameters {
    const float *patch_weight, *patch_bias, *patch_norm_weight, *patch_norm_bias;
    Block b0[2];
    SwinDownsample down0;
    Block b1[2];
    SwinDownsample down1;
    Block b2[6];
    SwinDownsample down2;
    Block b3[2];
    const float *norm_weight, *norm_bias, *head_weight, *head_bias;
};

/* ---- sizes ---- */

using SwinWide = Tile<96, Tf32Rest>;      /* of most layers */
using SwinNarrow = Tile<48, Tf32Rest>;    /* of those with few results */
using SwinSingle = Tile<96, Tf32Rest, 1>; /* of the last stage's, in parts */

template <int IMAGES, int SIDE_0, int BASE, int S> struct SwinStage {
    static constexpr int STAGE = S, SIDE = SIDE_0 >> S, PLACES = IMAGES * SIDE * SIDE;
    static constexpr int C = BASE << S, HEADS = C / 32, PARTS = S == 2 ? 4 : S == 3 ? 7 : 1;
    static constexpr size_t SPLIT = /* bytes of the last stage's split features */
        (size_t)(PLACES + 95) / 96 * 96 * 4 * C * 8;
    static_assert(BASE % 32 == 0 && SIDE_0 % 8 == 0, "whole slabs and sides");
};
/* The tile of a layer of stage s whose results are `times` those of the stage. */
constexpr bool swin_narrow(int s, int times) {
    return s == 1 && times < 4;
}
template <class Of, int TO>
using SwinTile = std::conditional_t<swin_narrow(Of::STAGE, TO / Of::C), SwinNarrow, SwinWide>;

/* The weights of three stages and of what leads to them. A shape is results and depth of one of a
 * block's layers, in features of its stage. */
struct SwinWeights {
    float *wide_split, *narrow_split;
    Weights<SwinWide, 36> wide;
    Weights<SwinNarrow, 8> narrow;

    template <class T, int N>
    static constexpr size_t words(int base, const int (&blocks)[4], const int (&shapes)[N][2]) {
        constexpr bool NARROW = T::N == SwinNarrow::N;
        size_t sum = 0;
        for (int s = 0; s < 3; s++) {
            const int c = base << s;
            for (const auto &shape : shapes)
                if (swin_narrow(s, shape[0]) == NARROW)
                    sum += (size_t)blocks[s] * Weights<T, 1>::blocks_of(shape[0] * c, shape[1] * c);
            if (s > 0 && swin_narrow(s, 1) == NARROW) sum += Weights<T, 1>::blocks_of(c, 2 * c);
        }
        return sum * T::B_WORDS;
    }
    /* Puts where it will be split in the place of weight [times * Of::C][depth], unless that is the
     * last stage's. */
    template <class Of> void add(const float *&weight, int times, int depth) {
        if (Of::STAGE == 3) return;
        weight = swin_narrow(Of::STAGE, times)
                     ? narrow.add(weight, times * Of::C, depth, narrow_split)
                     : wide.add(weight, times * Of::C, depth, wide_split);
    }
    void enqueue(cudaStream_t stream) const {
        wide.enqueue(wide_split, stream);
        narrow.enqueue(narrow_split, stream);
    }
};

/* ---- epilogues ---- */

/* value + residual[row][column] + bias[column], or without either if null, to out[row][column]. */
template <int ROWS, int COLUMNS> struct StoreSum {
    const float *bias, *residual;
    float *out;
    template <class P>
    __device__ __forceinline__ void tile(const P &part, int, int row, int column) const {
        constexpr int AHEAD = 6; /* columns that are read at a time */
        static_assert(P::N / 8 % AHEAD == 0 && COLUMNS % 8 == 0, "whole groups");
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int m = row + part.row(r / 2, r % 2);
            if (!kp::whole_tiles(ROWS) && m >= ROWS) continue;
            const size_t at = (size_t)m * COLUMNS + column;
#pragma unroll
            for (int first = 0; first < P::N / 8; first += AHEAD) {
                float2 add[AHEAD] = {};
#pragma unroll
                for (int j = 0; j < AHEAD; j++) {
                    const int n = 8 * (first + j);
                    if (!residual || column + n >= COLUMNS) break;
                    const float2 b = __ldg((const float2 *)(bias + column + n));
                    add[j] = *(const float2 *)(residual + at + n);
                    add[j].x += b.x, add[j].y += b.y;
                }
#pragma unroll
                for (int j = 0; j < AHEAD; j++) {
                    const int n = 8 * (first + j);
                    if (column + n >= COLUMNS) break;
                    const float *v = part.v[r / 2] + n / 2 + r % 2 * 2;
                    *(float2 *)(out + at + n) = make_float2(v[0] + add[j].x, v[1] + add[j].y);
                }
            }
        }
    }
};

/* F(value + bias of the feature), which is the column, or in the last stage the row. */
template <class Of, class F> struct SwinBias {
    const float *bias;
    __device__ __forceinline__ float operator()(float v, int row, int column) const {
        return F()(v + __ldg(bias + (Of::STAGE == 3 ? row : column)));
    }
};

/* ---- layers ---- */

/* Enqueues to[part] = f(features [places][FROM] times weight [TO][FROM]), of the last stage. */
template <class Of, class Tile, int FROM, int TO, int PARTS, class F>
static void last_linear(const F &f, const float *weight, const float *features, float *to,
                        void *split, cudaStream_t stream) {
    using Sizes = SplitDepth<TO, Of::PLACES, FROM, PARTS>;
    static_assert(split_bytes<Sizes, Tile>() <= Of::SPLIT, "scratch suffices");
    const StoreColumns<F, TO, Of::PLACES, (long long)TO *Of::PLACES> store = {f, to};
    product<Sizes, Tile>(Along<TO, FROM>{{}, weight}, Along<Of::PLACES, FROM>{{}, features}, store,
                         split, stream);
}

/* Enqueues to = f(features times weight [TO][C]). */
template <class Of, int TO, class F>
static void wide_linear(const F &f, const float *weight, const float *features, float *to,
                        void *split, cudaStream_t stream) {
    constexpr int PLACES = Of::PLACES, C = Of::C;
    if constexpr (Of::STAGE == 3) {
        last_linear<Of, SwinNarrow, C, TO, 1>(f, weight, features, to, split, stream);
    } else {
        const StoreRows<F, PLACES, TO> store = {f, to};
        multiply<Matrices<PLACES, TO, C>, SwinTile<Of, TO>>(Along<PLACES, C>{{}, features}, weight,
                                                            store, stream);
    }
}

/* Enqueues parts = features [places][FROM] times weight [C][FROM]; where PARTS is 1, plus bias and
 * residual unless that is null. */
template <class Of, int FROM>
static void narrow_linear(const float *weight, const float *features, const float *bias,
                          const float *residual, float *parts, void *split, cudaStream_t stream) {
    constexpr int PLACES = Of::PLACES, C = Of::C;
    const Along<PLACES, FROM> a = {{}, features};
    if constexpr (Of::STAGE == 3) {
        last_linear<Of, SwinSingle, FROM, C, Of::PARTS>(Same(), weight, features, parts, split,
                                                        stream);
    } else if constexpr (Of::PARTS == 1) {
        const StoreSum<PLACES, C> store = {bias, residual, parts};
        multiply<Matrices<PLACES, C, FROM>, SwinTile<Of, C>>(a, weight, store, stream);
    } else {
        const StoreRows<Same, PLACES, C, (long long)PLACES *C> store = {{}, parts};
        multiply<SplitDepth<PLACES, C, FROM, Of::PARTS>, SwinTile<Of, C>>(a, weight, store, stream);
    }
}

/* ---- ends ---- */

/* Enqueues x = the patches of images [IMAGES][CHANNELS][SIDE][SIDE]. */
template <int IMAGES, int CHANNELS, int SIDE, int BASE, class Block>
static void swin_patches(const float *images, const SwinParameters<Block> &p, float *x,
                         cudaStream_t stream) {
    patch_kernel<CHANNELS, SIDE, SIDE, BASE><<<IMAGES *(SIDE / 4), 32 * PATCH_WARPS, 0, stream>>>(
        images, p.patch_weight, p.patch_bias, p.patch_norm_weight, p.patch_norm_bias, x);
}

/* Enqueues out [IMAGES][CLASSES] = linear(mean of layer norm(sum)); y and mean: what lies between.
 */
template <int IMAGES, int CLASSES, int PLACES, int C, int PARTS, class Block>
static void swin_head(const PartSum<PLACES, C, PARTS> &sum, const SwinParameters<Block> &p,
                      float *y, float *mean, float *out, cudaStream_t stream) {
    norm_sum(sum, nullptr, p.norm_weight, p.norm_bias, nullptr, y, stream);
    mean_kernel<PLACES / IMAGES, C><<<dim3(C / 32, IMAGES), 256, 0, stream>>>(y, mean);
    few_rows<IMAGES, C, CLASSES>(mean, p.head_weight, AddBias{p.head_bias}, out, stream);
}

} // namespace kp
