// provenance: shipped
/* SqueezeNet: x [64][3][512][512] through a 7 x 7 convolution, stride 2, to 96 channels, eight fire
 * modules and a 1 x 1 convolution to 1000 channels, each with ReLU; their means -> [64][1000]. The
 * largest of windows of 3 x 3, stride 2, after the first layer and the third and seventh module.
 *
 * Idea: products at fp32 accuracy in turn, with bias and ReLU in their epilogues (convolve.cuh).
 * The two halves of a fire module are one product: columns of its 1 x 1 half have the slabs of the
 * filter's middle alone. The means of the last layer are gathered by its stores
 * (convolve_means.cuh). All three passes are in TF32: layers in a row pass on what residuals in
 * bf16 lose, and most sums are short.
 * Floor: 573 GFLOP of products, three times over the TF32 rate, 4.2 ms; this method moves 14 GB,
 * 3.1 ms.
 * Measured on an H200, when it was right: 7.78 ms, 54 % of the floor. The recorded run is wrong. */
#include "task.h"
#include <algorithm>
#include "bias_relu.cuh"
#include "convolve_means.cuh"
#include "pools.cuh"

constexpr int IMAGES = X_DIM0, CLASSES = CLASSIFIER_1_WEIGHT_DIM0;
static_assert(X_DIM2 == X_DIM3, "square images");

/* Windows of 3, stride 2, of which the last may reach beyond the end. */
template <int SIZE> struct UpWindows : kp::Windows<SIZE, 3, 2> {
    static constexpr int OUT = (SIZE - 2) / 2 + 1;
};
template <int SIZE>
using Pool = kp::PoolShape<kp::Windows<1, 1>, UpWindows<SIZE>, UpWindows<SIZE>,
                           (SIZE + 31) / 32 * 32, 1, 16>;

template <int N> using TileOf = kp::Tile<N, kp::Tf32Rest>;
using Axis = kp::Axis<X_DIM2, FEATURES_0_WEIGHT_DIM2, 2>;
using First = kp::Convolution<IMAGES, X_DIM1, FEATURES_0_WEIGHT_DIM0, 1, Axis, Axis>;
using FirstTile = TileOf<96>;

/* The sides of images between the pools. */
constexpr int LARGE = UpWindows<First::X::OUT>::OUT, MIDDLE = UpWindows<LARGE>::OUT;
constexpr int SMALL = UpWindows<MIDDLE>::OUT;

struct FireInputs {
    const float *squeeze, *squeeze_bias, *one, *one_bias, *three, *three_bias;
};

/* The two halves, HALF channels each, of images of SIDE x SIDE with SQUEEZED channels: a
 * convolution of all columns, of which the first half have the slabs of the middle tap alone. */
template <int SIDE, int SQUEEZED, int HALF>
using BothHalves = kp::Convolution<IMAGES, SQUEEZED, 2 * HALF, 1, kp::Axis<SIDE, 3, 1, 1>,
                                   kp::Axis<SIDE, 3, 1, 1>>;
template <int SIDE, int SQUEEZED, int HALF_> struct Expand : BothHalves<SIDE, SQUEEZED, HALF_> {
    using Both = BothHalves<SIDE, SQUEEZED, HALF_>;
    static constexpr int HALF = HALF_, TAP = Both::KERNEL / 2;
    static __device__ __forceinline__ int first_slab(int, int, int, int column, int) {
        return column < HALF ? TAP * Both::PIECES_A_TAP / Both::PIECES : 0;
    }
    static __device__ __forceinline__ int end_slab(int, int, int, int column, int) {
        return column < HALF ? ((TAP + 1) * Both::PIECES_A_TAP - 1) / Both::PIECES + 1
                             : Both::SLABS;
    }
};

/* Their weights, the right operand. */
template <class E> struct HalvesFilters {
    static constexpr bool ALONG_DEPTH = true;
    const float *one, *three;
    __device__ __forceinline__ float at(int, int column, int slab, int k) const {
        if (column >= E::HALF)
            return kp::Filters<typename E::Both>{three}.at(0, column - E::HALF, slab, k);
        const int piece = slab * E::PIECES + k / E::EACH;
        const int c = piece % E::PIECES_A_TAP * E::EACH + k % E::EACH;
        const bool inside = piece / E::PIECES_A_TAP == E::TAP && k < E::USED && c < E::DEPTH;
        return inside ? __ldg(one + column * E::DEPTH + c) : 0.0f;
    }
};

/* And their store: a tile belongs to one of them. */
template <class E> struct StoreHalves {
    const float *one, *three; /* bias */
    float *out;
    template <class P>
    __device__ __forceinline__ void tile(P &part, int batch, int row, int column) const {
        static_assert(E::HALF % P::N == 0, "whole tiles");
        const float *bias = column < E::HALF ? one : three - E::HALF;
        kp::StorePixels<kp::BiasRelu, E>{{bias}, out}.tile(part, batch, row, column);
    }
};

/* A module of images of SIDE x SIDE: FROM channels, SQUEEZED, and twice HALF. */
template <int SIDE, int FROM, int SQUEEZED, int HALF> struct Fire {
    using Squeeze = kp::Convolution<IMAGES, FROM, SQUEEZED, 1, kp::Axis<SIDE * SIDE, 1>>;
    using SqueezeTile = TileOf<(SQUEEZED + 15) / 16 * 16>;
    using Expand = ::Expand<SIDE, SQUEEZED, HALF>;
    using ExpandTile = TileOf<HALF % 128 == 0 ? 128 : HALF % 96 == 0 ? 96 : 64>;
};

#define SIZES(n)                                                            \
    FEATURES_##n##_SQUEEZE_WEIGHT_DIM1, FEATURES_##n##_SQUEEZE_WEIGHT_DIM0, \
        FEATURES_##n##_EXPAND1X1_WEIGHT_DIM0
using Fire3 = Fire<LARGE, SIZES(3)>;
using Fire4 = Fire<LARGE, SIZES(4)>;
using Fire5 = Fire<LARGE, SIZES(5)>;
using Fire7 = Fire<MIDDLE, SIZES(7)>;
using Fire8 = Fire<MIDDLE, SIZES(8)>;
using Fire9 = Fire<MIDDLE, SIZES(9)>;
using Fire10 = Fire<MIDDLE, SIZES(10)>;
using Fire12 = Fire<SMALL, SIZES(12)>;
using Last =
    kp::Convolution<IMAGES, CLASSIFIER_1_WEIGHT_DIM1, CLASSES, 1, kp::Axis<SMALL * SMALL, 1>>;
using LastTile = TileOf<128>;

/* What scratch holds. */
template <class C> constexpr size_t results() {
    return (size_t)C::ROWS * C::FILTERS;
}
template <class F> constexpr size_t split() {
    return std::max(kp::split_bytes<typename F::Squeeze, typename F::SqueezeTile>(),
                    kp::split_bytes<typename F::Expand, typename F::ExpandTile>());
}
using Means = kp::MeansScratch<Last, LastTile>;
struct Scratch {
    alignas(16) char means[Means::bytes()]; /* the last layer's */
    alignas(16) char split[std::max({split<Fire3>(), split<Fire5>(), split<Fire7>(), split<Fire8>(),
                                     split<Fire9>(), split<Fire10>(), split<Fire12>(),
                                     split<Fire4>()})];
    alignas(32) float wide[std::max({results<First>(), results<Fire5::Expand>(),
                                     results<Fire9::Expand>(), results<Fire10::Expand>()})];
    alignas(32) float pooled[(size_t)IMAGES * First::FILTERS * LARGE * LARGE];
    alignas(32) float squeezed[std::max(results<Fire5::Squeeze>(), results<Fire10::Squeeze>())];
};

static_assert(sizeof(Scratch::split) >= kp::split_bytes<First, FirstTile>(), "room for the first");

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

/* Enqueues a module: s->wide = the results of x. */
template <class F>
static void fire(const FireInputs &in, const float *x, Scratch *s, cudaStream_t stream) {
    using Squeeze = typename F::Squeeze;
    using Expand = typename F::Expand;
    kp::convolve<Squeeze, typename F::SqueezeTile>(x, in.squeeze, s->squeezed,
                                                   kp::BiasRelu{in.squeeze_bias}, s->split, stream);
    const StoreHalves<Expand> store = {in.one_bias, in.three_bias, s->wide};
    kp::product<Expand, typename F::ExpandTile>(kp::Patches<Expand>{{}, s->squeezed},
                                                HalvesFilters<Expand>{in.one, in.three}, store,
                                                s->split, stream);
}

/* Enqueues s->pooled = the windows of s->wide. */
template <int SIDE> static void pool(int channels, Scratch *s, cudaStream_t stream) {
    kp::pool_windows<kp::MaxOfWindow, Pool<SIDE>>(s->wide, s->pooled, IMAGES * channels, stream);
}

struct Mean {
    __device__ __forceinline__ float operator()(float mean, int) const { return mean; }
};

#define FIRE(n)                                                                     \
    {                                                                               \
        in->features_##n##_squeeze_weight, in->features_##n##_squeeze_bias,         \
            in->features_##n##_expand1x1_weight, in->features_##n##_expand1x1_bias, \
            in->features_##n##_expand3x3_weight, in->features_##n##_expand3x3_bias  \
    }

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Scratch *s = (Scratch *)scratch;
    kp::convolve<First, FirstTile>(in->x, in->features_0_weight, s->wide,
                                   kp::BiasRelu{in->features_0_bias}, s->split, stream);
    pool<First::X::OUT>(First::FILTERS, s, stream);
    fire<Fire3>(FIRE(3), s->pooled, s, stream);
    fire<Fire4>(FIRE(4), s->wide, s, stream);
    fire<Fire5>(FIRE(5), s->wide, s, stream);
    pool<LARGE>(Fire7::Squeeze::CHANNELS, s, stream);
    fire<Fire7>(FIRE(7), s->pooled, s, stream);
    fire<Fire8>(FIRE(8), s->wide, s, stream);
    fire<Fire9>(FIRE(9), s->wide, s, stream);
    fire<Fire10>(FIRE(10), s->wide, s, stream);
    pool<MIDDLE>(Fire12::Squeeze::CHANNELS, s, stream);
    fire<Fire12>(FIRE(12), s->pooled, s, stream);
    kp::convolve_means<Last, LastTile>(s->wide, in->classifier_1_weight, out->out,
                                       kp::BiasRelu{in->classifier_1_bias}, Mean(), s->means,
                                       stream);
}
