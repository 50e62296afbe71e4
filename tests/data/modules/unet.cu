// provenance: shipped
/* A U-Net of two levels, image [2][3][64][64] -> [2][4][64][64]: pairs of 3 x 3 convolutions, each
 * with batch norm by the batch's own statistics and ReLU; pools on the way down, transposed
 * convolutions on the way up, and what was there before the pool beside their result.
 *
 * Idea: convolutions (convolve.cuh) that gather the statistics of what they make
 * (channel_norm.cuh); a pass applies norm and ReLU, and writes to where the next one reads: one of
 * two parts of a tensor, where two are joined.
 * Floor: 0.4 GFLOP and 10 MB are nothing; some fifty launches of a few microseconds. */
#include "task.h"
#include "activations.cuh"
#include "channel_norm.cuh"
#include "convolve.cuh"

constexpr int BATCH = IMAGE_DIM0, SIDE = IMAGE_DIM2, MOST = BATCH * 32 * SIDE * SIDE;
template <int FROM, int TO, int W>
using Conv3 = kp::Convolution<BATCH, FROM, TO, 1, kp::Axis<W, 3, 1, 1>, kp::Axis<W, 3, 1, 1>>;
template <int FROM, int TO, int W>
using Up =
    kp::Convolution<BATCH, FROM, TO, 1, kp::TransposedAxis<W, 2, 2>, kp::TransposedAxis<W, 2, 2>>;
using Head = kp::Convolution<BATCH, 16, OUT_DIM1, 1, kp::Axis<SIDE, 1>, kp::Axis<SIDE, 1>>;
template <class C> using Tile = kp::TileFor<C, 64>;

struct Scratch {
    float raw[MOST], one[MOST], two[MOST], fine[MOST],
        coarse[MOST]; /* fine and coarse are joined */
    kp::Centred parts[MOST / 16];
    kp::ChannelNorm norm[64];
    alignas(16) char split[1 << 20];
};

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

/* to = relu(norm of y), as channels FIRST and up of ALL. */
template <int CHANNELS, int AREA, int ALL, int FIRST>
__global__ void norm_relu_kernel(const float *__restrict__ y, const kp::ChannelNorm *norm,
                                 float *__restrict__ to) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= BATCH * CHANNELS * AREA) return;
    const int pixel = at % AREA, channel = at / AREA % CHANNELS, image = at / AREA / CHANNELS;
    to[(image * ALL + FIRST + channel) * AREA + pixel] =
        kp::Relu()(kp::ChannelNorm::of(norm, channel)(y[at]));
}

/* to = the largest of 2 x 2 of channels 0 to CHANNELS - 1 of ALL. */
template <int CHANNELS, int W, int ALL>
__global__ void pool_kernel(const float *__restrict__ x, float *__restrict__ to) {
    constexpr int HALF = W / 2;
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= BATCH * CHANNELS * HALF * HALF) return;
    const int column = at % HALF, row = at / HALF % HALF, channel = at / HALF / HALF % CHANNELS;
    const float *p =
        x + ((at / HALF / HALF / CHANNELS * ALL + channel) * W + row * 2) * W + column * 2;
    float most = p[0];
    const float others[] = {p[1], p[W], p[W + 1]};
    for (float v : others)
        if (!(v <= most)) most = v; /* a NaN stays */
    to[at] = most;
}

/* x copied beside what else is joined: channels FIRST and up of ALL. */
template <int CHANNELS, int AREA, int ALL, int FIRST>
__global__ void place_kernel(const float *__restrict__ x, float *__restrict__ to) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= BATCH * CHANNELS * AREA) return;
    to[(at / AREA / CHANNELS * ALL + FIRST + at / AREA % CHANNELS) * AREA + at % AREA] = x[at];
}

constexpr int THREADS = 256;
constexpr int blocks(int elements) {
    return (elements + THREADS - 1) / THREADS;
}

/* Enqueues to = relu(batch norm(convolution of x)). */
template <int FROM, int TO, int W, int ALL = TO, int FIRST = 0>
static void step(const float *x, const float *filters, const float *weight, const float *bias,
                 float *to, Scratch *s, cudaStream_t stream) {
    using C = Conv3<FROM, TO, W>;
    using Parts = kp::ProductParts<C>;
    static_assert(sizeof s->split >= kp::split_bytes<C, Tile<C>>() &&
                      Parts::BYTES <= sizeof s->parts,
                  "scratch");
    const kp::Patches<C> patches = {{}, x};
    const kp::StorePixels<kp::Same, C> base = {{}, s->raw};
    const kp::WithMoments<C, kp::StorePixels<kp::Same, C>> store = {base, s->parts};
    kp::product<C, Tile<C>>(patches, kp::Filters<C>{filters}, store, s->split, stream);
    kp::join_channels<Parts>(s->parts, weight, bias, 1e-5, s->norm, stream);
    norm_relu_kernel<TO, W * W, ALL, FIRST>
        <<<blocks(BATCH * TO * W * W), THREADS, 0, stream>>>(s->raw, s->norm, to);
}

struct Biased {
    const float *bias;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        return v + __ldg(bias + filter);
    }
};

/* Enqueues the transposed convolution of x, twice as wide, as the upper half of the channels of
 * `to`. */
template <int FROM, int TO, int W>
static void up(const float *x, const float *filters, const float *bias, float *to, Scratch *s,
               cudaStream_t stream) {
    using C = Up<FROM, TO, W>;
    static_assert(sizeof s->split >= kp::split_bytes<C, Tile<C>>(), "scratch");
    kp::convolve<C, Tile<C>>(x, filters, s->raw, Biased{bias}, s->split, stream);
    place_kernel<TO, 4 * W * W, 2 * TO, TO>
        <<<blocks(BATCH * TO * 4 * W * W), THREADS, 0, stream>>>(s->raw, to);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    constexpr int W = SIDE, H = SIDE / 2, Q = SIDE / 4;
    Scratch *s = (Scratch *)scratch;
    step<3, 16, W>(in->image, in->down_0_0_weight, in->down_0_1_weight, in->down_0_1_bias, s->one,
                   s, stream);
    step<16, 16, W, 32>(s->one, in->down_0_3_weight, in->down_0_4_weight, in->down_0_4_bias,
                        s->fine, s, stream);
    pool_kernel<16, W, 32><<<blocks(BATCH * 16 * H * H), THREADS, 0, stream>>>(s->fine, s->one);
    step<16, 32, H>(s->one, in->down_1_0_weight, in->down_1_1_weight, in->down_1_1_bias, s->two, s,
                    stream);
    step<32, 32, H, 64>(s->two, in->down_1_3_weight, in->down_1_4_weight, in->down_1_4_bias,
                        s->coarse, s, stream);
    pool_kernel<32, H, 64><<<blocks(BATCH * 32 * Q * Q), THREADS, 0, stream>>>(s->coarse, s->one);
    step<32, 64, Q>(s->one, in->bottom_0_weight, in->bottom_1_weight, in->bottom_1_bias, s->two, s,
                    stream);
    step<64, 64, Q>(s->two, in->bottom_3_weight, in->bottom_4_weight, in->bottom_4_bias, s->one, s,
                    stream);
    up<64, 32, Q>(s->one, in->up_0_weight, in->up_0_bias, s->coarse, s, stream);
    step<64, 32, H>(s->coarse, in->join_0_0_weight, in->join_0_1_weight, in->join_0_1_bias, s->one,
                    s, stream);
    step<32, 32, H>(s->one, in->join_0_3_weight, in->join_0_4_weight, in->join_0_4_bias, s->two, s,
                    stream);
    up<32, 16, H>(s->two, in->up_1_weight, in->up_1_bias, s->fine, s, stream);
    step<32, 16, W>(s->fine, in->join_1_0_weight, in->join_1_1_weight, in->join_1_1_bias, s->one, s,
                    stream);
    step<16, 16, W>(s->one, in->join_1_3_weight, in->join_1_4_weight, in->join_1_4_bias, s->two, s,
                    stream);
    kp::convolve<Head, Tile<Head>>(s->two, in->head_weight, out->out, Biased{in->head_bias},
                                   s->split, stream);
}
