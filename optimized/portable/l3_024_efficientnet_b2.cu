// provenance: shipped
/* EfficientNet-B2, in which squeeze and excitation replaces what it would scale: x [2][3][224][224]
 * -> [2][1000]. A stem, 3 x 3 with stride 2; a block of a 1 x 1 and a depthwise convolution, whose
 * means alone go on, through three 1 x 1 convolutions; four blocks, a 1 x 1 and a linear layer of
 * one pixel an image. Batch norms are by the batch's own statistics, there of two values.
 *
 * Idea: the first two convolutions are products (product.cuh), the depthwise one has a channel a
 * block, and means of it in the end (channel_depthwise.cuh). All else are products of a matrix with
 * two vectors: a warp has a row of the weight and both images, so that batch norms, and the
 * depthwise convolution of one pixel, one of its weights, are its epilogue. A norm of two values
 * makes errors up to 316 times as large: 1 / sqrt(eps).
 * Floor: 27 MiB, 6 us; 0.27 GFLOP of products. 27 kernels wait for each other.
 * Measured on an H200: 149 us, 4 % of the bytes' floor; 95 predicted. */
#include "task.h"
#include "channel_depthwise.cuh"
#include "convolve.cuh"
#include "pointwise.cuh"

constexpr int IMAGES = X_DIM0, STEM = CONV1_WEIGHT_DIM0, CLASSES = FC_WEIGHT_DIM0;
constexpr int FEATURES = CONV_FINAL_WEIGHT_DIM0, SIDE = (X_DIM2 - 1) / 2 + 1;
constexpr int HIDDEN = MBCONV1_0_WEIGHT_DIM0, VALUES = IMAGES * SIDE * SIDE, BLOCKS = 5;
static_assert(X_DIM2 == X_DIM3 && MBCONV1_3_WEIGHT_DIM2 == 3, "squares");

/* A block's parameters as struct Inputs has them, and its channels. */
struct Weights {
    const float *expand;
    kp::Affine expand_norm;
    const float *depthwise;
    kp::Affine depthwise_norm;
    const float *squeeze, *excite, *project;
    kp::Affine project_norm;
};
static_assert(sizeof(struct Inputs) == (1 + 3 + 11 * BLOCKS + 3 + 2) * sizeof(float *),
              "no others");
struct Channels {
    int hidden, squeezed, to;
};
#define BLOCK(n) \
    { MBCONV##n##_0_WEIGHT_DIM0, MBCONV##n##_7_WEIGHT_DIM0, MBCONV##n##_11_WEIGHT_DIM0 }
constexpr Channels TABLE[BLOCKS] = {BLOCK(1), BLOCK(2), BLOCK(3), BLOCK(4), BLOCK(5)};
constexpr int TAPS = MBCONV2_3_WEIGHT_DIM2 * MBCONV2_3_WEIGHT_DIM3;
static_assert(TAPS == 9 && MBCONV5_3_WEIGHT_DIM2 == 3, "one of the weights meets the pixel");

/* ---- one pixel an image ---- */

/* v = act(norm of v[IMAGES]) by the biased variance. */
template <class Act>
__device__ __forceinline__ void norm_images(float (&v)[IMAGES], const kp::Affine &affine, int at,
                                            const Act &act) {
    double mean = 0.0, square = 0.0;
#pragma unroll
    for (int m = 0; m < IMAGES; m++) mean += (double)v[m] / IMAGES;
#pragma unroll
    for (int m = 0; m < IMAGES; m++) square += (v[m] - mean) * (v[m] - mean);
    const double scale = __ldg(affine.weight + at) / sqrt(square / IMAGES + kp::BATCH_NORM_EPS);
#pragma unroll
    for (int m = 0; m < IMAGES; m++)
        v[m] = act((float)((v[m] - mean) * scale + __ldg(affine.bias + at)));
}

struct Nothing {
    __device__ __forceinline__ float operator()(float v) const { return v; }
};

/* Epilogues of row `at`. */
template <class Act> struct Each {
    __device__ __forceinline__ void operator()(float (&v)[IMAGES], int) const {
#pragma unroll
        for (int m = 0; m < IMAGES; m++) v[m] = Act()(v[m]);
    }
};
template <class Act> struct Normed {
    kp::Affine norm;
    __device__ __forceinline__ void operator()(float (&v)[IMAGES], int at) const {
        norm_images(v, norm, at, Act());
    }
};
struct NormedTwice { /* and a depthwise convolution between */
    kp::Affine norm;
    const float *weight;
    kp::Affine second;
    __device__ __forceinline__ void operator()(float (&v)[IMAGES], int at) const {
        norm_images(v, norm, at, kp::Relu());
#pragma unroll
        for (int m = 0; m < IMAGES; m++) v[m] *= __ldg(weight + at * TAPS + TAPS / 2);
        norm_images(v, second, at, kp::Relu());
    }
};
struct Biased {
    const float *bias;
    __device__ __forceinline__ void operator()(float (&v)[IMAGES], int at) const {
#pragma unroll
        for (int m = 0; m < IMAGES; m++) v[m] += __ldg(bias + at);
    }
};

constexpr int WARPS = 4;

/* out[image][row] = f(weight[row] * x[image]). A warp a row. */
template <int FROM, int TO, class F>
__global__ void __launch_bounds__(32 * WARPS)
    vectors_kernel(const float *__restrict__ x, const float *__restrict__ weight, F f,
                   float *__restrict__ out) {
    static_assert(FROM % 4 == 0, "whole float4");
    const int row = blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= TO) return;
    float sum[IMAGES] = {};
#pragma unroll 7
    for (int k = threadIdx.x % 32; k < FROM / 4; k += 32) {
        const float4 w = __ldg((const float4 *)(weight + row * FROM) + k);
#pragma unroll
        for (int m = 0; m < IMAGES; m++) {
            const float4 a = __ldg((const float4 *)(x + m * FROM) + k);
            sum[m] += w.x * a.x + w.y * a.y + w.z * a.z + w.w * a.w;
        }
    }
#pragma unroll
    for (int m = 0; m < IMAGES; m++) sum[m] = warp_reduce(sum[m], Add());
    f(sum, row);
#pragma unroll
    for (int m = 0; m < IMAGES; m++)
        if (threadIdx.x % 32 == 0) out[m * TO + row] = sum[m];
}

template <int FROM, int TO, class F>
static void vectors(const float *x, const float *weight, const F &f, float *out,
                    cudaStream_t stream) {
    vectors_kernel<FROM, TO>
        <<<(TO + WARPS - 1) / WARPS, 32 * WARPS, 0, stream>>>(x, weight, f, out);
}

/* ---- the first block ---- */

using Stem =
    kp::Convolution<IMAGES, X_DIM1, STEM, 1, kp::Axis<X_DIM3, 3, 2, 1>, kp::Axis<X_DIM2, 3, 2, 1>>;
using StoreStem = kp::StoreColumns<kp::Same, Stem::ROWS, STEM>;
using Tile = kp::PointwiseTile;
using Expand = kp::Pointwise<VALUES, HIDDEN, STEM, true>;
using StemRelu = kp::MappedAcross<kp::MapNormAct<kp::Relu>, VALUES, STEM>;
using Depthwise = kp::ChannelDepthwise<IMAGES, SIDE, 3, 1>;

/* means[image][channel] = the mean of relu(norm of the convolution of relu(norm of x)). A block a
 * channel. */
__global__ void __launch_bounds__(Depthwise::THREADS, 1)
    depthwise_means_kernel(const float *__restrict__ x, const kp::Centred *__restrict__ parts,
                           kp::Affine before, const float *__restrict__ weight, kp::Affine after,
                           float *__restrict__ means) {
    using D = Depthwise;
    const kp::NormAct<kp::Relu> f = {
        kp::join_channel<D::THREADS, Expand::Parts>(parts, blockIdx.x, before)};
    float v[D::EACH];
    x += (long long)blockIdx.x * VALUES;
    D::make(
        weight + blockIdx.x * D::TAPS, [&](int at) { return f(__ldg(x + at)); }, v);
    const kp::NormAct<kp::Relu> g = {kp::norm_of_block<D::THREADS, VALUES>(
        v, [](int i) { return D::inside(i); }, __ldg(after.weight + blockIdx.x),
        __ldg(after.bias + blockIdx.x), kp::BATCH_NORM_EPS)};
    for (int m = 0; m < IMAGES; m++) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < D::EACH; i++)
            if (D::inside(i) && D::unit(i / D::ROWS).image == m) sum += g(v[i]);
        sum = block_reduce<D::THREADS>(sum, Add());
        if (threadIdx.x == 0) means[m * HIDDEN + blockIdx.x] = sum * (1.0f / (SIDE * SIDE));
    }
}

struct Scratch {
    alignas(16) char stem_split[kp::split_bytes<Stem, Tile>()];
    alignas(16) char split[kp::split_bytes<Expand::Sizes, Tile>()];
    alignas(16) float stem[VALUES * STEM], expanded[VALUES * HIDDEN];
    alignas(16) float a[IMAGES * 4096], b[IMAGES * 4096];
    kp::ChannelNorm norm[STEM];
    kp::Centred parts[(VALUES + 31) / 32 * (STEM > HIDDEN ? STEM : HIDDEN)];
};
static_assert(TABLE[4].hidden <= 4096 && FEATURES <= 4096, "vectors");

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

/* ---- the network ---- */

/* Block B and those behind it, from b to b; of the first what follows the means, which are in a. */
template <int B> static void blocks(const Weights *w, Scratch *s, cudaStream_t stream) {
    constexpr Channels OWN = TABLE[B];
    if constexpr (B > 0)
        vectors<TABLE[B - 1].to, OWN.hidden>(
            s->b, w[B].expand, NormedTwice{w[B].expand_norm, w[B].depthwise, w[B].depthwise_norm},
            s->a, stream);
    vectors<OWN.hidden, OWN.squeezed>(s->a, w[B].squeeze, Each<kp::Relu>(), s->b, stream);
    vectors<OWN.squeezed, OWN.hidden>(s->b, w[B].excite, Each<kp::Sigmoid>(), s->a, stream);
    vectors<OWN.hidden, OWN.to>(s->a, w[B].project, Normed<Nothing>{w[B].project_norm}, s->b,
                                stream);
    if constexpr (B + 1 < BLOCKS) blocks<B + 1>(w, s, stream);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Scratch *s = (Scratch *)scratch;
    const Weights *w = (const Weights *)&in->mbconv1_0_weight;
    const kp::WithMoments<Stem, StoreStem> stem = {{{}, s->stem}, s->parts};
    kp::product<Stem, Tile>(kp::Patches<Stem>{{}, in->x}, kp::Filters<Stem>{in->conv1_weight}, stem,
                            s->stem_split, stream);
    kp::join_channels<kp::ProductParts<Stem>>(s->parts, in->bn1_weight, in->bn1_bias,
                                              kp::BATCH_NORM_EPS, s->norm, stream);
    const kp::WithMoments<Expand::Sizes, Expand::Store> expanded = {{{}, s->expanded}, s->parts};
    kp::product<Expand::Sizes, Tile>(StemRelu{{{}, s->stem}, {s->norm}},
                                     kp::Along<HIDDEN, STEM>{{}, w->expand}, expanded, s->split,
                                     stream);
    depthwise_means_kernel<<<HIDDEN, Depthwise::THREADS, 0, stream>>>(
        s->expanded, s->parts, w->expand_norm, w->depthwise, w->depthwise_norm, s->a);
    blocks<0>(w, s, stream);
    vectors<TABLE[BLOCKS - 1].to, FEATURES>(
        s->b, in->conv_final_weight, Normed<kp::Relu>{{in->bn_final_weight, in->bn_final_bias}},
        s->a, stream);
    vectors<FEATURES, CLASSES>(s->a, in->fc_weight, Biased{in->fc_bias}, out->out, stream);
}
