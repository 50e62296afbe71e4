// provenance: shipped
/* A U-Net, x [8][8][64][512] -> [8][4][64][512]: four levels down, by the largest of 2 x 2 pixels,
 * and up, by transposed convolutions beside which what went down is put. A level is twice a 3 x 3
 * convolution with bias, batch norm by the batch's own statistics and softmax along the width; 64
 * to 1024 channels. A 1 x 1 convolution ends it.
 *
 * Idea: products at fp32 accuracy (convolve.cuh) that gather the statistics of what they make
 * (channel_norm.cuh). A kernel then reads their results: norm and softmax of a row in registers,
 * and on the way down the pooling; it writes into the channels behind those that the way up will
 * write. The last one multiplies by the 1 x 1 weights instead of writing. Tiles have as many
 * columns as leave no multiprocessor idle. Three passes in TF32, as a norm may divide by little.
 * Floor: 387 GFLOP of products, three times over the TF32 rate, 2.80 ms; the norms' passes, 0.2 ms.
 * Measured on an H200: 3.97 ms, 76 % of the floor. */
#include "task.h"
#include "channel_norm.cuh"
#include "convolve.cuh"
#include "extremes.cuh"
#include "group_stores.cuh"
#include "states.cuh"

constexpr int IMAGES = X_DIM0, BASE = ENCODER1_DOUBLE_CONV_0_WEIGHT_DIM0, OUTS = OUT_DIM1;
constexpr int THREADS = 256;

/* Level L: 0 is the finest, 4 the bottleneck. A row is LANES lanes' FOURS float4. */
template <int L> struct Level {
    static constexpr int X = X_DIM3 >> L, Y = X_DIM2 >> L, PLANE = X * Y, CHANNELS = BASE << L;
    using Tile = kp::Tile<L == 0 || L == 3 ? 64 : L == 4 ? 32 : 128, kp::Tf32Rest>;
    static constexpr int LANES = X / 4 < 32 ? X / 4 : 32, FOURS = X / 4 / LANES;
    static_assert(X == 4 * LANES * FOURS && (Y % 2 == 0 || L == 4), "whole float4, whole windows");
};

template <int L, int FROM>
using Conv = kp::Convolution<IMAGES, FROM, Level<L>::CHANNELS, 1, kp::Axis<Level<L>::X, 3, 1, 1>,
                             kp::Axis<Level<L>::Y, 3, 1, 1>>;

/* The way up to level L, whose results are the first half of an image's channels. */
template <int L>
struct Up : kp::Convolution<IMAGES, Level<L + 1>::CHANNELS, Level<L>::CHANNELS, 1,
                            kp::TransposedAxis<Level<L + 1>::X, 2, 2>,
                            kp::TransposedAxis<Level<L + 1>::Y, 2, 2>> {
    static constexpr int FILTERS = 2 * Level<L>::CHANNELS; /* in memory */
};

struct Layer {
    const float *weight, *bias, *norm_weight, *norm_bias;
};

/* What scratch holds. */
constexpr size_t FINEST = (size_t)IMAGES * BASE * Level<0>::PLANE;
struct Scratch {
    float raw[FINEST], soft[FINEST]; /* what a convolution makes; softmax of its norm */
    float pooled[FINEST / 4];        /* what the next level down reads */
    float both[4 * FINEST];          /* what convolutions on the way up read */
    kp::Centred parts[(FINEST + 31) / 32 + 1024]; /* of one convolution */
    kp::ChannelNorm norms[Level<4>::CHANNELS];
    alignas(16) char split[kp::split_bytes<Conv<4, Level<4>::CHANNELS>, Level<4>::Tile>()];
};

/* A level's part of `both`: 2, 1, 1 / 2 and 1 / 4 times FINEST. */
template <int L> static float *both(Scratch *s) {
    return s->both + 4 * FINEST - (4 * FINEST >> L);
}

/* v = softmax of the normalised row, of LANES lanes. */
template <int L>
__device__ __forceinline__ void soften_row(const float *__restrict__ row,
                                           const kp::ChannelNorm &norm,
                                           float (&v)[Level<L>::FOURS][4]) {
    constexpr int LANES = Level<L>::LANES, FOURS = Level<L>::FOURS;
    float top = -INFINITY, sum = 0.0f;
#pragma unroll
    for (int j = 0; j < FOURS; j++) {
        const float4 f = __ldg((const float4 *)row + threadIdx.x % LANES + j * LANES);
        v[j][0] = norm(f.x), v[j][1] = norm(f.y), v[j][2] = norm(f.z), v[j][3] = norm(f.w);
        top = fmaxf(top, fmaxf(fmaxf(v[j][0], v[j][1]), fmaxf(v[j][2], v[j][3])));
    }
    top = kp::lanes_max<LANES>(top);
#pragma unroll
    for (int j = 0; j < FOURS; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) sum += v[j][e] = expf(v[j][e] - top);
    const float share = 1.0f / kp::lanes_sum<LANES>(sum);
#pragma unroll
    for (int j = 0; j < FOURS; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) v[j][e] *= share;
}

/* to = softmax of the normalised rows of raw, [IMAGES][CHANNELS][Y][X]. POOL: two rows at a time,
 * of whose windows the largest go to pooled; `to` has twice the channels, and the second half is
 * written. From the end, which was written last. */
template <int L, bool POOL>
__global__ void __launch_bounds__(THREADS)
    soften_kernel(const float *__restrict__ raw, const kp::ChannelNorm *__restrict__ norms,
                  float *__restrict__ to, float *__restrict__ pooled) {
    using Of = Level<L>;
    constexpr int ROWS = POOL ? 2 : 1, ALL = IMAGES * Of::CHANNELS * Of::Y;
    const int block = gridDim.x - 1 - blockIdx.x, lane = threadIdx.x % Of::LANES;
    const int group = (block * THREADS + threadIdx.x) / Of::LANES, row = group * ROWS;
    if (row >= ALL) return; /* of whole warps */
    const int image = row / (Of::CHANNELS * Of::Y);
    const auto norm = kp::ChannelNorm::of(norms, row / Of::Y % Of::CHANNELS);
    if (POOL) to += (image + 1LL) * (Of::CHANNELS * Of::PLANE);
    float v[ROWS][Of::FOURS][4];
#pragma unroll
    for (int r = 0; r < ROWS; r++) soften_row<L>(raw + (row + r) * (long long)Of::X, norm, v[r]);
#pragma unroll
    for (int j = 0; j < Of::FOURS; j++) {
        const int at = lane + j * Of::LANES;
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            ((float4 *)(to + (row + r) * (long long)Of::X))[at] =
                make_float4(v[r][j][0], v[r][j][1], v[r][j][2], v[r][j][3]);
        auto largest = [&](int e) {
            return kp::larger(kp::larger(v[0][j][e], v[0][j][e + 1]),
                              kp::larger(v[ROWS - 1][j][e], v[ROWS - 1][j][e + 1]));
        };
        if (POOL)
            ((float2 *)(pooled + group * (long long)(Of::X / 2)))[at] =
                make_float2(largest(0), largest(2));
    }
}

/* out = the 1 x 1 convolution of softmax of the normalised rows. A block has row y of an image;
 * a warp, or what of it has a row, some of the channels. */
constexpr int GROUPS = THREADS / Level<0>::LANES;
static_assert(BASE % GROUPS == 0, "lanes shuffle together");
__global__ void __launch_bounds__(THREADS)
    finish_kernel(const float *__restrict__ raw, const kp::ChannelNorm *__restrict__ norms,
                  const float *__restrict__ weight, const float *__restrict__ bias,
                  float *__restrict__ out) {
    using Of = Level<0>;
    extern __shared__ float4 sums[]; /* [GROUPS][OUTS][X / 4] */
    const int block = gridDim.x - 1 - blockIdx.x, image = block / Of::Y, y = block % Of::Y;
    const int group = threadIdx.x / Of::LANES, lane = threadIdx.x % Of::LANES;
    float sum[OUTS][Of::FOURS][4] = {};
#pragma unroll 1
    for (int c = group; c < BASE; c += GROUPS) {
        float v[Of::FOURS][4];
        soften_row<0>(raw + ((image * BASE + c) * Of::Y + y) * (long long)Of::X,
                      kp::ChannelNorm::of(norms, c), v);
#pragma unroll
        for (int f = 0; f < OUTS; f++) {
            const float w = __ldg(weight + f * BASE + c);
#pragma unroll
            for (int i = 0; i < 4 * Of::FOURS; i++) sum[f][i / 4][i % 4] += w * v[i / 4][i % 4];
        }
    }
#pragma unroll
    for (int i = 0; i < OUTS * Of::FOURS; i++) {
        const auto &s = sum[i / Of::FOURS][i % Of::FOURS];
        sums[(group * OUTS + i / Of::FOURS) * (Of::X / 4) + i % Of::FOURS * Of::LANES + lane] =
            make_float4(s[0], s[1], s[2], s[3]);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < OUTS * Of::X / 4; i += THREADS) {
        const int f = i / (Of::X / 4), x = i % (Of::X / 4);
        float4 all = sums[i];
#pragma unroll
        for (int g = 1; g < GROUPS; g++) {
            const float4 s = sums[g * (OUTS * Of::X / 4) + i];
            all.x += s.x, all.y += s.y, all.z += s.z, all.w += s.w;
        }
        const float b = __ldg(bias + f);
        ((float4 *)(out + ((image * OUTS + f) * Of::Y + y) * (long long)Of::X))[x] =
            make_float4(all.x + b, all.y + b, all.z + b, all.w + b);
    }
}

/* Enqueues raw = the convolution of `from`, and its norms. */
template <int L, int FROM>
static void convolve(const Layer &layer, const float *from, Scratch *s, cudaStream_t stream) {
    using C = Conv<L, FROM>;
    using Store = kp::OverValues<C, kp::AddBias, kp::WithMoments<C, kp::StorePixels<kp::Same, C>>>;
    using Parts = kp::ProductParts<C>;
    using Tile = typename Level<L>::Tile;
    static_assert(kp::split_bytes<C, Tile>() <= sizeof s->split && Parts::BYTES <= sizeof s->parts,
                  "scratch suffices");
    const kp::Patches<C> patches = {{}, from};
    const Store store = {{{{}, s->raw}, s->parts}, {layer.bias}};
    kp::product<C, Tile>(patches, kp::Filters<C>{layer.weight}, store, s->split, stream);
    kp::join_channels<Parts>(s->parts, layer.norm_weight, layer.norm_bias, 1e-5, s->norms, stream);
}

template <int L, bool POOL> static void soften(Scratch *s, float *to, cudaStream_t stream) {
    constexpr int ALL =
        IMAGES * Level<L>::CHANNELS * Level<L>::Y / (POOL ? 2 : 1) * Level<L>::LANES;
    soften_kernel<L, POOL>
        <<<(ALL + THREADS - 1) / THREADS, THREADS, 0, stream>>>(s->raw, s->norms, to, s->pooled);
}

/* A level on the way down, of `from`, to its part of `both` and to pooled. */
template <int L, int FROM>
static void go_down(const Layer *pair, const float *from, Scratch *s, cudaStream_t stream) {
    convolve<L, FROM>(pair[0], from, s, stream);
    soften<L, false>(s, s->soft, stream);
    convolve<L, Level<L>::CHANNELS>(pair[1], s->soft, s, stream);
    if constexpr (L < 4)
        soften<L, true>(s, both<L>(s), stream);
    else
        soften<L, false>(s, s->soft, stream);
}

/* A level on the way up, of soft, to raw and norms. */
template <int L>
static void go_up(const float *weight, const float *bias, const Layer *pair, Scratch *s,
                  cudaStream_t stream) {
    const kp::Patches<Up<L>> patches = {{}, s->soft};
    const kp::StorePixels<kp::AddBias, Up<L>> store = {{bias}, both<L>(s)};
    kp::product<Up<L>, typename Level<L>::Tile>(patches, kp::Filters<Up<L>>{weight}, store,
                                                s->split, stream);
    convolve<L, 2 * Level<L>::CHANNELS>(pair[0], both<L>(s), s, stream);
    soften<L, false>(s, s->soft, stream);
    convolve<L, Level<L>::CHANNELS>(pair[1], s->soft, s, stream);
    if (L > 0) soften<L, false>(s, s->soft, stream);
}

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

#define LAYER(name, conv, norm)                                                          \
    {                                                                                    \
        in->name##_double_conv_##conv##_weight, in->name##_double_conv_##conv##_bias,    \
            in->name##_double_conv_##norm##_weight, in->name##_double_conv_##norm##_bias \
    }
#define PAIR(name) \
    { LAYER(name, 0, 1), LAYER(name, 3, 4) }

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Scratch *s = (Scratch *)scratch;
    const Layer down[][2] = {PAIR(encoder1), PAIR(encoder2), PAIR(encoder3), PAIR(encoder4),
                             PAIR(bottleneck)};
    const Layer up[][2] = {PAIR(decoder1), PAIR(decoder2), PAIR(decoder3), PAIR(decoder4)};
    go_down<0, X_DIM1>(down[0], in->x, s, stream);
    go_down<1, BASE>(down[1], s->pooled, s, stream);
    go_down<2, 2 * BASE>(down[2], s->pooled, s, stream);
    go_down<3, 4 * BASE>(down[3], s->pooled, s, stream);
    go_down<4, 8 * BASE>(down[4], s->pooled, s, stream);
    go_up<3>(in->upconv4_weight, in->upconv4_bias, up[3], s, stream);
    go_up<2>(in->upconv3_weight, in->upconv3_bias, up[2], s, stream);
    go_up<1>(in->upconv2_weight, in->upconv2_bias, up[1], s, stream);
    go_up<0>(in->upconv1_weight, in->upconv1_bias, up[0], s, stream);
    constexpr int BYTES = GROUPS * OUTS * Level<0>::X * sizeof(float);
    cudaFuncSetAttribute(finish_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
    finish_kernel<<<IMAGES * Level<0>::Y, THREADS, BYTES, stream>>>(
        s->raw, s->norms, in->final_conv_weight, in->final_conv_bias, out->out);
}
