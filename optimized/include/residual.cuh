/* residual.cuh: what networks of residual blocks share, with batch norms by the batch's own
 * statistics: a convolution and a pool to begin with; the norm behind a convolution that was summed
 * in parts; the means behind the last one.
 *
 * Activations are [channel][image][pixel], so that a channel is one run (whole_channels.cuh).
 *
 * Idea: the first convolution's epilogue gathers its statistics (channel_norm.cuh), and the pool
 * applies its norm. Behind others a block has a channel: it adds the parts, normalises, adds the
 * residual, ReLU, and stores, or makes means. What limits it: bytes, most of them in the L2 cache,
 * and the launches. Reaches 14 to 25 % of the products' floor (l3_009, l3_010). */
#pragma once
#include "activations.cuh"
#include "convolve.cuh"
#include "extremes.cuh"
#include "whole_channels.cuh"

namespace kp {

/* A convolution with its norm, as they follow each other in struct Inputs. */
struct NormedLayer {
    const float *filters, *weight, *bias;
};

/* ---- the beginning ---- */

/* A convolution with stride 2 of [IMAGES][FROM][SIDE][SIDE], norm, ReLU, and the largest of windows
 * of 3 x 3, stride 2, padding 1: OUT x OUT. PITCH: from a channel to the next. */
template <int IMAGES_, int FROM, int CHANNELS_, int SIDE, int KERNEL, class T_, int PITCH_ = 0>
struct Stem {
    using T = T_;
    using Of = Convolution<IMAGES_, FROM, CHANNELS_, 1, Axis<SIDE, KERNEL, 2, KERNEL / 2>,
                           Axis<SIDE, KERNEL, 2, KERNEL / 2>>;
    using Parts = ProductParts<Of>;
    static constexpr int IMAGES = IMAGES_, CHANNELS = CHANNELS_;
    static constexpr int IN = Of::X::OUT, OUT = (IN - 1) / 2 + 1, VALUES = IMAGES * OUT * OUT;
    static constexpr int PITCH = PITCH_ ? PITCH_ : VALUES;

    struct Scratch {
        alignas(16) char split[split_bytes<Of, T>()];
        alignas(16) float made[Of::ROWS * CHANNELS];
        Centred moments[Parts::COUNT * CHANNELS];
        ChannelNorm norm[CHANNELS];
    };
};

constexpr int STEM_THREADS = 128;

/* y = the largest of relu(norm(x)) in the windows. A thread a value. */
template <class S>
__global__ void __launch_bounds__(STEM_THREADS)
    stem_pool_kernel(const float *__restrict__ x, const ChannelNorm *norms, float *__restrict__ y) {
    constexpr int IN = S::IN, OUT = S::OUT;
    const int at = blockIdx.x * STEM_THREADS + threadIdx.x, channel = at / S::VALUES;
    if (channel >= S::CHANNELS) return;
    const int plane = at / (OUT * OUT), top = at / OUT % OUT * 2 - 1, left = at % OUT * 2 - 1;
    const ChannelNorm norm = ChannelNorm::of(norms, channel);
    float most = 0.0f; /* ReLU leaves nothing below */
#pragma unroll
    for (int t = 0; t < 9; t++) {
        const int row = top + t / 3, column = left + t % 3;
        if ((unsigned)row < (unsigned)IN && (unsigned)column < (unsigned)IN)
            most = larger(most, norm(__ldg(x + (plane * IN + row) * IN + column)));
    }
    y[channel * S::PITCH + at % S::VALUES] = most;
}

/* Enqueues all of it, from x to y. */
template <class S>
static void begin_network(const float *x, const NormedLayer &layer, float *y,
                          typename S::Scratch &s, cudaStream_t stream) {
    using Of = typename S::Of;
    using Store = StoreColumns<Same, Of::ROWS, Of::COLUMNS>;
    constexpr int BLOCKS = (S::CHANNELS * S::VALUES + STEM_THREADS - 1) / STEM_THREADS;
    const WithMoments<Of, Store> store = {{{}, s.made}, s.moments};
    product<Of, typename S::T>(Patches<Of>{{}, x}, Filters<Of>{layer.filters}, store, s.split,
                               stream);
    join_channels<typename S::Parts>(s.moments, layer.weight, layer.bias, BATCH_NORM_EPS, s.norm,
                                     stream);
    stem_pool_kernel<S><<<BLOCKS, STEM_THREADS, 0, stream>>>(s.made, s.norm, y);
}

/* ---- behind other convolutions ---- */

/* Parts [part][channel][value]: the first `filters` channels are the own layer's, further ones the
 * other's, which have no ReLU. residual may be null, and may be out. */
struct PartNorm {
    const float *parts;
    NormedLayer own, other;
    long long filters; /* as a kernel parameter it has no padding */
    const float *residual;
    float *out;
};

__host__ __device__ constexpr int part_threads(int values) {
    return values > 16384  ? 1024
           : values > 4096 ? 512
           : values > 1024 ? 256
           : values > 256  ? 128
                           : 64;
}

/* out[channel] = relu(norm of the sum of its PARTS, or OTHER, parts + residual); or, of so many
 * MEANS, out[image][channel] = the mean of that. A block a channel. */
template <int VALUES, int PARTS, int OTHER, int MEANS>
__global__ void __launch_bounds__(part_threads(VALUES), 1) part_norm_kernel(PartNorm n) {
    constexpr int THREADS = part_threads(VALUES), TWOS = VALUES / 2;
    constexpr int EACH = (TWOS + THREADS - 1) / THREADS;
    constexpr int IMAGES = MEANS ? MEANS : 1, PIXELS = VALUES / IMAGES;
    constexpr int TOGETHER = EACH > 8 ? 1 : EACH > 4 ? 2 : EACH > 2 ? 4 : 8;
    static_assert(VALUES % 2 == 0, "whole float2");
    const int channel = blockIdx.x, channels = gridDim.x;
    const bool own = channel < n.filters;
    const int filter = own ? channel : channel - (int)n.filters;
    const long long first = (long long)channel * TWOS;
    const float2 *from = (const float2 *)n.parts + first;
    float v[2 * EACH] = {};
#pragma unroll TOGETHER
    for (int p = 0; p < (own ? PARTS : OTHER); p++)
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int at = threadIdx.x + i * THREADS;
            if (at >= TWOS) break;
            const float2 part = __ldg(from + (long long)p * channels * TWOS + at);
            v[2 * i] += part.x, v[2 * i + 1] += part.y;
        }
    const auto inside = [](int i) { return (int)threadIdx.x + i / 2 * THREADS < TWOS; };
    const ChannelNorm norm = norm_of_block<THREADS, VALUES>(
        v, inside, __ldg((own ? n.own : n.other).weight + filter),
        __ldg((own ? n.own : n.other).bias + filter), BATCH_NORM_EPS);
    float of_image[IMAGES] = {};
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int at = threadIdx.x + i * THREADS;
        if (at >= TWOS) break;
        float2 y = make_float2(norm(v[2 * i]), norm(v[2 * i + 1]));
        if (n.residual) {
            const float2 r = ((const float2 *)n.residual)[first + at];
            y.x += r.x, y.y += r.y;
        }
        if (own) y = make_float2(Relu()(y.x), Relu()(y.y));
        if (!MEANS) ((float2 *)n.out)[first + at] = y;
#pragma unroll
        for (int m = 0; m < MEANS; m++) {
            if (2 * at / PIXELS == m) of_image[m] += y.x;
            if ((2 * at + 1) / PIXELS == m) of_image[m] += y.y;
        }
    }
#pragma unroll
    for (int m = 0; m < MEANS; m++) {
        const float all = block_reduce<THREADS>(of_image[m], Add());
        if (threadIdx.x == 0) n.out[m * channels + channel] = all * (1.0f / PIXELS);
    }
}

template <int VALUES, int PARTS, int OTHER = PARTS, int MEANS = 0>
static void part_norm(const PartNorm &n, int channels, cudaStream_t stream) {
    part_norm_kernel<VALUES, PARTS, OTHER, MEANS><<<channels, part_threads(VALUES), 0, stream>>>(n);
}

} // namespace kp
