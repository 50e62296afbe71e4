// provenance: shipped
/* ResNet-101 with batch norms by the batch's own statistics: x [10][3][224][224] -> [10][1000].
 *
 * Idea: activations are [channel][image][pixel], so that a channel is one run, a 1 x 1 convolution
 * is a plain product of pixels by filters, and images are an axis of other convolutions. Every
 * convolution is a product (product.cuh) whose depth is in as many parts as give all
 * multiprocessors work; the norm's kernel, which has a channel a block, adds the parts, normalises,
 * adds the residual, ReLU, and stores. A stage's filters are split by one kernel or two before it.
 * Sums of 1024 products and more have the small parts of their numbers in bf16.
 * Floor: 156 GFLOP of products, 781 us if all residuals were in bf16; 0.18 GiB of weights, written
 * split and read again, 0.2 ms; 219 kernels wait for each other, and each takes 2 us and more.
 * Measured on an H200 with 220 kernels: 3181 us, 25 % of the floor; 2300 predicted.
 * Spills 40 bytes a thread (stored and loaded) in one product, of the last stage's first block, on
 * sm_90a. */
#include "task.h"
#include <algorithm>
#include "few_rows.cuh"
#include "residual.cuh"

constexpr int IMAGES = X_DIM0, FEATURES = FC_WEIGHT_DIM1, CLASSES = FC_WEIGHT_DIM0;
static_assert(X_DIM2 == X_DIM3, "squares");

constexpr int halved(int side) { /* by stride 2, whatever the odd filter */
    return (side - 1) / 2 + 1;
}

/* Layers are a convolution with its norm, three tensors: the first one; those of blocks, three a
 * block; the one beside each stage's first block, behind these. */
constexpr int LAYERS = sizeof(struct Inputs) / sizeof(float *) / 3 - 1;
static_assert(sizeof(struct Inputs) == (1 + 3 * LAYERS + 2) * sizeof(float *), "x, layers, fc");

/* Stages 1 to 4: blocks (23 in the third), filters of a block's first two convolutions, channels
 * that it makes, and the side of its images; stage 0 is the first convolution with its pool. */
constexpr int DEEP[] = {0, 3, 4, (LAYERS - 5) / 3 - 10, 3};
constexpr int WIDTH[] = {0, LAYER1_0_CONV1_WEIGHT_DIM0, LAYER2_0_CONV1_WEIGHT_DIM0,
                         LAYER3_0_CONV1_WEIGHT_DIM0, LAYER4_0_CONV1_WEIGHT_DIM0};
constexpr int MADE[] = {CONV1_WEIGHT_DIM0, LAYER1_0_CONV3_WEIGHT_DIM0, LAYER2_0_CONV3_WEIGHT_DIM0,
                        LAYER3_0_CONV3_WEIGHT_DIM0, LAYER4_0_CONV3_WEIGHT_DIM0};
constexpr int S1 = halved(halved(X_DIM2)), S2 = halved(S1), S3 = halved(S2);
constexpr int SIDE[] = {S1, S1, S2, S3, halved(S3)};
constexpr int values(int stage) { /* of a channel */
    return IMAGES * SIDE[stage] * SIDE[stage];
}
static_assert(MADE[4] == FEATURES, "the last stage makes the features");

/* ---- convolutions ---- */

using Narrow = kp::Tile<64, kp::Tf32Rest>;
using Wide = kp::Tile<128, kp::Tf32Rest>;
using Long = kp::Tile<128, kp::Bf16Rest>;
constexpr int LONG = 1024; /* products a sum: fp32's rounding hides bf16's from here on */
using Stem = kp::Stem<IMAGES, X_DIM1, MADE[0], X_DIM2, CONV1_WEIGHT_DIM2, Narrow>;
static_assert(Stem::OUT == S1, "a quarter of the side");
template <class C>
using TileOf = std::conditional_t<(C::FILTERS <= 64), Narrow,
                                  std::conditional_t<(C::TERMS < LONG), Wide, Long>>;

template <int KERNEL, int CHANNELS, int FILTERS, int IN, int STRIDE = 1>
using Conv = kp::Convolution<1, CHANNELS, FILTERS, 1, kp::Axis<IN, KERNEL, STRIDE, KERNEL / 2>,
                             kp::Axis<IN, KERNEL, STRIDE, KERNEL / 2>, kp::Axis<IMAGES, 1>>;

/* C, whose depth is summed in PARTS batches, so that there is a tile for each of an H200's 66 pairs
 * of multiprocessors. SHARE: slabs of a batch; C's EACH must not be hidden, Patches reads it. */
template <class C> struct Parts : C {
    static constexpr int TILES = (int)kp::tiles_of<C, TileOf<C>>(),
                         MOST = TILES < 66 ? 66 / TILES : 1;
    static constexpr int SHARE = (C::SLABS + MOST - 1) / MOST;
    static constexpr int PARTS = (C::SLABS + SHARE - 1) / SHARE;
    static constexpr int BATCHES = PARTS, B_BATCHES = 1;
    static constexpr long long PART = C::ROWS * C::FILTERS; /* words */
    static constexpr size_t WORDS = (size_t)PARTS * PART;
    static __device__ __forceinline__ int group(int) { return 0; }
    static __device__ __forceinline__ int first_slab(int batch, int, int, int, int) {
        return batch * SHARE;
    }
    static __device__ __forceinline__ int end_slab(int batch, int, int, int, int) {
        return min((batch + 1) * SHARE, C::SLABS);
    }
};

/* The pixels of a 1 x 1 convolution of stride 1. A slab comes in two pieces: of one the compiler
 * would make several slabs at a time, which spills. */
template <class C> struct Pixels : kp::Across<(int)C::ROWS, C::CHANNELS> {
    using Whole = kp::Across<(int)C::ROWS, C::CHANNELS>;

    __device__ __forceinline__ void fetch(const typename Whole::Place &p, uint32_t to,
                                          int slab) const {
        constexpr int STEP = Whole::FOURS ? 2 : 1, HALF = kp::TILE_K / 2;
        const float *from = p.from + (long long)slab * kp::TILE_K * C::ROWS;
        to += Whole::word(Whole::own_row(), Whole::own_k()) * 4;
#pragma unroll 1
        for (int half = 0; half < 2; half++, from += HALF * C::ROWS, to += Whole::word(0, HALF) * 4)
#pragma unroll
            for (int k = 0; k < HALF; k += STEP)
#pragma unroll
                for (int r = 0; r < (Whole::FOURS ? 1 : kp::TILE_M); r += 128)
                    kp::copy_async<Whole::FOURS ? 16 : 4>(to + Whole::word(r, k) * 4,
                                                          from + k * C::ROWS + r,
                                                          kp::whole_tiles(C::ROWS) || r < p.left);
    }
};

/* The convolutions of a block; FIRST: of its stage. */
template <int STAGE, bool FIRST> struct Block {
    static constexpr int FROM = MADE[FIRST ? STAGE - 1 : STAGE], W = WIDTH[STAGE];
    static constexpr int IN = SIDE[FIRST ? STAGE - 1 : STAGE], STRIDE = FIRST && STAGE > 1 ? 2 : 1;
    static_assert(FROM % kp::TILE_K == 0 && W % (STAGE > 1 ? 128 : 64) == 0 &&
                      MADE[STAGE] % 128 == 0,
                  "whole slabs, whole tiles");
    using One = Conv<1, FROM, W, IN>;
    using Two = Conv<3, W, W, IN, STRIDE>;
    using Three = Conv<1, W, MADE[STAGE], SIDE[STAGE]>;
    using Beside = Conv<1, FROM, MADE[STAGE], IN, STRIDE>; /* of first blocks */
    static constexpr size_t FLOATS =
        std::max({Parts<One>::WORDS, Parts<Two>::WORDS, Parts<Three>::WORDS,
                  FIRST ? Parts<Beside>::WORDS : 0});
};
template <int STAGE>
constexpr size_t STAGE_FLOATS = std::max(Block<STAGE, true>::FLOATS, Block<STAGE, false>::FLOATS);

/* ---- the network ---- */

constexpr size_t split_floats(int stage) { /* twice the stage's filters */
    const size_t from = MADE[stage - 1], w = WIDTH[stage], made = MADE[stage], deep = DEEP[stage];
    return 2 * (from * (w + made) + made * w * (2 * deep - 1) + 9 * w * w * deep);
}
constexpr size_t SPLIT = split_floats(1) + split_floats(2) + split_floats(3) + split_floats(4);
constexpr size_t PLANES = std::max({(size_t)MADE[1] * values(1), (size_t)MADE[2] * values(2),
                                    (size_t)MADE[3] * values(3), (size_t)MADE[4] * values(4),
                                    (size_t)WIDTH[2] * values(1), (size_t)MADE[0] * values(1)});

struct Scratch {
    Stem::Scratch stem;
    alignas(16) float blocks[SPLIT];
    alignas(16) float parts[std::max({STAGE_FLOATS<1>, STAGE_FLOATS<2>, STAGE_FLOATS<3>,
                                      STAGE_FLOATS<4>})];
    alignas(16) float wide[2][PLANES], between[2][PLANES], means[IMAGES * FEATURES];
};

struct Net {
    const kp::NormedLayer *layers;
    Scratch *s;
    cudaStream_t stream;
    float *split;                /* where the next filters go */
    const float *blocks[LAYERS]; /* split filters */
};

/* Filters of a stage that tiles of one kind read; a launch splits them. */
constexpr int MOST = 3 * std::max({DEEP[1], DEEP[2], DEEP[3], DEEP[4]}) + 1;
struct Batch {
    kp::AllFilters<MOST> all = {};
    int count = 0, most = 0; /* filters, and blocks that the largest has */

    template <class T> void launch(cudaStream_t stream) const {
        if (count)
            kp::split_all_kernel<T, false>
                <<<dim3((unsigned)most, (unsigned)count), 256, 0, stream>>>(all);
    }
};
template <class C> static void take(Net &net, int layer, Batch (&to)[3]) {
    using T = TileOf<C>;
    constexpr bool NARROW = std::is_same<T, Narrow>::value, WIDE = std::is_same<T, Wide>::value;
    Batch &own = to[NARROW ? 0 : WIDE ? 1 : 2];
    own.all.of[own.count++] = {net.layers[layer].filters,
                               nullptr,
                               net.split,
                               C::CHANNELS,
                               C::KERNEL,
                               C::FILTERS,
                               C::FILTERS};
    own.most = std::max(own.most, C::FILTERS / T::N * C::SLABS);
    net.blocks[layer] = net.split;
    net.split += (size_t)2 * C::FILTERS * C::CHANNELS * C::KERNEL;
}
template <int STAGE> static void split_filters(Net &net, int layer) {
    using B = Block<STAGE, true>;
    using Other = Block<STAGE, false>;
    Batch batches[3];
    take<typename B::Beside>(net, layer + 3, batches);
    for (int i = 0; i < DEEP[STAGE]; i++) {
        if (i == 0)
            take<typename B::One>(net, layer, batches),
                take<typename B::Two>(net, layer + 1, batches);
        else
            take<typename Other::One>(net, layer, batches),
                take<typename Other::Two>(net, layer + 1, batches);
        take<typename B::Three>(net, layer + 2, batches);
        layer += i ? 3 : 4;
    }
    batches[0].launch<Narrow>(net.stream);
    batches[1].launch<Wide>(net.stream);
    batches[2].launch<Long>(net.stream);
}

/* Enqueues to = norm of the layer's convolution of x + residual, or RELU of that; MEANS: `to` is
 * the means of so many images. */
template <class C, bool RELU = true, int MEANS = 0>
static void convolve(const Net &net, int layer, const float *x, const float *residual, float *to) {
    using S = Parts<C>;
    const kp::NormedLayer &own = net.layers[layer];
    const kp::StoreColumns<kp::Same, C::ROWS, C::FILTERS, S::PART> store = {{}, net.s->parts};
    if constexpr (C::KERNEL == 1 && C::AREA == C::OUT_AREA)
        kp::multiply<S, TileOf<C>>(Pixels<C>{{{}, x}}, net.blocks[layer], store, net.stream);
    else
        kp::multiply<S, TileOf<C>>(kp::Patches<S>{{}, x}, net.blocks[layer], store, net.stream);
    kp::part_norm<(int)C::ROWS, S::PARTS, S::PARTS, MEANS>(
        {net.s->parts, own, own, RELU ? C::FILTERS : 0, residual, to}, C::FILTERS, net.stream);
}

/* Enqueues a block whose first layer is `layer`: from x to `to`, which may be x unless FIRST; or to
 * the MEANS of so many images. */
template <int STAGE, bool FIRST, int MEANS = 0>
static void block(const Net &net, int layer, const float *x, float *to) {
    using B = Block<STAGE, FIRST>;
    float(&between)[2][PLANES] = net.s->between;
    if constexpr (FIRST) convolve<typename B::Beside, false>(net, layer + 3, x, nullptr, to);
    convolve<typename B::One>(net, layer, x, nullptr, between[0]);
    convolve<typename B::Two>(net, layer + 1, between[0], nullptr, between[1]);
    convolve<typename B::Three, true, MEANS>(net, layer + 2, between[1], FIRST ? to : x, to);
}

/* Enqueues a stage, the last to the means; returns the layer behind it. */
template <int STAGE> static int stage(Net &net, int layer) {
    constexpr int BLOCKS = DEEP[STAGE] - (STAGE == 4); /* with results of their own */
    float *x = net.s->wide[(STAGE + 1) % 2], *to = net.s->wide[STAGE % 2];
    split_filters<STAGE>(net, layer);
    block<STAGE, true>(net, layer, x, to);
    layer += 4;
    for (int i = 1; i < BLOCKS; i++, layer += 3) block<STAGE, false>(net, layer, to, to);
    if constexpr (STAGE == 4) block<STAGE, false, IMAGES>(net, layer, to, net.s->means);
    return layer;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Scratch *s = (Scratch *)scratch;
    Net net = {(const kp::NormedLayer *)&in->conv1_weight, s, stream, s->blocks, {}};
    kp::begin_network<Stem>(in->x, net.layers[0], s->wide[0], s->stem, stream);
    const int second = stage<1>(net, 1), third = stage<2>(net, second);
    stage<4>(net, stage<3>(net, third));
    kp::few_rows<IMAGES, FEATURES, CLASSES>(s->means, in->fc_weight, kp::AddBias{in->fc_bias},
                                            out->out, stream);
}

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}
