// provenance: shipped
/* A network of three stages: x [8][3][224][224] -> [8][10]. A stage is twice a 3 x 3 convolution
 * with bias, batch norm by the batch's own statistics and ReLU, then the largest of windows of
 * 2 x 2; 64, 128 and 256 channels. Means of planes and a linear layer end it.
 *
 * Idea: products at fp32 accuracy (convolve.cuh) that gather the statistics of what they make
 * (channel_norm.cuh). The first convolution is computed twice instead of being stored and read.
 * A norm rises, or falls, with its value, as the sign of its weight says: so a convolution before a
 * pool stores of each window (convolve_pool.cuh) only the largest, or the smallest, and the norm
 * follows. The last stage has tiles for 1.5 rounds of all multiprocessors: its depth is in two
 * parts, for 3 half rounds, and a kernel that has a channel a block adds them, normalises, and
 * after the last convolution joins windows and means.
 * Floor: 120 GFLOP of products with residuals in bf16, 600 us; 0.5 GiB moved, 0.12 ms.
 * Measured on an H200: 1.17 ms, 51 % of the floor; 1.0 predicted.
 * Spills 32 bytes a thread (stored and loaded) in the third convolution, on sm_90a. */
#include "task.h"
#include <algorithm>
#include "activations.cuh"
#include "extremes.cuh"
#include "few_rows.cuh"
#include "group_stores.cuh"
#include "vgg.cuh"
#include "whole_channels.cuh"

constexpr int IMAGES = X_DIM0, SIDE = X_DIM2, CLASSES = FC_WEIGHT_DIM0;
constexpr int A = FEATURE_EXTRACTOR_0_0_WEIGHT_DIM0, B = FEATURE_EXTRACTOR_1_0_WEIGHT_DIM0;
constexpr int C = FEATURE_EXTRACTOR_2_0_WEIGHT_DIM0;
constexpr double EPS = 1e-5;
static_assert(X_DIM3 == SIDE && SIDE % 8 == 0 && FC_WEIGHT_DIM1 == C, "whole windows");

struct Layer { /* as they follow each other in struct Inputs */
    const float *filters, *bias, *weight, *shift;
};
static_assert(sizeof(struct Inputs) == (1 + 6 * 4 + 2) * sizeof(float *), "x, layers, fc");

template <int STAGE, int FROM, int TO>
using Conv = kp::Convolution<IMAGES, FROM, TO, 1, kp::Axis<(SIDE >> STAGE), 3, 1, 1>,
                             kp::Axis<(SIDE >> STAGE), 3, 1, 1>>;
using Conv1 = Conv<0, X_DIM1, A>;
using Conv2 = Conv<0, A, A>;
using Conv3 = Conv<1, A, B>;
using Conv4 = Conv<1, B, B>;
using Conv5 = kp::InParts<Conv<2, B, C>, 2>;
using Conv6 = kp::InParts<Conv<2, C, C>, 2>;
template <class Of> using TileOf = kp::TileFor<Of, Of::FILTERS <= 64 ? 64 : 128>;

struct BiasNormRelu {
    const float *bias;
    const kp::ChannelNorm *norm;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        return kp::Relu()(kp::ChannelNorm::of(norm, filter)(v + __ldg(bias + filter)));
    }
};

/* Of each window the value whose norm is the largest to out[image][filter][window]. */
template <class Of> struct StoreTops {
    const float *weight; /* the norm's */
    float *out;
    template <class P>
    __device__ __forceinline__ void tile(const P &part, int, int row, int column) const {
        static_assert(!P::ALONG_DEPTH, "a thread's rows are neighbours");
        constexpr int WINDOWS = Of::PIXELS / 4;
        if (!kp::whole_tiles(Of::ROWS) && row >= Of::ROWS) return;
        float *to = out + (long long)(row / Of::PIXELS * Of::FILTERS + column) * WINDOWS +
                    row % Of::PIXELS / 4;
#pragma unroll
        for (int j = 0; j < P::N / 8; j++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const int n = 8 * j + e;
                if (Of::COLUMNS % P::N && column + n >= Of::COLUMNS) continue;
                const float a = part.v[0][4 * j + e], b = part.v[0][4 * j + 2 + e];
                const float c = part.v[1][4 * j + e], d = part.v[1][4 * j + 2 + e];
                to[n * WINDOWS] = __ldg(weight + column + n) < 0.0f
                                      ? kp::smaller(kp::smaller(a, b), kp::smaller(c, d))
                                      : kp::larger(kp::larger(a, b), kp::larger(c, d));
            }
    }
};

/* x = relu(norm of x), planes of AREA. Grid: all of x, four float4 a thread. */
constexpr int THREADS = 256;
template <int AREA>
__global__ void __launch_bounds__(THREADS)
    norm_kernel(float *x, const kp::ChannelNorm *norms, int channels, int fours) {
    static_assert(AREA % 4 == 0, "whole float4");
    const int first = blockIdx.x * (4 * THREADS) + threadIdx.x;
    const kp::Relu relu;
    float4 v[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (first + i * THREADS < fours) v[i] = ((const float4 *)x)[first + i * THREADS];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int at = first + i * THREADS;
        if (at >= fours) break;
        const auto norm = kp::ChannelNorm::of(norms, at / (AREA / 4) % channels);
        ((float4 *)x)[at] = make_float4(relu(norm(v[i].x)), relu(norm(v[i].y)), relu(norm(v[i].z)),
                                        relu(norm(v[i].w)));
    }
}

/* Parts of a last convolution, [part][channel][image][pixel]: adds them, bias, norm and ReLU, to
 * out[image][channel][pixel]; LAST: a pixel's neighbours are its window, and out[image][channel] is
 * the mean of the windows' largest. A block a channel. */
constexpr int CHANNEL_THREADS = Conv6::ROWS > 4096 ? 1024 : 128;
template <class Of, bool LAST>
__global__ void __launch_bounds__(CHANNEL_THREADS, 1)
    channel_kernel(const float *__restrict__ parts, Layer layer, float *__restrict__ out) {
    constexpr int VALUES = (int)Of::ROWS, FOURS = VALUES / 4, OF_IMAGE = Of::PIXELS / 4;
    constexpr int EACH = (FOURS + CHANNEL_THREADS - 1) / CHANNEL_THREADS;
    static_assert(Of::PIXELS % 4 == 0, "whole float4");
    const int channel = blockIdx.x;
    const float bias = __ldg(layer.bias + channel);
    float v[4 * EACH] = {};
    const auto inside = [](int i) { return (int)threadIdx.x + i / 4 * CHANNEL_THREADS < FOURS; };
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        if (!inside(4 * i)) break;
        const float4 *from = (const float4 *)(parts + (long long)channel * VALUES) + threadIdx.x +
                             i * CHANNEL_THREADS;
#pragma unroll
        for (int p = 0; p < Of::PARTS; p++) {
            const float4 f = __ldg(from + p * (Of::PART / 4));
            v[4 * i] += f.x, v[4 * i + 1] += f.y, v[4 * i + 2] += f.z, v[4 * i + 3] += f.w;
        }
#pragma unroll
        for (int e = 0; e < 4; e++) v[4 * i + e] += bias;
    }
    const kp::ChannelNorm norm = kp::norm_of_block<CHANNEL_THREADS, VALUES>(
        v, inside, __ldg(layer.weight + channel), __ldg(layer.shift + channel), EPS);
    float of_image[IMAGES] = {};
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int at = threadIdx.x + i * CHANNEL_THREADS, image = at / OF_IMAGE;
        if (at >= FOURS) break;
        float4 y =
            make_float4(norm(v[4 * i]), norm(v[4 * i + 1]), norm(v[4 * i + 2]), norm(v[4 * i + 3]));
        const kp::Relu relu;
        y = make_float4(relu(y.x), relu(y.y), relu(y.z), relu(y.w));
        if (!LAST)
            ((float4 *)out)[(image * Of::FILTERS + channel) * OF_IMAGE + at % OF_IMAGE] = y;
        else
#pragma unroll
            for (int m = 0; m < IMAGES; m++)
                if (m == image)
                    of_image[m] += kp::larger(kp::larger(y.x, y.y), kp::larger(y.z, y.w));
    }
#pragma unroll
    for (int m = 0; LAST && m < IMAGES; m++) {
        const float all = block_reduce<CHANNEL_THREADS>(of_image[m], Add());
        if (threadIdx.x == 0) out[m * Of::FILTERS + channel] = all * (1.0f / OF_IMAGE);
    }
}

/* ---- the network ---- */

constexpr size_t FULL = (size_t)IMAGES * A * SIDE * SIDE;
static_assert(B <= 4 * A && C <= 16 * A, "the first stage has the most");
struct Scratch {
    alignas(16) float full[FULL], half[FULL], means[IMAGES * C];
    alignas(16) float parts[2 * std::max(Conv5::PART, Conv6::PART)];
    kp::Centred moments[std::max({kp::ProductParts<Conv1>::BYTES, kp::ProductParts<Conv2>::BYTES,
                                  kp::ProductParts<Conv3>::BYTES, kp::ProductParts<Conv4>::BYTES}) /
                        sizeof(kp::Centred)];
    kp::ChannelNorm norms[std::max(A, B)];
    alignas(16) char split[std::max(
        {kp::split_bytes<Conv1, TileOf<Conv1>>(), kp::split_bytes<Conv2, TileOf<Conv2>>(),
         kp::split_bytes<Conv3, TileOf<Conv3>>(), kp::split_bytes<Conv4, TileOf<Conv4>>(),
         kp::split_bytes<Conv5, TileOf<Conv5>>(), kp::split_bytes<Conv6, TileOf<Conv6>>()})];
};

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

/* Enqueues a convolution, which `base` stores, and s->norms. */
template <class Of, class Patches, class Base>
static void convolve(const Layer &layer, const Patches &patches, const Base &base, Scratch *s,
                     cudaStream_t stream) {
    const kp::OverValues<Of, kp::AddBias, kp::WithMoments<Of, Base>> store = {{base, s->moments},
                                                                              {layer.bias}};
    kp::product<Of, TileOf<Of>>(patches, kp::Filters<Of>{layer.filters}, store, s->split, stream);
    kp::join_channels<kp::ProductParts<Of>>(s->moments, layer.weight, layer.shift, EPS, s->norms,
                                            stream);
}

/* Enqueues x = relu(norm of x), of CHANNELS planes of AREA an image. */
template <int AREA, int CHANNELS> static void normalise(float *x, Scratch *s, cudaStream_t stream) {
    constexpr int FOURS = IMAGES * CHANNELS * AREA / 4;
    norm_kernel<AREA><<<(FOURS + 4 * THREADS - 1) / (4 * THREADS), THREADS, 0, stream>>>(
        x, s->norms, CHANNELS, FOURS);
}

/* Enqueues a convolution of the last stage, all of it. */
template <class Of, bool LAST, class Patches>
static void convolve_in_parts(const Layer &layer, const Patches &patches, float *out, Scratch *s,
                              cudaStream_t stream) {
    const kp::StoreColumns<kp::Same, Of::ROWS, Of::FILTERS, Of::PART> store = {{}, s->parts};
    kp::product<Of, TileOf<Of>>(patches, kp::Filters<Of>{layer.filters}, store, s->split, stream);
    channel_kernel<Of, LAST><<<C, CHANNEL_THREADS, 0, stream>>>(s->parts, layer, out);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Scratch *s = (Scratch *)scratch;
    const Layer *layer = (const Layer *)&in->feature_extractor_0_0_weight;
    float *full = s->full, *half = s->half;
    const kp::Patches<Conv1> patches = {{}, in->x};
    convolve<Conv1>(layer[0], patches, kp::StoreNothing(), s, stream);
    kp::multiply<Conv1, TileOf<Conv1>>(
        patches, (const float *)s->split,
        kp::StorePixels<BiasNormRelu, Conv1>{{layer[0].bias, s->norms}, full}, stream);
    convolve<Conv2>(layer[1], kp::WindowPatches<Conv2>{{{}, full}},
                    StoreTops<Conv2>{layer[1].weight, half}, s, stream);
    normalise<Conv2::PIXELS / 4, A>(half, s, stream);
    convolve<Conv3>(layer[2], kp::Patches<Conv3>{{}, half},
                    kp::StorePixels<kp::Same, Conv3>{{}, full}, s, stream);
    normalise<Conv3::PIXELS, B>(full, s, stream);
    convolve<Conv4>(layer[3], kp::WindowPatches<Conv4>{{{}, full}},
                    StoreTops<Conv4>{layer[3].weight, half}, s, stream);
    normalise<Conv4::PIXELS / 4, B>(half, s, stream);
    convolve_in_parts<Conv5, false>(layer[4], kp::Patches<Conv5>{{}, half}, full, s, stream);
    convolve_in_parts<Conv6, true>(layer[5], kp::WindowPatches<Conv<2, C, C>>{{{}, full}}, s->means,
                                   s, stream);
    kp::few_rows<IMAGES, C, CLASSES>(s->means, in->fc_weight, kp::AddBias{in->fc_bias}, out->out,
                                     stream);
}
