/* inverted_bottlenecks.cuh: networks of inverted bottlenecks (MobileNetV2, EfficientNet), batch
 * norms by the batch's own statistics: a table of their blocks (N) says all.
 *
 * A stem, a 3 x 3 convolution with stride 2; blocks, each a 1 x 1 convolution to many channels, a
 * depthwise one and a 1 x 1 convolution to few; a 1 x 1 convolution, the mean of each image, and a
 * linear layer. A norm follows each convolution.
 *
 * Idea: a 1 x 1 convolution is one product of pixels by filters (product.cuh), whose depth is split
 * where pixels are few; all filters are split by one kernel at the start. A block is four kernels:
 * the product (pointwise.cuh), the depthwise convolution with a channel's norms before and behind
 * it (channel_depthwise.cuh), the product, its norm. The first block has few and large channels:
 * its convolution has a plane a block, and its norms are applied by what reads their values.
 *
 * Reaches 6 % of the products' floor (l3_022, l3_023), as small kernels wait for each other. */
#pragma once
#include <algorithm>
#include "channel_depthwise.cuh"
#include "convolve.cuh"
#include "few_rows.cuh"
#include "pointwise.cuh"

namespace kp {

/* A row of the table: channels between, channels made, the depthwise convolution. */
struct Bottleneck {
    int hidden, to, kernel, stride;
};

/* Pointers to a block's parameters, as struct Inputs has them. */
struct BottleneckWeights {
    const float *expand;
    Affine expand_norm;
    const float *depthwise;
    Affine depthwise_norm;
    const float *project;
    Affine project_norm;
};

/* ---- sizes ---- */

/* N: constants IMAGES, SIDE (of an image), COLORS, STEM (channels), BLOCKS, FEATURES, CLASSES;
 * FIRST_EXPANDS, whether the first block has its first convolution; RESIDUALS, whether a block adds
 * what it reads where it can; the functions StemAct, HeadAct; block(b), a row of the table. */
template <class N> struct BottleneckSizes {
    __host__ __device__ static constexpr int from(int b) { /* channels that block b reads */
        return b == 0 ? N::STEM : N::block(b - 1).to;
    }
    __host__ __device__ static constexpr int side(int b) { /* of what it reads */
        return b == 0 ? (N::SIDE - 1) / 2 + 1 : (side(b - 1) - 1) / N::block(b - 1).stride + 1;
    }
    __host__ __device__ static constexpr int values(int b) { /* of a channel of that */
        return N::IMAGES * side(b) * side(b);
    }
};

template <class N>
using BottleneckStem =
    Convolution<N::IMAGES, N::COLORS, N::STEM, 1, Axis<N::SIDE, 3, 2, 1>, Axis<N::SIDE, 3, 2, 1>>;

template <class N> using BottleneckFilters = AllFilters<2 * N::BLOCKS + 1>;

/* What scratch holds at most, in floats, parts and words. */
template <class N> struct BottleneckMost : PointwiseMost {
    size_t hidden = 0, x = 0;
    constexpr BottleneckMost() {
        using S = BottleneckSizes<N>;
        const size_t first = std::max(N::STEM, N::block(0).hidden);
        made = hidden = first * S::values(0);
        centred = first * ((S::values(0) + 31) / 32);
        for (int b = 0; b < N::BLOCKS; b++) {
            const Bottleneck own = N::block(b);
            const size_t pitch = operand_pitch(S::values(b + 1));
            take(S::values(b), own.hidden, S::from(b));
            take(S::values(b + 1), own.to, own.hidden);
            hidden = std::max(
                {hidden, operand_channels(own.hidden) * pitch, (size_t)own.to * S::values(b + 1)});
            x = std::max(x, operand_channels(own.to) * pitch);
        }
        take(S::values(N::BLOCKS), N::FEATURES, S::from(N::BLOCKS));
    }
};

template <class N> struct BottleneckScratch {
    static constexpr BottleneckMost<N> MOST = {};
    static constexpr int FIRST = N::block(0).hidden;
    alignas(16) char stem_split[split_bytes<BottleneckStem<N>, PointwiseTile>()];
    alignas(16) float words[MOST.words];
    alignas(16) float made[MOST.made], hidden[MOST.hidden], x[MOST.x];
    float means[N::IMAGES * N::FEATURES];
    ChannelNorm stem_norm[N::STEM], norm[2][FIRST];
    Centred parts[MOST.centred], plane_parts[N::IMAGES * FIRST];
};

/* ---- the network ---- */

/* What the layers are enqueued with. words: of the filters, two a block, and of the last. */
template <class N> struct BottleneckNet {
    using S = BottleneckSizes<N>;
    using Scratch = BottleneckScratch<N>;
    const BottleneckWeights *weights;
    Scratch *s;
    cudaStream_t stream;
    const float *words[2 * N::BLOCKS + 1];

    void split_filters() {
        BottleneckFilters<N> all = {};
        float *to = s->words;
        for (int i = 0; i <= 2 * N::BLOCKS; i++) {
            const int b = i / 2;
            const BottleneckWeights &w = weights[b];
            const int hidden = b < N::BLOCKS ? N::block(b).hidden : N::FEATURES;
            const int from = i % 2 ? hidden : S::from(b);
            int columns = i % 2 ? N::block(b).to : hidden;
            if (i == 0 && !N::FIRST_EXPANDS) columns = 0;
            all.of[i] = {i % 2 ? w.project : w.expand, nullptr, to, from, 1, columns, columns};
            words[i] = to;
            to += (size_t)BottleneckFilters<N>::template blocks<PointwiseTile>(from, 1, columns) *
                  PointwiseTile::B_WORDS;
        }
        split_all<PointwiseTile, false>(all, stream);
    }

    /* The stem; its norm is in stem_norm. */
    void stem(const float *x, const float *weight, const Affine &norm) {
        using C = BottleneckStem<N>;
        using Store = StoreColumns<Same, C::ROWS, C::COLUMNS>;
        const WithMoments<C, Store> store = {{{}, s->made}, s->parts};
        product<C, PointwiseTile>(Patches<C>{{}, x}, Filters<C>{weight}, store, s->stem_split,
                                  stream);
        join_channels<ProductParts<C>>(s->parts, norm.weight, norm.bias, BATCH_NORM_EPS,
                                       s->stem_norm, stream);
    }

    /* The first block, to x. */
    void first() {
        constexpr int VALUES = S::values(0), HIDDEN = N::block(0).hidden;
        constexpr int STRIDE = N::block(0).stride, KERNEL = N::block(0).kernel;
        static_assert(STRIDE == 1 && HIDDEN % TILE_K == 0 && N::STEM % TILE_K == 0, "the first");
        using Plane = ChannelDepthwise<1, S::side(0), KERNEL, STRIDE>;
        using Planes = RunParts<HIDDEN, Plane::RESULTS, Plane::RESULTS, N::IMAGES>;
        using P = Pointwise<VALUES, N::block(0).to, HIDDEN>;
        float *made = s->made, *convolved = s->hidden;
        const dim3 grid(HIDDEN, N::IMAGES);
        if constexpr (N::FIRST_EXPANDS) {
            using Expand = Pointwise<VALUES, HIDDEN, N::STEM, true>;
            const MappedAcross<MapNormAct<typename N::StemAct>, VALUES, N::STEM> stem = {
                {{}, made}, {s->stem_norm}};
            Expand::multiply(stem, words[0], s->hidden, s->parts, stream);
            join_channels<typename Expand::Parts>(s->parts, weights->expand_norm.weight,
                                                  weights->expand_norm.bias, BATCH_NORM_EPS,
                                                  s->norm[0], stream);
            made = s->hidden, convolved = s->made;
            depthwise_plane_kernel<Plane, HIDDEN, Relu6><<<grid, Plane::THREADS, 0, stream>>>(
                made, s->norm[0], weights->depthwise, convolved, s->plane_parts);
        } else {
            static_assert(HIDDEN == N::STEM, "it reads the stem");
            depthwise_plane_kernel<Plane, HIDDEN, typename N::StemAct>
                <<<grid, Plane::THREADS, 0, stream>>>(made, s->stem_norm, weights->depthwise,
                                                      convolved, s->plane_parts);
        }
        join_channels<Planes>(s->plane_parts, weights->depthwise_norm.weight,
                              weights->depthwise_norm.bias, BATCH_NORM_EPS, s->norm[1], stream);
        const MappedAcross<MapNormAct<Relu6>, VALUES, HIDDEN> operand = {{{}, convolved},
                                                                         {s->norm[1]}};
        P::multiply(operand, words[1], made, s->parts, stream);
        norm<P, false>(made, weights->project_norm);
    }

    /* x = the norm of what the product P made, plus x if RESIDUAL. */
    template <class P, bool RESIDUAL> void norm(const float *made, const Affine &affine) {
        constexpr int PITCH = operand_pitch(P::ROWS);
        if constexpr (P::WIDE)
            norm_slice_kernel<P, PITCH, RESIDUAL>
                <<<dim3((PITCH + SLICE - 1) / SLICE, operand_channels(P::COLUMNS)), SLICE_THREADS,
                   0, stream>>>(made, s->parts, affine, s->x);
        else
            norm_channel_kernel<P, PITCH, RESIDUAL>
                <<<operand_channels(P::COLUMNS), threads_for(P::ROWS), 0, stream>>>(made, affine,
                                                                                    s->x);
    }

    /* Block B and those behind it, from x to x. */
    template <int B> void blocks() {
        constexpr Bottleneck OWN = N::block(B);
        constexpr int FROM = S::from(B);
        using Depthwise = ChannelDepthwise<N::IMAGES, S::side(B), OWN.kernel, OWN.stride>;
        using Expand = Pointwise<S::values(B), OWN.hidden, FROM>;
        using Project = Pointwise<S::values(B + 1), OWN.to, OWN.hidden>;
        const BottleneckWeights &w = weights[B];
        Expand::multiply(typename Expand::Operand{{}, s->x}, words[2 * B], s->made, s->parts,
                         stream);
        depthwise_channel_kernel<Depthwise, Expand, operand_pitch(Depthwise::RESULTS), Relu6>
            <<<operand_channels(OWN.hidden), Depthwise::THREADS, 0, stream>>>(
                s->made, s->parts, w.expand_norm, w.depthwise, w.depthwise_norm, s->hidden);
        Project::multiply(typename Project::Operand{{}, s->hidden}, words[2 * B + 1], s->made,
                          s->parts, stream);
        norm<Project, N::RESIDUALS && OWN.stride == 1 && OWN.to == FROM>(s->made, w.project_norm);
        if constexpr (B + 1 < N::BLOCKS) blocks<B + 1>();
    }

    void head(const float *weight, const float *bias, float *out) {
        using P = Pointwise<S::values(N::BLOCKS), N::FEATURES, S::from(N::BLOCKS)>;
        P::multiply(typename P::Operand{{}, s->x}, words[2 * N::BLOCKS], s->made, s->parts, stream);
        means_channel_kernel<P, N::IMAGES, typename N::HeadAct>
            <<<N::FEATURES, threads_for(P::ROWS), 0, stream>>>(
                s->made, weights[N::BLOCKS].expand_norm, s->means);
        few_rows<N::IMAGES, N::FEATURES, N::CLASSES>(s->means, weight, AddBias{bias}, out, stream);
    }
};

/* Enqueues the network; `weights` are those of its blocks, and the last convolution's behind them.
 */
template <class N>
static void inverted_bottlenecks(const float *x, const float *stem, const Affine &stem_norm,
                                 const BottleneckWeights *weights, const float *weight,
                                 const float *bias, float *out, void *scratch,
                                 cudaStream_t stream) {
    BottleneckNet<N> net = {weights, (BottleneckScratch<N> *)scratch, stream, {}};
    net.split_filters();
    net.stem(x, stem, stem_norm);
    net.first();
    net.template blocks<1>();
    net.head(weight, bias, out);
}

} // namespace kp
