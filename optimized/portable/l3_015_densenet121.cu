// provenance: shipped
/* DenseNet-121 or -201 without bottlenecks, batch norms by the batch's own statistics: x
 * [10][3][224][224] -> [10][10]. A 7 x 7 convolution and a pool; four dense blocks of 3 x 3
 * convolutions to 32 channels, on sides 56, 28, 14 and 7; between them 1 x 1 convolutions and means
 * of 2 x 2; the means of all channels, and a linear layer. The sizes are the task's.
 *
 * Idea: dense_layer.cuh: two kernels a layer, the convolution in parts and their sum, for which
 * the parts are so many that 132 multiprocessors have work. The first convolution is product.cuh's,
 * with its norm's moments from the epilogue (channel_norm.cuh); norm, ReLU and pool make the first
 * lines. Before a 1 x 1 convolution its input is halved: a quarter of the work, and the same. All
 * filters are split by one kernel at the start.
 * Floor: 56 GFLOP of products in three passes in TF32, 0.41 ms (201: 104 GFLOP, 0.75 ms); filters
 * read, split and read again, 0.05 ms (0.13); but 58 (98) layers wait for each other, and each
 * takes 6 us and more beside its products.
 * Measured on an H200: 1.60 ms, 29 % of the floor; l3_016: 2.81 ms, 31 %. */
#include "task.h"
#include <algorithm>
#include "convolve.cuh"
#include "dense_layer.cuh"
#include "extremes.cuh"
#include "few_rows.cuh"
#include "whole_channels.cuh"

constexpr int IMAGES = X_DIM0, FEATURES = CLASSIFIER_WEIGHT_DIM1, CLASSES = CLASSIFIER_WEIGHT_DIM0;
constexpr float EPS = 1e-5f;
static_assert(X_DIM2 == X_DIM3, "squares");

constexpr int halved(int side) { /* by stride 2, whatever the odd filter */
    return (side - 1) / 2 + 1;
}

/* The dense blocks: groups of 32 channels that come in and go out, and the side of the images. */
constexpr int S0 = halved(X_DIM2), S1 = halved(S0); /* of the first convolution, and its pool */
constexpr int BEGIN[] = {FEATURES_0_WEIGHT_DIM0 / 32,
                         TRANSITION_LAYERS_0_TRANSITION_2_WEIGHT_DIM0 / 32,
                         TRANSITION_LAYERS_1_TRANSITION_2_WEIGHT_DIM0 / 32,
                         TRANSITION_LAYERS_2_TRANSITION_2_WEIGHT_DIM0 / 32};
constexpr int END[] = {TRANSITION_LAYERS_0_TRANSITION_2_WEIGHT_DIM1 / 32,
                       TRANSITION_LAYERS_1_TRANSITION_2_WEIGHT_DIM1 / 32,
                       TRANSITION_LAYERS_2_TRANSITION_2_WEIGHT_DIM1 / 32, FEATURES / 32};
template <int B> using Of = kp::Lines<IMAGES, (S1 >> B)>;
constexpr int BLOCKS = 4, GROWTH = DENSE_BLOCKS_0_LAYERS_0_2_WEIGHT_DIM0;
static_assert(GROWTH == 32 && FEATURES_0_WEIGHT_DIM0 % 32 == 0 && FEATURES % 32 == 0 &&
                  TRANSITION_LAYERS_0_TRANSITION_2_WEIGHT_DIM0 % 32 == 0 &&
                  TRANSITION_LAYERS_1_TRANSITION_2_WEIGHT_DIM0 % 32 == 0 &&
                  TRANSITION_LAYERS_2_TRANSITION_2_WEIGHT_DIM0 % 32 == 0,
              "groups of 32 channels");

constexpr int layers_before(int block) {
    return block ? layers_before(block - 1) + END[block - 1] - BEGIN[block - 1] : 0;
}
constexpr int groups_before(int block) { /* of filters */
    return block ? groups_before(block - 1) + (BEGIN[block - 1] + END[block - 1] - 1) *
                                                  (END[block - 1] - BEGIN[block - 1]) / 2
                 : 0;
}
constexpr int LAYERS = layers_before(BLOCKS), GROUPS = groups_before(BLOCKS);

/* A layer's norm and then its convolution, as they follow each other in struct Inputs; behind the
 * dense layers those between blocks. */
struct Weights {
    const float *weight, *bias, *filters;
};
static_assert(sizeof(struct Inputs) == (4 + 3 * (LAYERS + BLOCKS - 1) + 4) * sizeof(float *),
              "x, the first convolution, layers, the last norm, the classifier");

/* ---- the first convolution and its pool ---- */

using First = kp::Convolution<IMAGES, X_DIM1, FEATURES_0_WEIGHT_DIM0, 1, kp::Axis<X_DIM3, 7, 2, 3>,
                              kp::Axis<X_DIM2, 7, 2, 3>>;
using FirstTile = kp::Tile<64, kp::Tf32Rest>;
using FirstParts = kp::ProductParts<First>;
static_assert(First::OUT_AREA == S0 * S0, "half the side");

/* The largest of relu(norm(x)) in windows of 3 x 3, stride 2, padding 1, of lines of all channels.
 */
struct Pooled {
    const float *x;
    const kp::ChannelNorm *norms;
    static __device__ __forceinline__ void take(const kp::ChannelNorm &norm, float v, float &most) {
        most = kp::larger(most, norm(v));
    }
    template <class L, int SHARE>
    __device__ __forceinline__ float4 at(int pixel, int, int group, int piece, int share) const {
        const int image = pixel / (S1 * S1), channel = group * 32 + piece * 4;
        const int top = pixel / S1 % S1 * 2 - 1, left = pixel % S1 * 2 - 1;
        float4 most = make_float4(0.0f, 0.0f, 0.0f, 0.0f); /* ReLU leaves nothing below */
        kp::ChannelNorm norm[4];
#pragma unroll
        for (int c = 0; c < 4; c++) norm[c] = kp::ChannelNorm::of(norms, channel + c);
#pragma unroll
        for (int t = 0; t < 9; t++) {
            const int y = top + t / 3, x0 = left + t % 3;
            if (share || (unsigned)y >= (unsigned)S0 || (unsigned)x0 >= (unsigned)S0) continue;
            const float4 v = __ldg(
                (const float4 *)(x + ((image * S0 + y) * S0 + x0) * First::COLUMNS + channel));
            take(norm[0], v.x, most.x), take(norm[1], v.y, most.y);
            take(norm[2], v.z, most.z), take(norm[3], v.w, most.w);
        }
        return most;
    }
};

/* ---- the network ---- */

constexpr size_t MOST_LINES = std::max(
    {END[0] * Of<0>::WORDS, END[1] * Of<1>::WORDS, END[2] * Of<2>::WORDS, END[3] * Of<3>::WORDS});
constexpr size_t MOST_MEANS =
    std::max({END[0] * Of<1>::WORDS, END[1] * Of<2>::WORDS, END[2] * Of<3>::WORDS});
constexpr size_t MOST_PARTS =
    std::max({kp::line_parts<Of<0>>(1), kp::line_parts<Of<1>>(BEGIN[1]),
              kp::line_parts<Of<2>>(BEGIN[2]), kp::line_parts<Of<3>>(BEGIN[3])});
constexpr int MOST_RUNS = std::max({BEGIN[0] * Of<0>::RUNS, BEGIN[1] * Of<1>::RUNS,
                                    BEGIN[2] * Of<2>::RUNS, BEGIN[3] * Of<3>::RUNS});
constexpr size_t B_WORDS = kp::DenseTile::B_WORDS;

struct Scratch {
    alignas(16) char first_split[kp::split_bytes<First, FirstTile>()];
    alignas(16) float blocks[GROUPS * 9 * B_WORDS];
    alignas(
        16) float between[(END[0] * BEGIN[1] + END[1] * BEGIN[2] + END[2] * BEGIN[3]) * B_WORDS];
    alignas(16) float first[First::ROWS * First::COLUMNS], parts[MOST_PARTS];
    alignas(16) float lines[2][MOST_LINES], means[MOST_MEANS], features[IMAGES * FEATURES];
    alignas(16) kp::Centred first_moments[FirstParts::BYTES / sizeof(kp::Centred)];
    alignas(16) kp::Centred moments[MOST_RUNS * 32];
    kp::ChannelNorm first_norm[First::COLUMNS],
        standard[2][std::max({END[0], END[1], END[2], END[3]}) * 32];
};

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

/* Enqueues the splitting of all filters: of the dense layers, and of those between blocks. */
static void split_filters(const Weights *layers, Scratch *s, cudaStream_t stream) {
    kp::DenseFilters<LAYERS> dense = {};
    int most = 0, before = 0;
    for (int b = 0, layer = 0; b < BLOCKS; b++)
        for (int groups = BEGIN[b]; groups < END[b]; groups++, layer++) {
            dense.of[layer] = layers[layer].filters;
            dense.groups[layer] = groups, dense.before[layer] = before;
            before += groups, most = std::max(most, groups);
        }
    kp::split_dense_kernel<LAYERS><<<dim3(most, LAYERS), 256, 0, stream>>>(dense, s->blocks);
    kp::AllFilters<BLOCKS - 1> between = {};
    float *to = s->between;
    for (int b = 0; b < BLOCKS - 1; b++) {
        const int columns = BEGIN[b + 1] * 32;
        between.of[b] = {layers[LAYERS + b].filters, nullptr, to, END[b] * 32, 1, columns, columns};
        to += END[b] * BEGIN[b + 1] * B_WORDS;
    }
    kp::split_all<kp::DenseTile, true>(between, stream);
}

/* Enqueues block B and those behind it; `blocks` and `between` are the next layers' filters. */
template <int B>
static void run_blocks(const Weights *layers, const float *blocks, const float *between, Scratch *s,
                       cudaStream_t stream) {
    using L = Of<B>;
    float *lines = s->lines[B % 2];
    kp::ChannelNorm *standard = s->standard[B % 2];
    kp::join_kernel<L><<<BEGIN[B], 256, 0, stream>>>(s->moments, EPS, standard);
    const Weights *own = layers + layers_before(B);
    for (int groups = BEGIN[B]; groups < END[B]; groups++, own++) {
        const kp::LineLayer layer = {lines,     blocks,   own->weight,
                                     own->bias, standard, groups > BEGIN[B] ? s->moments : nullptr,
                                     s->parts,  groups,   1,
                                     1,         EPS};
        kp::convolve_lines<kp::LineTaps<L, 9>>(layer, lines + groups * L::WORDS, s->moments,
                                               stream);
        blocks += groups * 9 * B_WORDS;
    }
    kp::join_kernel<L><<<1, 256, 0, stream>>>(s->moments, EPS, standard + (END[B] - 1) * 32);
    if constexpr (B + 1 < BLOCKS) {
        using To = Of<B + 1>;
        const Weights &last = layers[LAYERS + B];
        const kp::LineLayer layer = {s->means, between, last.weight,  last.bias, standard, nullptr,
                                     s->parts, END[B],  BEGIN[B + 1], 1,         EPS};
        kp::halve_kernel<L, To><<<dim3((To::PIXELS + 31) / 32, END[B]), 256, 0, stream>>>(
            lines, standard, last.weight, last.bias, s->means);
        kp::convolve_lines<kp::LineTaps<To, 1>>(layer, s->lines[(B + 1) % 2], s->moments, stream);
        run_blocks<B + 1>(layers, blocks, between + END[B] * BEGIN[B + 1] * B_WORDS, s, stream);
    }
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    using L = Of<0>;
    using StoreFirst = kp::StoreRows<kp::Same, First::ROWS, First::COLUMNS>;
    Scratch *s = (Scratch *)scratch;
    const Weights *layers = (const Weights *)&in->dense_blocks_0_layers_0_0_weight;
    const kp::WithMoments<First, StoreFirst> store = {{{}, s->first}, s->first_moments};
    split_filters(layers, s, stream);
    kp::product<First, FirstTile>(kp::Patches<First>{{}, in->x},
                                  kp::Filters<First>{in->features_0_weight}, store, s->first_split,
                                  stream);
    kp::join_channels<FirstParts>(s->first_moments, in->features_1_weight, in->features_1_bias, EPS,
                                  s->first_norm, stream);
    kp::keep_kernel<L><<<dim3(L::RUNS, BEGIN[0]), 256, 0, stream>>>(Pooled{s->first, s->first_norm},
                                                                    s->lines[0], s->moments);
    run_blocks<0>(layers, s->blocks, s->between, s, stream);
    constexpr int LAST = BLOCKS - 1;
    kp::means_kernel<Of<LAST>><<<dim3(END[LAST], IMAGES), 256, 0, stream>>>(
        s->lines[LAST % 2], s->standard[LAST % 2], in->final_bn_weight, in->final_bn_bias,
        s->features);
    kp::few_rows<IMAGES, FEATURES, CLASSES>(s->features, in->classifier_weight,
                                            kp::AddBias{in->classifier_bias}, out->out, stream);
}
