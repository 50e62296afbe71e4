// provenance: shipped
/* MobileNet with batch norms by the batch's own statistics: x [10][3][224][224] -> [10][1000].
 *
 * Idea: activations are [channel][image][pixel], so a 1 x 1 convolution is one product of pixels by
 * filters (pointwise.cuh), whose depth is split where pixels are few; all filters are split by one
 * kernel at the start. Between two products stands one kernel, which has a channel a block
 * (channel_depthwise.cuh): it adds the parts, normalises, ReLU, makes the depthwise convolution,
 * whose results are in registers, normalises and ReLU. The first depthwise convolution has too few
 * channels: it has a plane a block, and channel_norm.cuh's statistics before and after it.
 * Floor: 11.4 GFLOP of products, three passes in TF32, 69 us; 0.4 GiB moved, 90 us; 32 kernels wait
 * for each other.
 * Measured: not yet. */
#include "task.h"
#include <algorithm>
#include "channel_depthwise.cuh"
#include "convolve.cuh"
#include "few_rows.cuh"
#include "pointwise.cuh"

constexpr int IMAGES = X_DIM0, CLASSES = FC_WEIGHT_DIM0, FEATURES = FC_WEIGHT_DIM1;
static_assert(X_DIM2 == X_DIM3, "squares");

/* Layers of a depthwise and a 1 x 1 convolution, 1 to 13; layer 0 is the first convolution. */
constexpr int LAYERS = 13;
constexpr int WIDTH[] = {MODEL_0_0_WEIGHT_DIM0,  MODEL_1_3_WEIGHT_DIM0,  MODEL_2_3_WEIGHT_DIM0,
                         MODEL_3_3_WEIGHT_DIM0,  MODEL_4_3_WEIGHT_DIM0,  MODEL_5_3_WEIGHT_DIM0,
                         MODEL_6_3_WEIGHT_DIM0,  MODEL_7_3_WEIGHT_DIM0,  MODEL_8_3_WEIGHT_DIM0,
                         MODEL_9_3_WEIGHT_DIM0,  MODEL_10_3_WEIGHT_DIM0, MODEL_11_3_WEIGHT_DIM0,
                         MODEL_12_3_WEIGHT_DIM0, MODEL_13_3_WEIGHT_DIM0}; /* channels made */
constexpr int STRIDE[] = {2, 1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1};
constexpr int side(int layer) { /* of the images made */
    return ((layer ? side(layer - 1) : X_DIM2) - 1) / STRIDE[layer] + 1;
}
constexpr int values(int layer) { /* of a channel */
    return IMAGES * side(layer) * side(layer);
}
static_assert(WIDTH[LAYERS] == FEATURES, "the last layer makes the features");

/* A layer as struct Inputs has it: both convolutions with their norms. */
struct Weights {
    const float *depthwise;
    kp::Affine depthwise_norm;
    const float *filters;
    kp::Affine norm;
};
static_assert(sizeof(struct Inputs) == (1 + 3 + 6 * LAYERS + 2) * sizeof(float *), "no others");

using Tile = kp::PointwiseTile;
using First = kp::Convolution<IMAGES, X_DIM1, WIDTH[0], 1, kp::Axis<X_DIM3, 3, 2, 1>,
                              kp::Axis<X_DIM2, 3, 2, 1>>;
using FirstParts = kp::ProductParts<First>;
using Plane = kp::ChannelDepthwise<1, side(0), 3, STRIDE[1]>;
using PlaneParts = kp::RunParts<WIDTH[0], Plane::RESULTS, Plane::RESULTS, IMAGES>;
template <int SIDE, int STRIDE> struct Depthwise : kp::ChannelDepthwise<IMAGES, SIDE, 3, STRIDE> {
    using Of = kp::ChannelDepthwise<IMAGES, SIDE, 3, STRIDE>;
    /* Those with stride 2 have so few channels that more at once would only cost registers. */
    static constexpr int BLOCKS = STRIDE > 1 ? 1 : Of::BLOCKS;
};
template <int LAYER> using Product = kp::Pointwise<values(LAYER), WIDTH[LAYER], WIDTH[LAYER - 1]>;

/* What scratch holds at most. */
struct Most : kp::PointwiseMost {
    size_t operand = 0;
    constexpr Most() {
        for (int i = 1; i <= LAYERS; i++) {
            take(values(i), WIDTH[i], WIDTH[i - 1]);
            operand = std::max(operand, (size_t)kp::operand_pitch(values(i)) *
                                            kp::operand_channels(WIDTH[i - 1]));
        }
        made = std::max(made, (size_t)First::ROWS * WIDTH[0]);
        centred = std::max(centred, (size_t)FirstParts::COUNT * WIDTH[0]);
    }
};
constexpr Most MOST;

struct Scratch {
    alignas(16) char first_split[kp::split_bytes<First, Tile>()];
    alignas(16) float words[MOST.words];
    alignas(16) float made[MOST.made], operand[MOST.operand];
    float means[IMAGES * FEATURES];
    kp::ChannelNorm norm[2][WIDTH[0]];
    kp::Centred parts[MOST.centred], plane_parts[PlaneParts::COUNT * WIDTH[0]];
};

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

struct Net {
    const Weights *layers; /* layers[i]: of layer i + 1 */
    Scratch *s;
    cudaStream_t stream;
    const float *words[LAYERS + 1]; /* of filters */
};

static void split_filters(Net &net) {
    kp::AllFilters<LAYERS> all = {};
    float *to = net.s->words;
    for (int i = 1; i <= LAYERS; i++) {
        const int from = WIDTH[i - 1], filters = WIDTH[i];
        all.of[i - 1] = {net.layers[i - 1].filters, nullptr, to, from, 1, filters, filters};
        net.words[i] = to;
        to += (size_t)all.blocks<Tile>(from, 1, filters) * Tile::B_WORDS;
    }
    kp::split_all<Tile, false>(all, net.stream);
}

/* Enqueues the first convolution, and layer 1. */
static void first_layers(const Net &net, const float *x, const float *filters,
                         const kp::Affine &norm) {
    Scratch *s = net.s;
    const Weights &own = net.layers[0];
    using Store = kp::StoreColumns<kp::Same, First::ROWS, First::COLUMNS>;
    const kp::WithMoments<First, Store> store = {{{}, s->made}, s->parts};
    kp::product<First, Tile>(kp::Patches<First>{{}, x}, kp::Filters<First>{filters}, store,
                             s->first_split, net.stream);
    kp::join_channels<FirstParts>(s->parts, norm.weight, norm.bias, kp::BATCH_NORM_EPS, s->norm[0],
                                  net.stream);
    kp::depthwise_plane_kernel<Plane, WIDTH[0], kp::Relu>
        <<<dim3(WIDTH[0], IMAGES), Plane::THREADS, 0, net.stream>>>(
            s->made, s->norm[0], own.depthwise, s->operand, s->plane_parts);
    kp::join_channels<PlaneParts>(s->plane_parts, own.depthwise_norm.weight,
                                  own.depthwise_norm.bias, kp::BATCH_NORM_EPS, s->norm[1],
                                  net.stream);
    const kp::MappedAcross<kp::MapNormAct<kp::Relu>, values(1), WIDTH[0]> operand = {
        {{}, s->operand}, {s->norm[1]}};
    Product<1>::multiply(operand, net.words[1], s->made, s->parts, net.stream);
}

/* Enqueues layers LAYER to the last, from what the one before made. */
template <int LAYER> static void layers(const Net &net) {
    using D = Depthwise<side(LAYER - 1), STRIDE[LAYER]>;
    using P = Product<LAYER>;
    Scratch *s = net.s;
    const Weights &own = net.layers[LAYER - 1];
    kp::depthwise_channel_kernel<D, Product<LAYER - 1>, kp::operand_pitch(D::RESULTS), kp::Relu>
        <<<kp::operand_channels(WIDTH[LAYER - 1]), D::THREADS, 0, net.stream>>>(
            s->made, s->parts, net.layers[LAYER - 2].norm, own.depthwise, own.depthwise_norm,
            s->operand);
    P::multiply(typename P::Operand{{}, s->operand}, net.words[LAYER], s->made, s->parts,
                net.stream);
    if constexpr (LAYER < LAYERS) layers<LAYER + 1>(net);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    using Last = Product<LAYERS>;
    Scratch *s = (Scratch *)scratch;
    Net net = {(const Weights *)&in->model_1_0_weight, s, stream, {}};
    split_filters(net);
    first_layers(net, in->x, in->model_0_0_weight, {in->model_0_1_weight, in->model_0_1_bias});
    layers<2>(net);
    kp::means_channel_kernel<Last, IMAGES, kp::Relu>
        <<<FEATURES, kp::threads_for(Last::ROWS), 0, stream>>>(s->made, net.layers[LAYERS - 1].norm,
                                                               s->means);
    kp::few_rows<IMAGES, FEATURES, CLASSES>(s->means, in->fc_weight, kp::AddBias{in->fc_bias},
                                            out->out, stream);
}
