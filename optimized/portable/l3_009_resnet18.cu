// provenance: shipped
/* ResNet-18 with batch norms by the batch's own statistics: x [2][3][224][224] -> [2][1000].
 *
 * Idea: every convolution is a product (product.cuh) whose depth is split, so that 132
 * multiprocessors have work; the norm's kernel, which has a channel a block, adds the parts,
 * normalises, adds the residual, ReLU, and stores. Activations are [channel][image][pixel], so that
 * a channel is one run and images are an axis of a convolution. Where filters are few, patches are
 * the operand A; all these filters are split by one kernel at the start. From 256 filters on the
 * filters are the larger operand and A, and patches are gathered and split. The 1 x 1 convolution
 * beside a block's first 3 x 3 one is more columns of that: it reads the tap in the middle.
 * Floor: 7.3 GFLOP of products, three passes in TF32, 52 us; 46 MiB read, 10 us; but 44 kernels
 * wait for each other, and each takes 2 us and more.
 * Measured: 379.7 us on an H200, 14 % of the products' floor; most of it is waiting. */
#include "task.h"
#include <algorithm>
#include "few_rows.cuh"
#include "residual.cuh"
#include "split_depth.cuh"

constexpr int IMAGES = X_DIM0, FEATURES = FC_WEIGHT_DIM1, CLASSES = FC_WEIGHT_DIM0;
static_assert(X_DIM2 == X_DIM3, "squares");

constexpr int halved(int side) { /* by stride 2, whatever the odd filter */
    return (side - 1) / 2 + 1;
}

/* Stages 1 to 4: filters, and the side of their images; stage 0 is the first convolution. */
constexpr int WIDTH[] = {CONV1_WEIGHT_DIM0, LAYER1_0_CONV1_WEIGHT_DIM0, LAYER2_0_CONV1_WEIGHT_DIM0,
                         LAYER3_0_CONV1_WEIGHT_DIM0, LAYER4_0_CONV1_WEIGHT_DIM0};
constexpr int S1 = halved(halved(X_DIM2)), S2 = halved(S1), S3 = halved(S2);
constexpr int SIDE[] = {0, S1, S2, S3, halved(S3)};
__host__ __device__ constexpr int values(int stage) { /* of a channel */
    return IMAGES * SIDE[stage] * SIDE[stage];
}
static_assert(WIDTH[0] == WIDTH[1] && WIDTH[4] == FEATURES, "one follows the other");

/* One block of a cluster: neighbouring tiles would often be beyond the last row. */
using Tile = kp::Tile<64, kp::Tf32Rest, 1>;

using Stem = kp::Stem<IMAGES, X_DIM1, WIDTH[0], X_DIM2, CONV1_WEIGHT_DIM2, Tile>;
static_assert(Stem::OUT == S1, "a quarter of the side");

constexpr int LAYERS = 20;
static_assert(sizeof(struct Inputs) == (1 + 3 * LAYERS + 2) * sizeof(float *), "x, layers, fc");

/* ---- convolutions with the patches as operand A ---- */

/* 3 x 3; a batch sums EACH slabs of the depth, PARTS batches all. WITH: the columns from FILTERS on
 * are of the 1 x 1 convolution. */
template <int CHANNELS, int FILTERS_, int IN, int STRIDE, int EACH, bool WITH>
struct Conv : kp::Convolution<1, CHANNELS, FILTERS_, 1, kp::Axis<IN, 3, STRIDE, 1>,
                              kp::Axis<IN, 3, STRIDE, 1>, kp::Axis<IMAGES, 1>> {
    using Of = kp::Convolution<1, CHANNELS, FILTERS_, 1, kp::Axis<IN, 3, STRIDE, 1>,
                               kp::Axis<IN, 3, STRIDE, 1>, kp::Axis<IMAGES, 1>>;
    static_assert(CHANNELS % kp::TILE_K == 0 && FILTERS_ % 32 == 0, "whole slabs of a tap");
    static constexpr int COLUMNS = (WITH ? 2 : 1) * FILTERS_, A_TAP = CHANNELS / kp::TILE_K;
    static constexpr int PARTS = (Of::SLABS + EACH - 1) / EACH;
    static constexpr int OTHER_PARTS = WITH ? (A_TAP + EACH - 1) / EACH : 0; /* of the 1 x 1 */
    static constexpr int BATCHES = PARTS, B_BATCHES = 1;
    static_assert(!WITH || FILTERS_ % Tile::N == 0, "a tile is of one convolution");
    static __device__ __forceinline__ int group(int) { return 0; }
    static __device__ __forceinline__ int slab(int batch, int column) {
        return column < FILTERS_ ? min(batch * EACH, Of::SLABS)
                                 : 4 * A_TAP + min(batch * EACH, A_TAP);
    }
    static __device__ __forceinline__ int first_slab(int batch, int, int, int column, int) {
        return slab(batch, column);
    }
    static __device__ __forceinline__ int end_slab(int batch, int, int, int column, int) {
        return slab(batch + 1, column);
    }
};

/* Parts as [part][column][row]; what a convolution has no slabs for is not stored. */
template <class C>
struct StoreParts
    : kp::StoreColumns<kp::Same, C::ROWS, C::COLUMNS, (long long)C::ROWS * C::COLUMNS> {
    using Base = kp::StoreColumns<kp::Same, C::ROWS, C::COLUMNS, (long long)C::ROWS * C::COLUMNS>;
    template <class P>
    __device__ __forceinline__ void tile(P &part, int batch, int row, int column) const {
        if (column < C::FILTERS || batch < C::OTHER_PARTS) Base::tile(part, batch, row, column);
    }
};

/* ---- convolutions with the filters as operand A ---- */

/* The patches of a 3 x 3 convolution as operand B: a column a pixel, as deep as filters are long.
 */
template <int SIDE> struct PatchColumns {
    static constexpr bool ALONG_DEPTH = false;
    const float *x;
    __device__ __forceinline__ float at(int, int column, int slab, int k) const {
        const int depth = slab * kp::TILE_K + k, image = column / (SIDE * SIDE);
        const int y = column / SIDE % SIDE + depth % 9 / 3 - 1, x0 = column % SIDE + depth % 3 - 1;
        if (image >= IMAGES || (unsigned)y >= (unsigned)SIDE || (unsigned)x0 >= (unsigned)SIDE)
            return 0.0f;
        return __ldg(x + ((depth / 9 * IMAGES + image) * SIDE + y) * SIDE + x0);
    }
};
template <int STAGE, int EACH>
using Deep = kp::SplitDepth<WIDTH[STAGE], values(STAGE), WIDTH[STAGE] * 9,
                            (WIDTH[STAGE] * 9 / kp::TILE_K + EACH - 1) / EACH>;

/* ---- the network ---- */

/* What a stage's first convolution is, and its others; slabs that a batch sums: so that tiles are
 * about as many as multiprocessors. */
constexpr int EACH[] = {0, 4, 4, 4, 5}, EACH_FIRST[] = {0, 4, 2, 3, 5};
template <int STAGE>
using Begin = Conv<WIDTH[STAGE - 1], WIDTH[STAGE], SIDE[(STAGE > 1) ? STAGE - 1 : 1],
                   (STAGE > 1) ? 2 : 1, EACH_FIRST[STAGE], (STAGE > 1)>;
template <int STAGE>
using Further = Conv<WIDTH[STAGE], WIDTH[STAGE], SIDE[STAGE], 1, EACH[STAGE], false>;

template <class C> constexpr size_t floats_of() { /* of all parts */
    return (size_t)C::BATCHES * C::ROWS * C::COLUMNS;
}
template <int STAGE> constexpr size_t floats_of_stage() {
    return std::max(floats_of<Begin<STAGE>>(), floats_of<Deep<STAGE, EACH[STAGE]>>());
}
constexpr size_t PARTS =
    std::max({floats_of<Further<1>>(), floats_of<Begin<1>>(), floats_of<Begin<2>>(),
              floats_of<Further<2>>(), floats_of_stage<3>(), floats_of_stage<4>()});
constexpr size_t PLANE = (size_t)WIDTH[1] * values(1); /* floats that any stage's results have */
static_assert(PLANE >= 2 * (size_t)WIDTH[2] * values(2) && PLANE >= 2 * WIDTH[4] * values(4) &&
                  PLANE >= 2 * WIDTH[3] * values(3),
              "the first has the most");
constexpr int SPLITS = 10;
template <class C> constexpr size_t SPLIT = kp::split_bytes<C, Tile>();
constexpr size_t BLOCKS = SPLIT<Begin<1>> + 3 * SPLIT<Further<1>> + SPLIT<Begin<2>> +
                          3 * SPLIT<Further<2>> + SPLIT<Begin<3>> + SPLIT<Begin<4>>;

struct Scratch {
    Stem::Scratch stem;
    alignas(16) char split[std::max(kp::split_bytes<Deep<3, EACH[3]>, Tile>(),
                                    kp::split_bytes<Deep<4, EACH[4]>, Tile>())];
    alignas(16) float blocks[BLOCKS / sizeof(float)], parts[PARTS];
    alignas(16) float plane[3][PLANE], means[IMAGES * FEATURES];
};

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

struct Net {
    const kp::NormedLayer *layers;
    Scratch *s;
    cudaStream_t stream;
    const float *blocks[LAYERS]; /* of layers whose filters are the operand B */
};

/* Enqueues the splitting of the filters that are the operand B. */
static void split_filters(Net &net) {
    struct Row {
        int layer, beside; /* and the 1 x 1 convolution beside it */
        int channels, filters;
    };
    const Row table[SPLITS] = {
        {1, 0, WIDTH[1], WIDTH[1]},   {2, 0, WIDTH[1], WIDTH[1]}, {3, 0, WIDTH[1], WIDTH[1]},
        {4, 0, WIDTH[1], WIDTH[1]},   {5, 7, WIDTH[1], WIDTH[2]}, {6, 0, WIDTH[2], WIDTH[2]},
        {8, 0, WIDTH[2], WIDTH[2]},   {9, 0, WIDTH[2], WIDTH[2]}, {10, 12, WIDTH[2], WIDTH[3]},
        {15, 17, WIDTH[3], WIDTH[4]},
    };
    kp::AllFilters<SPLITS> all = {};
    float *to = net.s->blocks;
    for (int i = 0; i < SPLITS; i++) {
        const Row &r = table[i];
        const int columns = r.filters * (r.beside ? 2 : 1);
        all.of[i] = {net.layers[r.layer].filters,
                     r.beside ? net.layers[r.beside].filters : nullptr,
                     to,
                     r.channels,
                     9,
                     r.filters,
                     columns};
        net.blocks[r.layer] = to;
        to += (size_t)all.blocks<Tile>(r.channels, 9, columns) * Tile::B_WORDS;
    }
    kp::split_all<Tile, false>(all, net.stream);
}

/* Enqueues a layer: to = relu(norm of its convolution of x + residual); with C::WITH the norm of
 * the 1 x 1 one follows `to`. */
template <int STAGE, class C>
static void shallow(const Net &net, int layer, const float *x, const float *residual, float *to) {
    constexpr int WITH = C::COLUMNS > WIDTH[STAGE] ? 2 : 0;
    kp::multiply<C, Tile>(kp::Patches<C>{{}, x}, net.blocks[layer],
                          StoreParts<C>{{{}, net.s->parts}}, net.stream);
    kp::part_norm<values(STAGE), C::PARTS, C::OTHER_PARTS>(
        {net.s->parts, net.layers[layer], net.layers[layer + WITH], WIDTH[STAGE], residual, to},
        C::COLUMNS, net.stream);
}

/* The same with the filters as operand A; MEANS: `to` is the means of so many images. */
template <int STAGE, int MEANS = 0>
static void deep(const Net &net, int layer, const float *x, const float *residual, float *to) {
    using D = Deep<STAGE, EACH[STAGE]>;
    constexpr int FILTERS = WIDTH[STAGE], VALUES = values(STAGE);
    const kp::NormedLayer &own = net.layers[layer];
    const kp::Along<FILTERS, FILTERS * 9> filters = {{}, own.filters};
    const kp::StoreRows<kp::Same, FILTERS, VALUES, (long long)FILTERS *VALUES> store = {
        {}, net.s->parts};
    kp::product<D, Tile>(filters, PatchColumns<SIDE[STAGE]>{x}, store, net.s->split, net.stream);
    kp::part_norm<VALUES, D::BATCHES, D::BATCHES, MEANS>(
        {net.s->parts, own, own, FILTERS, residual, to}, FILTERS, net.stream);
}

/* Enqueues a stage whose first layer is `layer`: both blocks, from x to `to`, the last to means.
 * `between`: what lies between, and beside it. */
template <int STAGE>
static void stage(const Net &net, int layer, const float *x, float *between, float *to) {
    constexpr bool WITH = STAGE > 1, DEEP = STAGE > 2;
    float *shortcut = between + WIDTH[STAGE] * values(STAGE);
    const int next = layer + (WITH ? 3 : 2);
    shallow<STAGE, Begin<STAGE>>(net, layer, x, nullptr, between);
    if constexpr (DEEP) {
        deep<STAGE>(net, layer + 1, between, shortcut, to);
        deep<STAGE>(net, next, to, nullptr, between);
        deep<STAGE, STAGE == 4 ? IMAGES : 0>(net, next + 1, between, to,
                                             STAGE == 4 ? net.s->means : to);
    } else {
        shallow<STAGE, Further<STAGE>>(net, layer + 1, between, WITH ? shortcut : x, to);
        shallow<STAGE, Further<STAGE>>(net, next, to, nullptr, between);
        shallow<STAGE, Further<STAGE>>(net, next + 1, between, to, to);
    }
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Scratch *s = (Scratch *)scratch;
    Net net = {(const kp::NormedLayer *)&in->conv1_weight, s, stream, {}};
    split_filters(net);
    kp::begin_network<Stem>(in->x, net.layers[0], s->plane[0], s->stem, stream);
    stage<1>(net, 1, s->plane[0], s->plane[1], s->plane[2]);
    stage<2>(net, 5, s->plane[2], s->plane[1], s->plane[0]);
    stage<3>(net, 10, s->plane[0], s->plane[1], s->plane[2]);
    stage<4>(net, 15, s->plane[2], s->plane[1], s->plane[0]);
    kp::few_rows<IMAGES, FEATURES, CLASSES>(s->means, in->fc_weight, kp::AddBias{in->fc_bias},
                                            out->out, stream);
}
