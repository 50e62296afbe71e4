// provenance: shipped
/* ShuffleNet with batch norms by the batch's own statistics: x [10][3][224][224] -> [10][1000].
 * Stem and pool, then stages of 3, 7 and 3 units of 240, 480 and 960 channels, all of 56 x 56
 * pixels; 1 x 1 convolution to 1024 channels, means, linear layer. A unit is: 1 x 1 convolution in
 * three groups to a quarter of the channels, norm, ReLU; depthwise 3 x 3, norm; channels shuffled;
 * 1 x 1 convolution in three groups, norm, ReLU; plus x, or in a stage's first unit its 1 x 1
 * convolution with norm.
 *
 * Idea: activations are [channel][image][pixel], so a 1 x 1 convolution is one product
 * (product.cuh), its groups the batches; it gathers the statistics of what it makes. The depthwise
 * kernel normalises what it reads, and stores channels shuffled. Its own norm, which no ReLU
 * follows, is folded into the filters of the convolution behind it: scales into the weights, the
 * rest into the weight of one more channel, of ones. That convolution is computed twice instead of
 * being stored and read: for its statistics, then with norm, ReLU and residual in its epilogue, in
 * place. All filters but these are split at the start.
 * Floor: 144 GFLOP of products in three passes in TF32, 1038 us; little from memory. This method
 * multiplies 1.4 times as much, as depths of 21, 41 and 81 fill slabs, and moves 4.4 GB, 1 ms, most
 * of it beside small products; 112 kernels wait for each other.
 * Measured on an H200: 3.32 ms, 31 % of the floor; 2.45 predicted.
 * Spills 112 bytes a thread (stored and loaded) in the last product, on sm_90a. */
#include "task.h"
#include "activations.cuh"
#include "channel_norm.cuh"
#include "convolve.cuh"
#include "extremes.cuh"
#include "few_rows.cuh"
#include "reduce.cuh"
#include "whole_channels.cuh"

constexpr int IMAGES = X_DIM0, CLASSES = FC_WEIGHT_DIM0, FEATURES = FC_WEIGHT_DIM1, GROUPS = 3;
constexpr double EPS = 1e-5;
static_assert(X_DIM2 == X_DIM3 && X_DIM2 % 16 == 0, "squares; a quarter of a side is whole float4");
constexpr int HALF = X_DIM2 / 2, SIDE = HALF / 2, PIXELS = SIDE * SIDE, VALUES = IMAGES * PIXELS;
/* From a channel to the next: whole tiles of clusters. What lies behind VALUES is multiplied, too,
 * but does not matter. */
constexpr int PITCH = (VALUES + 2 * kp::TILE_M - 1) / (2 * kp::TILE_M) * (2 * kp::TILE_M);

/* Stages 1 to 3: channels, those between, units. Stage 0 is the stem, stage 4 the last product. */
constexpr int WIDTH[] = {CONV1_WEIGHT_DIM0, STAGE2_0_CONV3_WEIGHT_DIM0, STAGE3_0_CONV3_WEIGHT_DIM0,
                         STAGE4_0_CONV3_WEIGHT_DIM0, CONV5_WEIGHT_DIM0};
constexpr int MIDDLE[] = {0, STAGE2_0_CONV1_WEIGHT_DIM0, STAGE3_0_CONV1_WEIGHT_DIM0,
                          STAGE4_0_CONV1_WEIGHT_DIM0};
constexpr int UNITS[] = {0, 3, 7, 3}, ALL_UNITS = 13;
static_assert(WIDTH[4] == FEATURES && CONV5_WEIGHT_DIM1 == WIDTH[3] &&
                  STAGE2_0_CONV1_WEIGHT_DIM1 * GROUPS == WIDTH[0] &&
                  STAGE4_0_CONV3_WEIGHT_DIM1 * GROUPS == MIDDLE[3],
              "one follows the other, in three groups");

/* A convolution with its norm, as they follow each other in struct Inputs: the stem; the three of
 * each unit, and behind those of a stage's first its shortcut; the last. */
struct Layer {
    const float *filters, *weight, *bias;
};
constexpr int LAYERS = 1 + 3 * ALL_UNITS + 3 + 1;
static_assert(sizeof(struct Inputs) == (1 + 3 * LAYERS + 2) * sizeof(float *), "x, layers, fc");

/* ---- products ---- */

/* The width of tiles. 64 would suit 320 columns, but has too few registers for Finish. */
constexpr int tile_width(int columns) {
    return columns <= 32 ? 32 : columns <= 48 ? 48 : columns % 128 == 0 ? 128 : 96;
}
template <int COLUMNS> using TileOf = kp::Tile<tile_width(COLUMNS), kp::Tf32Rest>;

/* All slabs, but the compiler must not know how many: it would unroll them and spill. */
template <int COLUMNS, int DEPTH, int GROUPS_>
struct AllSlabs : kp::Matrices<PITCH, COLUMNS, DEPTH, GROUPS_> {
    static __device__ __forceinline__ int end_slab(int, int row, int, int, int) {
        return min(AllSlabs::SLABS, AllSlabs::SLABS + row);
    }
};

/* Each group's DEPTH channels to COLUMNS. */
template <int COLUMNS, int DEPTH, int GROUPS_ = 1> struct Pointwise {
    using Sizes = AllSlabs<COLUMNS, DEPTH, GROUPS_>;
    using Tile = TileOf<COLUMNS>;
    using A = kp::Across<PITCH, DEPTH, PITCH, (long long)DEPTH * PITCH>;
    using Parts = kp::RunParts<COLUMNS * GROUPS_, VALUES, 32>;
    using Columns = kp::StoreColumns<kp::Same, PITCH, COLUMNS, (long long)COLUMNS * PITCH>;

    /* The base's store, and the parts of each column. */
    template <class Base> struct Gather : Base {
        kp::Centred *parts;
        template <class P>
        __device__ __forceinline__ void tile(P &part, int group, int row, int column) const {
            const int index = row / 32;
            bool inside[4];
#pragma unroll
            for (int r = 0; r < 4; r++) inside[r] = VALUES % 32 == 0 || row + r < VALUES;
            if (index < Parts::OF_A_RUN)
                kp::gather_moments<COLUMNS>(part, inside, (float)Parts::size(index), 1.0f, column,
                                            parts + (long long)index * Parts::CHANNELS +
                                                group * COLUMNS + column);
            Base::tile(part, group, row, column);
        }
    };
};
/* A unit's first convolution, its last, whose depth is one more, and its shortcut. */
template <int MIDDLE, int FROM> using Narrow = Pointwise<MIDDLE / GROUPS, FROM / GROUPS, GROUPS>;
template <int TO, int MIDDLE> using Widen = Pointwise<TO / GROUPS, MIDDLE / GROUPS + 1, GROUPS>;
using Last = Pointwise<FEATURES, WIDTH[3]>;
using Stem = kp::Convolution<IMAGES, X_DIM1, WIDTH[0], 1, kp::Axis<X_DIM3, 3, 2, 1>,
                             kp::Axis<X_DIM2, 3, 2, 1>>;
using StemTile = TileOf<WIDTH[0]>;

/* out = relu(norm of the product) + what out has, normalised if the norm is given. */
template <int COLUMNS, bool NORMED> struct Finish {
    const kp::ChannelNorm *norms, *residual;
    float *out;
    template <class P>
    __device__ __forceinline__ void tile(const P &part, int group, int row, int column) const {
        constexpr int AHEAD = P::N % 96 ? 4 : 8; /* columns that are read together */
        static_assert(!P::ALONG_DEPTH && P::N / 4 % AHEAD == 0, "a thread's rows are a float4");
        const int channel = group * COLUMNS + column;
        float *to = out + (long long)channel * PITCH + row;
#pragma unroll
        for (int first = 0; first < P::N / 4; first += AHEAD) {
            float4 other[AHEAD];
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                const int n = (first + i) / 2 * 8 + i % 2;
                if (column + n < COLUMNS) other[i] = *(const float4 *)(to + (long long)n * PITCH);
            }
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                const int n = (first + i) / 2 * 8 + i % 2, at = (first + i) / 2 * 4 + i % 2;
                if (column + n >= COLUMNS) continue;
                const kp::ChannelNorm a = kp::ChannelNorm::of(norms, channel + n);
                float4 o = other[i];
                if (NORMED) {
                    const kp::ChannelNorm b = kp::ChannelNorm::of(residual, channel + n);
                    o = make_float4(b(o.x), b(o.y), b(o.z), b(o.w));
                }
                const kp::Relu relu;
                *(float4 *)(to + (long long)n * PITCH) =
                    make_float4(relu(a(part.v[0][at])) + o.x, relu(a(part.v[0][at + 2])) + o.y,
                                relu(a(part.v[1][at])) + o.z, relu(a(part.v[1][at + 2])) + o.w);
            }
        }
    }
};

/* ---- between products ---- */

constexpr int POOLED = WIDTH[0] * VALUES;
/* y = the largest of relu(norm(x)) in windows of 3 x 3, stride 2, padding 1. A thread a value. */
__global__ void __launch_bounds__(128)
    pool_kernel(const float *__restrict__ x, const kp::ChannelNorm *norms, float *__restrict__ y) {
    const int at = blockIdx.x * 128 + threadIdx.x, plane = at / PIXELS, channel = plane / IMAGES;
    if (at >= POOLED) return;
    const int top = at / SIDE % SIDE * 2 - 1, left = at % SIDE * 2 - 1;
    const kp::ChannelNorm norm = kp::ChannelNorm::of(norms, channel);
    float most = 0.0f; /* ReLU leaves nothing below */
#pragma unroll
    for (int t = 0; t < 9; t++) {
        const int row = top + t / 3, column = left + t % 3;
        if ((unsigned)row < (unsigned)HALF && (unsigned)column < (unsigned)HALF)
            most = kp::larger(most, norm(__ldg(x + (plane * HALF + row) * HALF + column)));
    }
    y[channel * PITCH + at % VALUES] = most;
}

/* The depthwise convolution: a block a plane, a thread 4 x 4 results. */
constexpr int ACROSS = SIDE / 4, PLANE_THREADS = (ACROSS * ACROSS + 31) / 32 * 32;
template <int CHANNELS> using PlaneParts = kp::RunParts<CHANNELS, PIXELS, PIXELS, IMAGES>;

/* y = the depthwise convolution of relu(norm of x), shuffled, each group with a channel of ones
 * behind it; and its parts, not shuffled. Grid: channels, images. */
template <int CHANNELS>
__global__ void __launch_bounds__(PLANE_THREADS)
    depthwise_kernel(const float *__restrict__ x, const kp::ChannelNorm *__restrict__ norms,
                     const float *__restrict__ weight, float *__restrict__ y,
                     kp::Centred *__restrict__ parts) {
    constexpr int OWN = CHANNELS / GROUPS;
    const int channel = blockIdx.x, left = threadIdx.x % ACROSS * 4, top = threadIdx.x / ACROSS * 4;
    const int shuffled = channel % OWN * GROUPS + channel / OWN;
    const bool some = threadIdx.x < ACROSS * ACROSS;
    const kp::ChannelNorm norm = kp::ChannelNorm::of(norms, channel);
    const kp::Relu relu;
    const float *plane = x + channel * PITCH + blockIdx.y * PIXELS;
    float sums[4][4] = {}, w[9];
#pragma unroll
    for (int t = 0; t < 9; t++) w[t] = __ldg(weight + channel * 9 + t);
#pragma unroll
    for (int r = 0; r < 6; r++) {
        const int at = top + r - 1;
        const float *from = plane + at * SIDE + left;
        float v[6] = {};
        if (some && (unsigned)at < (unsigned)SIDE) {
            const float4 four = __ldg((const float4 *)from);
            v[1] = relu(norm(four.x)), v[2] = relu(norm(four.y));
            v[3] = relu(norm(four.z)), v[4] = relu(norm(four.w));
            if (left > 0) v[0] = relu(norm(__ldg(from - 1)));
            if (left + 4 < SIDE) v[5] = relu(norm(__ldg(from + 4)));
        }
#pragma unroll
        for (int own = 0; own < 4; own++) { /* results that the row is under */
            if (r < own || r > own + 2) continue;
#pragma unroll
            for (int i = 0; i < 12; i++)
                sums[own][i % 4] += w[(r - own) * 3 + i / 4] * v[i % 4 + i / 4];
        }
    }
    float *to = y + (shuffled + shuffled / OWN) * PITCH + blockIdx.y * PIXELS + top * SIDE + left;
    float sum = 0.0f, square = 0.0f;
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const float *s = sums[r];
        sum += (s[0] + s[1]) + (s[2] + s[3]); /* zeros where there is none */
        if (some) *(float4 *)(to + r * SIDE) = make_float4(s[0], s[1], s[2], s[3]);
        if (some && shuffled % OWN == OWN - 1)
            *(float4 *)(to + PITCH + r * SIDE) = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    }
    sum = block_reduce<PLANE_THREADS>(sum, Add());
    const float mean = sum * (1.0f / PIXELS);
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const float d = sums[i / 4][i % 4] - mean;
        if (some) square += d * d;
    }
    square = block_reduce<PLANE_THREADS>(square, Add());
    if (threadIdx.x == 0) parts[blockIdx.y * CHANNELS + channel] = {sum, square};
}

/* Splits the filters of the convolution behind it with the norm of CHANNELS channels folded in.
 * Grid: x slabs, y blocks of columns, z groups. */
template <class W, int CHANNELS>
__global__ void __launch_bounds__(256)
    fold_kernel(const kp::Centred *__restrict__ parts, Layer norm,
                const float *__restrict__ filters, float *__restrict__ blocks) {
    constexpr int N = W::Tile::N, OWN = CHANNELS / GROUPS, COLUMNS = W::Sizes::COLUMNS;
    using Of = PlaneParts<CHANNELS>;
    __shared__ float slab[kp::TILE_K][N + 1], scale[OWN], rest[OWN];
    for (int k = threadIdx.x; k < OWN; k += 256) {
        const int shuffled = blockIdx.z * OWN + k;
        const int channel = shuffled % GROUPS * OWN + shuffled / GROUPS;
        double sum = 0, square = 0;
#pragma unroll
        for (int p = 0; p < Of::COUNT; p++) {
            const kp::Centred c = parts[p * CHANNELS + channel];
            sum += c.sum, square += c.square + (double)c.sum * c.sum * (1.0 / Of::SIZE);
        }
        const double mean = sum / VALUES, variance = square / VALUES - mean * mean;
        const double by = norm.weight[channel] / sqrt((variance < 0.0 ? 0.0 : variance) + EPS);
        scale[k] = (float)by, rest[k] = (float)(norm.bias[channel] - mean * by);
    }
    __syncthreads();
    const int lane = threadIdx.x % 32, k = blockIdx.x * kp::TILE_K + lane;
#pragma unroll 4
    for (int n = threadIdx.x / 32; n < N; n += 8) {
        const int column = blockIdx.y * N + n;
        const bool there = column < COLUMNS;
        const float *own = filters + (blockIdx.z * COLUMNS + (there ? column : 0)) * OWN;
        float v = there && k < OWN ? own[k] * scale[k] : 0.0f, all = 0.0f;
        if (blockIdx.x == OWN / kp::TILE_K) { /* the slab with the ones */
            for (int i = lane; there && i < OWN; i += 32) all += own[i] * rest[i];
            all = warp_reduce(all, Add());
            if (k == OWN) v = all;
        }
        slab[lane][n] = v;
    }
    __syncthreads();
    const int at = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    kp::write_block<typename W::Tile, false>(slab, blocks + (long long)at * W::Tile::B_WORDS);
}

/* means[image][channel] = that of relu(norm of x). Grid: channels, images. */
__global__ void __launch_bounds__(256)
    means_kernel(const float *__restrict__ x, const kp::ChannelNorm *norms, float *means) {
    const kp::ChannelNorm norm = kp::ChannelNorm::of(norms, blockIdx.x);
    const float4 *from = (const float4 *)(x + (long long)blockIdx.x * PITCH + blockIdx.y * PIXELS);
    const kp::Relu relu;
    float sum = 0.0f;
#pragma unroll 4
    for (int i = threadIdx.x; i < PIXELS / 4; i += 256) {
        const float4 v = __ldg(from + i);
        sum += (relu(norm(v.x)) + relu(norm(v.y))) + (relu(norm(v.z)) + relu(norm(v.w)));
    }
    sum = block_reduce<256>(sum, Add());
    if (threadIdx.x == 0) means[blockIdx.y * FEATURES + blockIdx.x] = sum * (1.0f / PIXELS);
}

/* ---- the network ---- */

/* Split filters: words of one convolution's, and of all that are split at the start. */
template <class W>
constexpr size_t WORDS = kp::split_bytes<typename W::Sizes, typename W::Tile>() / 4;
template <int STAGE> using Begin = Narrow<MIDDLE[STAGE], WIDTH[STAGE - 1]>;
template <int STAGE> using Further = Narrow<MIDDLE[STAGE], WIDTH[STAGE]>;
template <int STAGE> using Shortcut = Pointwise<WIDTH[STAGE], WIDTH[STAGE - 1]>;
template <int STAGE>
constexpr size_t STAGE_WORDS = WORDS<Begin<STAGE>> +
                               (UNITS[STAGE] - 1) * WORDS<Further<STAGE>> + WORDS<Shortcut<STAGE>>;

struct Scratch {
    alignas(16) float stem_blocks[kp::split_bytes<Stem, StemTile>() / 4];
    alignas(16) float blocks[STAGE_WORDS<1> + STAGE_WORDS<2> + STAGE_WORDS<3> + WORDS<Last>];
    alignas(16) float folded[WORDS<Widen<WIDTH[3], MIDDLE[3]>>];
    alignas(16) float stem[WIDTH[0] * Stem::ROWS];
    alignas(16) float plane0[WIDTH[0] * PITCH], plane1[WIDTH[1] * PITCH], plane2[WIDTH[2] * PITCH];
    alignas(16) float plane3[WIDTH[3] * PITCH], last[WIDTH[4] * PITCH];
    alignas(16) float narrow[MIDDLE[3] * PITCH], convolved[(MIDDLE[3] + GROUPS) * PITCH];
    float means[IMAGES * FEATURES];
    kp::ChannelNorm norm[WIDTH[4]], shortcut_norm[WIDTH[3]];
    kp::Centred stem_parts[kp::ProductParts<Stem>::COUNT * WIDTH[0]];
    kp::Centred parts[Last::Parts::COUNT * WIDTH[4]], plane_parts[IMAGES * MIDDLE[3]];
};

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

struct Net {
    Scratch *s;
    cudaStream_t stream;
    const Layer *layer;  /* the next */
    const float *blocks; /* of the next filters split at the start */
};

/* Enqueues the splitting of a stage's filters; returns what lies behind them. */
template <int STAGE>
static float *split_stage(const Layer *layers, float *to, cudaStream_t stream) {
    constexpr int COUNT = UNITS[STAGE] * GROUPS, OWN = MIDDLE[STAGE] / GROUPS;
    using Of = kp::AllFilters<COUNT>;
    using T = typename Begin<STAGE>::Tile;
    using Wide = typename Shortcut<STAGE>::Tile;
    Of all = {};
    float *const shortcut = to + WORDS<Begin<STAGE>>;
    kp::AllFilters<1> one = {
        {{layers[3].filters, nullptr, shortcut, WIDTH[STAGE - 1], 1, WIDTH[STAGE], WIDTH[STAGE]}}};
    for (int i = 0; i < COUNT; i++) {
        const int unit = i / GROUPS, from = WIDTH[unit ? STAGE : STAGE - 1] / GROUPS;
        const float *filters = layers[unit ? 3 * unit + 1 : 0].filters;
        if (i == GROUPS) to = shortcut + WORDS<Shortcut<STAGE>>;
        all.of[i] = {filters + i % GROUPS * OWN * from, nullptr, to, from, 1, OWN, OWN};
        to += (size_t)Of::template blocks<T>(from, 1, OWN) * T::B_WORDS;
    }
    kp::split_all<T, false>(all, stream);
    kp::split_all<Wide, false>(one, stream);
    return to;
}

/* Enqueues to = the product of x, and *norm = what its statistics say. */
template <class W>
static void convolve(Net &net, const Layer &layer, const float *x, float *to,
                     kp::ChannelNorm *norm) {
    using Store = typename W::template Gather<typename W::Columns>;
    kp::multiply<typename W::Sizes, typename W::Tile>(typename W::A{{}, x}, net.blocks,
                                                      Store{{{}, to}, net.s->parts}, net.stream);
    kp::join_channels<typename W::Parts>(net.s->parts, layer.weight, layer.bias, EPS, norm,
                                         net.stream);
    net.blocks += WORDS<W>;
}

/* Enqueues a unit: of FIRST to `to` from x, else in place. */
template <int STAGE, bool FIRST> static void unit(Net &net, const float *x, float *to) {
    constexpr int CHANNELS = MIDDLE[STAGE];
    using Wide = Widen<WIDTH[STAGE], CHANNELS>;
    using T = typename Wide::Tile;
    using Sizes = typename Wide::Sizes;
    Scratch *s = net.s;
    const Layer *layer = net.layer;
    convolve<std::conditional_t<FIRST, Begin<STAGE>, Further<STAGE>>>(net, layer[0], x, s->narrow,
                                                                      s->norm);
    depthwise_kernel<CHANNELS><<<dim3(CHANNELS, IMAGES), PLANE_THREADS, 0, net.stream>>>(
        s->narrow, s->norm, layer[1].filters, s->convolved, s->plane_parts);
    fold_kernel<Wide, CHANNELS>
        <<<dim3(Sizes::SLABS, (Sizes::COLUMNS + T::N - 1) / T::N, GROUPS), 256, 0, net.stream>>>(
            s->plane_parts, layer[1], layer[2].filters, s->folded);
    if (FIRST) convolve<Shortcut<STAGE>>(net, layer[3], x, to, s->shortcut_norm);

    using Statistics = typename Wide::template Gather<kp::StoreNothing>;
    const typename Wide::A convolved = {{}, s->convolved};
    kp::multiply<Sizes, T>(convolved, s->folded, Statistics{{}, s->parts}, net.stream);
    kp::join_channels<typename Wide::Parts>(s->parts, layer[2].weight, layer[2].bias, EPS, s->norm,
                                            net.stream);
    const Finish<Sizes::COLUMNS, FIRST> finish = {s->norm, s->shortcut_norm, to};
    kp::multiply<Sizes, T>(convolved, s->folded, finish, net.stream);
    net.layer += FIRST ? 4 : 3;
}

template <int STAGE> static void stage(Net &net, const float *x, float *to) {
    unit<STAGE, true>(net, x, to);
    for (int i = 1; i < UNITS[STAGE]; i++) unit<STAGE, false>(net, to, to);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Scratch *s = (Scratch *)scratch;
    const Layer *layers = (const Layer *)&in->conv1_weight;
    Net net = {s, stream, layers + 1, s->blocks};
    float *to = split_stage<1>(layers + 1, s->blocks, stream);
    to = split_stage<2>(layers + 2 + 3 * UNITS[1], to, stream);
    to = split_stage<3>(layers + 3 + 3 * (UNITS[1] + UNITS[2]), to, stream);
    const kp::AllFilters<1> last = {
        {{in->conv5_weight, nullptr, to, WIDTH[3], 1, WIDTH[4], WIDTH[4]}}};
    kp::split_all<Last::Tile, false>(last, stream);

    using StoreStem = kp::StoreColumns<kp::Same, Stem::ROWS, Stem::COLUMNS>;
    const kp::WithMoments<Stem, StoreStem> store = {{{}, s->stem}, s->stem_parts};
    kp::product<Stem, StemTile>(kp::Patches<Stem>{{}, in->x}, kp::Filters<Stem>{in->conv1_weight},
                                store, s->stem_blocks, stream);
    kp::join_channels<kp::ProductParts<Stem>>(s->stem_parts, in->bn1_weight, in->bn1_bias, EPS,
                                              s->norm, stream);
    pool_kernel<<<(POOLED + 127) / 128, 128, 0, stream>>>(s->stem, s->norm, s->plane0);
    stage<1>(net, s->plane0, s->plane1);
    stage<2>(net, s->plane1, s->plane2);
    stage<3>(net, s->plane2, s->plane3);
    convolve<Last>(net, net.layer[0], s->plane3, s->last, s->norm);
    means_kernel<<<dim3(FEATURES, IMAGES), 256, 0, stream>>>(s->last, s->norm, s->means);
    kp::few_rows<IMAGES, FEATURES, CLASSES>(s->means, in->fc_weight, kp::AddBias{in->fc_bias},
                                            out->out, stream);
}
