// provenance: shipped
/* ResNet-101 with batch norms by the batch's own statistics: x [10][3][224][224] -> [10][1000].
 *
 * Idea: activations are [channel][image][pixel], so that a channel is one run, a 1 x 1 convolution
 * is a plain product of pixels by filters, and images are an axis of other convolutions. Every
 * convolution is a product (product.cuh) whose depth is in as many parts as give all
 * multiprocessors work; the norm's kernel, which has a channel a block, adds the parts, normalises,
 * adds the residual, ReLU, and stores. A stage's filters are split by one kernel or two before it.
 * Sums of 1024 products and more have their rests in bf16. (For sm_90a one product, of those beside
 * the last stage's first block, spills 20 bytes.)
 * Floor: 157 GFLOP of products, 617 us; 0.18 GiB of weights, written split and read again, 0.2 ms;
 * 220 kernels wait for each other, and each takes 2 us and more.
 * Measured on an H200: 3181 us, 19 % of the floor; 2300 predicted. */
#include "task.h"
#include <algorithm>
#include "activations.cuh"
#include "convolve.cuh"
#include "extremes.cuh"
#include "few_rows.cuh"
#include "whole_channels.cuh"

constexpr int IMAGES = X_DIM0, FEATURES = FC_WEIGHT_DIM1, CLASSES = FC_WEIGHT_DIM0;
constexpr double EPS = 1e-5;
static_assert(X_DIM2 == X_DIM3, "squares");

__host__ __device__ constexpr int halved(int side) { /* by stride 2, whatever the odd filter */
    return (side - 1) / 2 + 1;
}

/* Layers are a convolution with its norm, three tensors: the first one; those of blocks, three a
 * block; one beside each stage's first block. */
constexpr int LAYERS = sizeof(struct Inputs) / sizeof(float *) / 3 - 1;
static_assert(sizeof(struct Inputs) == (1 + 3 * LAYERS + 2) * sizeof(float *), "x, layers, fc");

/* Stages 1 to 4: blocks (23 in the third), filters of a block's first two convolutions, channels
 * that it makes, and the side of its images; stage 0 is the first convolution with its pool. */
constexpr int DEEP[] = {0, 3, 4, (LAYERS - 5) / 3 - 10, 3};
constexpr int WIDTH[] = {0, LAYER1_0_CONV1_WEIGHT_DIM0, LAYER2_0_CONV1_WEIGHT_DIM0,
                         LAYER3_0_CONV1_WEIGHT_DIM0, LAYER4_0_CONV1_WEIGHT_DIM0};
constexpr int MADE[] = {CONV1_WEIGHT_DIM0, LAYER1_0_CONV3_WEIGHT_DIM0, LAYER2_0_CONV3_WEIGHT_DIM0,
                        LAYER3_0_CONV3_WEIGHT_DIM0, LAYER4_0_CONV3_WEIGHT_DIM0};
constexpr int S0 = halved(X_DIM2), S1 = halved(S0), S2 = halved(S1), S3 = halved(S2);
constexpr int SIDE[] = {S1, S1, S2, S3, halved(S3)};
constexpr int values(int stage) { /* of a channel */
    return IMAGES * SIDE[stage] * SIDE[stage];
}
static_assert(MADE[4] == FEATURES && values(1) % 2 == 0 && values(2) % 2 == 0 &&
                  values(3) % 2 == 0 && values(4) % 2 == 0,
              "values of a channel are whole float2");

/* A convolution with its norm, as they follow each other in struct Inputs; in a stage's first block
 * the one beside is the last. */
struct Weights {
    const float *filters, *weight, *bias;
};

/* ---- convolutions ---- */

using Narrow = kp::Tile<64, kp::Tf32Rest>;
using Wide = kp::Tile<128, kp::Tf32Rest>;
using Long = kp::Tile<128, kp::Bf16Rest>;
constexpr int LONG = 1024; /* products a sum: fp32's rounding hides bf16's from here on */
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

/* ---- norms ---- */

struct Norm { /* its kernel's parameters */
    const float *parts, *weight, *bias;
    const float *residual; /* or null */
    float *out;
    long long relu;
};

/* out[channel] = norm of the sum of the channel's parts + residual, or relu of that. A block a
 * channel. */
__host__ __device__ constexpr int threads_for(int values) {
    return values > 16384 ? 1024 : values > 4096 ? 512 : values > 1024 ? 256 : 128;
}
template <int VALUES, int PARTS>
__global__ void __launch_bounds__(threads_for(VALUES), 1) norm_kernel(Norm n) {
    constexpr int THREADS = threads_for(VALUES), TWOS = VALUES / 2;
    constexpr int EACH = (TWOS + THREADS - 1) / THREADS;
    constexpr int TOGETHER = EACH > 8 ? 1 : EACH > 4 ? 2 : EACH > 2 ? 4 : 8;
    const long long channel = blockIdx.x, all = gridDim.x;
    const float2 *from = (const float2 *)n.parts + channel * TWOS;
    float v[2 * EACH] = {};
#pragma unroll TOGETHER
    for (int p = 0; p < PARTS; p++)
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int at = threadIdx.x + i * THREADS;
            if (at >= TWOS) break;
            const float2 part = __ldg(from + p * all * TWOS + at);
            v[2 * i] += part.x, v[2 * i + 1] += part.y;
        }
    const auto inside = [](int i) { return (int)threadIdx.x + i / 2 * THREADS < TWOS; };
    const kp::ChannelNorm norm = kp::norm_of_block<THREADS, VALUES>(
        v, inside, __ldg(n.weight + channel), __ldg(n.bias + channel), EPS);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int at = threadIdx.x + i * THREADS;
        if (at >= TWOS) break;
        float2 y = make_float2(norm(v[2 * i]), norm(v[2 * i + 1]));
        if (n.residual) {
            const float2 r = ((const float2 *)n.residual)[channel * TWOS + at]; /* may be out */
            y.x += r.x, y.y += r.y;
        }
        if (n.relu) y = make_float2(kp::Relu()(y.x), kp::Relu()(y.y));
        ((float2 *)n.out)[channel * TWOS + at] = y;
    }
}

/* ---- the first convolution and its pool, and the means ---- */

using First = kp::Convolution<IMAGES, X_DIM1, MADE[0], 1, kp::Axis<X_DIM3, 7, 2, 3>,
                              kp::Axis<X_DIM2, 7, 2, 3>>;
using FirstParts = kp::ProductParts<First>;
static_assert(First::OUT_AREA == S0 * S0, "half the side");

constexpr int POOLED = MADE[0] * values(1);
/* y = the largest of relu(norm(x)) in windows of 3 x 3, stride 2, padding 1. A thread a value. */
__global__ void __launch_bounds__(128)
    pool_kernel(const float *__restrict__ x, const kp::ChannelNorm *norms, float *__restrict__ y) {
    const int at = blockIdx.x * 128 + threadIdx.x, plane = at / (S1 * S1);
    if (at >= POOLED) return;
    const int top = at / S1 % S1 * 2 - 1, left = at % S1 * 2 - 1;
    const kp::ChannelNorm norm = kp::ChannelNorm::of(norms, plane / IMAGES);
    float most = 0.0f; /* ReLU leaves nothing below */
#pragma unroll
    for (int t = 0; t < 9; t++) {
        const int row = top + t / 3, column = left + t % 3;
        if ((unsigned)row < (unsigned)S0 && (unsigned)column < (unsigned)S0)
            most = kp::larger(most, norm(__ldg(x + (plane * S0 + row) * S0 + column)));
    }
    y[at] = most;
}

/* means[image][channel] of x[channel][image][pixel]. A warp a plane. */
__global__ void __launch_bounds__(128)
    means_kernel(const float *__restrict__ x, float *__restrict__ means) {
    constexpr int AREA = SIDE[4] * SIDE[4];
    const int plane = blockIdx.x * 4 + threadIdx.x / 32;
    if (plane >= FEATURES * IMAGES) return;
    float sum = 0.0f;
    for (int i = threadIdx.x % 32; i < AREA; i += 32) sum += __ldg(x + plane * AREA + i);
    sum = warp_reduce(sum, Add());
    if (threadIdx.x % 32 == 0)
        means[plane % IMAGES * FEATURES + plane / IMAGES] = sum * (1.0f / AREA);
}

/* ---- the network ---- */

constexpr size_t split_floats(int stage) { /* twice the stage's filters */
    const size_t from = MADE[stage - 1], w = WIDTH[stage], made = MADE[stage], deep = DEEP[stage];
    return 2 * (from * (w + made) + made * w * (2 * deep - 1) + 9 * w * w * deep);
}
constexpr size_t SPLIT = split_floats(1) + split_floats(2) + split_floats(3) + split_floats(4);
constexpr size_t PLANES =
    std::max({(size_t)MADE[1] * values(1), (size_t)MADE[2] * values(2), (size_t)MADE[3] * values(3),
              (size_t)MADE[4] * values(4), (size_t)WIDTH[2] * values(1), (size_t)POOLED});

struct Scratch {
    alignas(16) char first_split[kp::split_bytes<First, Narrow>()];
    alignas(16) float blocks[SPLIT], first[MADE[0] * IMAGES * S0 * S0];
    alignas(16) float parts[std::max({STAGE_FLOATS<1>, STAGE_FLOATS<2>, STAGE_FLOATS<3>,
                                      STAGE_FLOATS<4>})];
    alignas(16) float wide[2][PLANES], between[2][PLANES], means[IMAGES * FEATURES];
    kp::Centred moments[FirstParts::BYTES / sizeof(kp::Centred)];
    kp::ChannelNorm norm[MADE[0]];
};

struct Net {
    const Weights *layers;
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

/* Enqueues to = norm of the layer's convolution of x + residual, or relu of that. */
template <class C>
static void convolve(const Net &net, int layer, const float *x, const float *residual, float *to,
                     bool relu) {
    using S = Parts<C>;
    constexpr int VALUES = (int)C::ROWS;
    const Weights &own = net.layers[layer];
    const kp::StoreColumns<kp::Same, C::ROWS, C::FILTERS, S::PART> store = {{}, net.s->parts};
    if constexpr (C::KERNEL == 1 && C::AREA == C::OUT_AREA)
        kp::multiply<S, TileOf<C>>(Pixels<C>{{{}, x}}, net.blocks[layer], store, net.stream);
    else
        kp::multiply<S, TileOf<C>>(kp::Patches<S>{{}, x}, net.blocks[layer], store, net.stream);
    norm_kernel<VALUES, S::PARTS><<<C::FILTERS, threads_for(VALUES), 0, net.stream>>>(
        Norm{net.s->parts, own.weight, own.bias, residual, to, relu});
}

/* Enqueues a block whose first layer is `layer`: from x to `to`, which may be x unless FIRST. */
template <int STAGE, bool FIRST>
static void block(const Net &net, int layer, const float *x, float *to) {
    using B = Block<STAGE, FIRST>;
    float(&between)[2][PLANES] = net.s->between;
    if constexpr (FIRST) convolve<typename B::Beside>(net, layer + 3, x, nullptr, to, false);
    convolve<typename B::One>(net, layer, x, nullptr, between[0], true);
    convolve<typename B::Two>(net, layer + 1, between[0], nullptr, between[1], true);
    convolve<typename B::Three>(net, layer + 2, between[1], FIRST ? to : x, to, true);
}

/* Enqueues a stage; returns the layer behind it. */
template <int STAGE> static int stage(Net &net, int layer) {
    float *x = net.s->wide[(STAGE + 1) % 2], *to = net.s->wide[STAGE % 2];
    split_filters<STAGE>(net, layer);
    block<STAGE, true>(net, layer, x, to);
    layer += 4;
    for (int i = 1; i < DEEP[STAGE]; i++, layer += 3) block<STAGE, false>(net, layer, to, to);
    return layer;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Scratch *s = (Scratch *)scratch;
    Net net = {(const Weights *)&in->conv1_weight, s, stream, s->blocks, {}};
    const Weights &first = net.layers[0];
    using StoreFirst = kp::StoreColumns<kp::Same, First::ROWS, First::COLUMNS>;
    const kp::WithMoments<First, StoreFirst> store = {{{}, s->first}, s->moments};
    kp::product<First, Narrow>(kp::Patches<First>{{}, in->x}, kp::Filters<First>{first.filters},
                               store, s->first_split, stream);
    kp::join_channels<FirstParts>(s->moments, first.weight, first.bias, EPS, s->norm, stream);
    pool_kernel<<<(POOLED + 127) / 128, 128, 0, stream>>>(s->first, s->norm, s->wide[0]);
    const int second = stage<1>(net, 1), third = stage<2>(net, second);
    stage<4>(net, stage<3>(net, third));
    means_kernel<<<(FEATURES * IMAGES + 3) / 4, 128, 0, stream>>>(s->wide[0], s->means);
    kp::few_rows<IMAGES, FEATURES, CLASSES>(s->means, in->fc_weight, kp::AddBias{in->fc_bias},
                                            out->out, stream);
}

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}
