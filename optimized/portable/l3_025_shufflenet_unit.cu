// provenance: shipped
/* A shuffle unit, x [10][240][224][224] -> [10][480][224][224]: 1 x 1 convolution to 120 channels
 * in three groups, batch norm, ReLU; depthwise 3 x 3 convolution, batch norm; channels shuffled; 1
 * x 1 convolution to 480 channels in three groups, batch norm, ReLU; plus a 1 x 1 convolution of x
 * with batch norm. Norms are by the batch's own statistics.
 *
 * Idea: products an image (product.cuh), each group's by itself, that gather the statistics of what
 * they make (channel_norm.cuh); what reads that normalises it. The shortcut is made first, into the
 * output. The last convolution, of depth 40, is computed twice instead of being stored and read:
 * for its statistics, then with its norm, ReLU and the normalised shortcut in its epilogue. Its
 * operand finds shuffled channels where they are.
 * Floor: 146 GFLOP of products in three passes in TF32, 1052 us; 1.34 GiB, 320 us. This method
 * moves 5.2 GB, 1.2 ms, half of it beside products, and multiplies 1.25 times as much. Measured on
 * an H200: 3.06 ms, 34 % of the floor; 2.3 predicted. */
#include "task.h"
#include "activations.cuh"
#include "channel_norm.cuh"
#include "reduce.cuh"
#include "stores.cuh"

constexpr int IMAGES = X_DIM0, CHANNELS = X_DIM1, Y = X_DIM2, X = X_DIM3, PIXELS = Y * X;
constexpr int GROUPS = 3, MIDDLE = CONV1_WEIGHT_DIM0, FILTERS = OUT_DIM1;
constexpr int FROM = CHANNELS / GROUPS, OWN = MIDDLE / GROUPS, LAST = FILTERS / GROUPS;
constexpr double EPS = 1e-5;
static_assert(CONV1_WEIGHT_DIM1 == FROM && CONV3_WEIGHT_DIM1 == OWN, "three groups");
static_assert(X % 4 == 0 && CHANNELS % 4 == 0, "whole float4");

/* The sizes of a product of an image, from some channels to others. */
template <int TO, int DEPTH> using Sizes = kp::Matrices<PIXELS, TO, DEPTH, IMAGES, true>;
using First = Sizes<OWN, FROM>;
using Third = Sizes<LAST, OWN>;
using Shortcut = Sizes<FILTERS, CHANNELS>;
using FirstTile = kp::Tile<48, kp::Tf32Rest>;
using WideTile = kp::Tile<96, kp::Tf32Rest>;

/* Columns to some channels of all that an image has. */
template <class F, int TO, int ALL>
using Store = kp::StoreColumns<F, PIXELS, TO, (long long)ALL * PIXELS>;

/* The operand A of a group of the last convolution: channels as they lie before the shuffle,
 * normalised. Each thread maps what it copied. */
struct Shuffled : kp::AcrossSlab {
    using Plain = kp::Across<PIXELS, OWN, PIXELS, (long long)MIDDLE * PIXELS>;
    static_assert(Plain::FOURS, "whole float4");
    using Place = Plain::Place;
    const float *data;
    const kp::ChannelNorm *norm;
    long long group;

    /* Where channel k of the group was. */
    __device__ __forceinline__ int channel(int k) const {
        const int shuffled = (int)group * OWN + k;
        return shuffled % GROUPS * OWN + shuffled / GROUPS;
    }
    __device__ __forceinline__ Place place(int batch, int row) const {
        row += Plain::own_row();
        return {data + (long long)batch * MIDDLE * PIXELS + row, PIXELS - row};
    }
    __device__ __forceinline__ void fetch(const Place &p, uint32_t to, int slab) const {
        const int first = slab * kp::TILE_K + Plain::own_k();
        to += word(Plain::own_row(), Plain::own_k()) * 4;
#pragma unroll 4
        for (int k = 0; k < kp::TILE_K; k += 2) {
            const bool there = first + k < OWN && (kp::whole_tiles(PIXELS) || p.left > 0);
            const int from = there ? channel(first + k) * PIXELS : 0;
            kp::copy_async<16>(to + word(0, k) * 4, there ? p.from + from : data, there);
        }
        kp::copies_wait();
        float *own = (float *)__cvta_shared_to_generic(to);
#pragma unroll 4
        for (int k = 0; k < kp::TILE_K; k += 2) {
            if (first + k >= OWN) break; /* zeros stay */
            const kp::ChannelNorm f = kp::ChannelNorm::of(norm, channel(first + k));
            const float4 v = *(const float4 *)(own + word(0, k));
            *(float4 *)(own + word(0, k)) = make_float4(f(v.x), f(v.y), f(v.z), f(v.w));
        }
        __threadfence_block(); /* before the thread's copies are reported to have come */
    }
};

/* out = relu(norm of the product) + norm of what out has, the shortcut's values. */
struct Finish {
    const kp::ChannelNorm *norm, *shortcut; /* of the group's first channel */
    float *out;

    template <class P>
    __device__ __forceinline__ void tile(const P &part, int batch, int row, int column) const {
        constexpr int AHEAD = 4; /* columns that are read together */
        static_assert(!P::ALONG_DEPTH && PIXELS % 4 == 0, "a thread's rows are a float4");
        if (!kp::whole_tiles(PIXELS) && row >= PIXELS) return;
        float *to = out + ((long long)batch * FILTERS + column) * PIXELS + row;
#pragma unroll
        for (int first = 0; first < P::N / 4; first += AHEAD) {
            float4 other[AHEAD];
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                const int n = (first + i) / 2 * 8 + i % 2;
                if (column + n < LAST) other[i] = *(const float4 *)(to + (long long)n * PIXELS);
            }
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                const int n = (first + i) / 2 * 8 + i % 2, at = (first + i) / 2 * 4 + i % 2;
                if (column + n >= LAST) continue;
                const kp::ChannelNorm a = kp::ChannelNorm::of(norm, column + n);
                const kp::ChannelNorm b = kp::ChannelNorm::of(shortcut, column + n);
                const kp::Relu relu;
                *(float4 *)(to + (long long)n * PIXELS) =
                    make_float4(relu(a(part.v[0][at])) + b(other[i].x),
                                relu(a(part.v[0][at + 2])) + b(other[i].y),
                                relu(a(part.v[1][at])) + b(other[i].z),
                                relu(a(part.v[1][at + 2])) + b(other[i].w));
            }
        }
    }
};

/* The depthwise convolution: a thread makes ROWS x 4 results, a block some whole rows. */
constexpr int ROWS = 4, ACROSS = X / 4, BLOCK_ROWS = 4 * ROWS;
constexpr int THREADS = (4 * ACROSS + 31) / 32 * 32, STRIPS = (Y + BLOCK_ROWS - 1) / BLOCK_ROWS;
using DepthwiseParts = kp::RunParts<MIDDLE, PIXELS, BLOCK_ROWS * X, IMAGES>;

/* y = the depthwise convolution of relu(norm of x), and its parts. Grid: strips, planes. */
__global__ void __launch_bounds__(THREADS, 1024 / THREADS)
    depthwise_kernel(const float *__restrict__ x, const kp::ChannelNorm *__restrict__ norms,
                     const float *__restrict__ weight, float *__restrict__ y,
                     kp::Centred *__restrict__ parts) {
    const int channel = blockIdx.y % MIDDLE, image = blockIdx.y / MIDDLE;
    const int left = threadIdx.x % ACROSS * 4;
    const int top = blockIdx.x * BLOCK_ROWS + threadIdx.x / ACROSS * ROWS;
    const bool some = threadIdx.x < 4 * ACROSS;
    const kp::ChannelNorm norm = kp::ChannelNorm::of(norms, channel);
    const float *plane = x + (long long)blockIdx.y * PIXELS;
    float sums[ROWS][4] = {}, w[9];
#pragma unroll
    for (int t = 0; t < 9; t++) w[t] = __ldg(weight + channel * 9 + t);
#pragma unroll
    for (int r = 0; r < ROWS + 2; r++) {
        const int at = top + r - 1;
        const bool inside = some && (unsigned)at < (unsigned)Y;
        const float *from = plane + at * X + left;
        float v[6] = {};
        if (inside) {
            const float4 four = __ldg((const float4 *)from);
            const kp::Relu relu;
            v[1] = relu(norm(four.x)), v[2] = relu(norm(four.y));
            v[3] = relu(norm(four.z)), v[4] = relu(norm(four.w));
            if (left > 0) v[0] = relu(norm(__ldg(from - 1)));
            if (left + 4 < X) v[5] = relu(norm(__ldg(from + 4)));
        }
#pragma unroll
        for (int own = 0; own < ROWS; own++) { /* results that the row is under */
            if (r < own || r > own + 2) continue;
#pragma unroll
            for (int i = 0; i < 12; i++)
                sums[own][i % 4] += w[(r - own) * 3 + i / 4] * v[i % 4 + i / 4];
        }
    }
    float sum = 0.0f, square = 0.0f;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        if (!some || top + r >= Y) continue;
        const float *s = sums[r];
        sum += (s[0] + s[1]) + (s[2] + s[3]);
        *(float4 *)(y + (long long)blockIdx.y * PIXELS + (top + r) * X + left) =
            make_float4(s[0], s[1], s[2], s[3]);
    }
    sum = block_reduce<THREADS>(sum, Add());
    const float mean = sum / DepthwiseParts::size(blockIdx.x);
#pragma unroll
    for (int i = 0; i < 4 * ROWS; i++) {
        const float d = sums[i / 4][i % 4] - mean;
        if (some && top + i / 4 < Y) square += d * d;
    }
    square = block_reduce<THREADS>(square, Add());
    if (threadIdx.x == 0) parts[(image * STRIPS + blockIdx.x) * MIDDLE + channel] = {sum, square};
}

/* What scratch holds; `parts` of one product after the other. */
struct Scratch {
    kp::ChannelNorm first[MIDDLE], depthwise[MIDDLE], third[FILTERS], shortcut[FILTERS];
    alignas(16) char split_first[kp::split_bytes<First, FirstTile>()];
    alignas(16) char split_third[kp::split_bytes<Third, WideTile>()];
    alignas(16) char split_shortcut[kp::split_bytes<Shortcut, WideTile>()];
    kp::Centred parts[kp::ProductParts<Shortcut>::BYTES / sizeof(kp::Centred)];
    kp::Centred depthwise_parts[DepthwiseParts::BYTES / sizeof(kp::Centred)];
    alignas(16) float narrow[(long long)IMAGES * MIDDLE * PIXELS];
    alignas(16) float convolved[(long long)IMAGES * MIDDLE * PIXELS];
};

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Scratch *s = (Scratch *)scratch;
    const kp::Across<PIXELS, CHANNELS, PIXELS, (long long)CHANNELS *PIXELS> all = {{}, in->x};
    const kp::Along<FILTERS, CHANNELS> shortcut = {{}, in->shortcut_0_weight};
    const kp::WithMoments<Shortcut, Store<kp::Same, FILTERS, FILTERS>> wide = {{{}, out->out},
                                                                               s->parts};
    kp::product<Shortcut, WideTile>(all, shortcut, wide, s->split_shortcut, stream);
    kp::join_channels<kp::ProductParts<Shortcut>>(s->parts, in->shortcut_1_weight,
                                                  in->shortcut_1_bias, EPS, s->shortcut, stream);

    for (int g = 0; g < GROUPS; g++) {
        const int to = g * OWN;
        const kp::Across<PIXELS, FROM, PIXELS, (long long)CHANNELS *PIXELS> x = {
            {}, in->x + (long long)g * FROM * PIXELS};
        const kp::Along<OWN, FROM> weight = {{}, in->conv1_weight + to * FROM};
        const kp::WithMoments<First, Store<kp::Same, OWN, MIDDLE>> store = {
            {{}, s->narrow + (long long)to * PIXELS}, s->parts};
        kp::product<First, FirstTile>(x, weight, store, s->split_first, stream);
        kp::join_channels<kp::ProductParts<First>>(s->parts, in->bn1_weight + to, in->bn1_bias + to,
                                                   EPS, s->first + to, stream);
    }
    depthwise_kernel<<<dim3(STRIPS, IMAGES * MIDDLE), THREADS, 0, stream>>>(
        s->narrow, s->first, in->conv2_weight, s->convolved, s->depthwise_parts);
    kp::join_channels<DepthwiseParts>(s->depthwise_parts, in->bn2_weight, in->bn2_bias, EPS,
                                      s->depthwise, stream);
    for (int g = 0; g < GROUPS; g++) {
        const int to = g * LAST;
        const Shuffled x = {{}, s->convolved, s->depthwise, g};
        const kp::Along<LAST, OWN> weight = {{}, in->conv3_weight + to * OWN};
        const kp::WithMoments<Third, kp::StoreNothing> store = {{}, s->parts};
        const Finish finish = {s->third + to, s->shortcut + to, out->out + (long long)to * PIXELS};
        kp::product<Third, WideTile>(x, weight, store, s->split_third, stream);
        kp::join_channels<kp::ProductParts<Third>>(s->parts, in->bn3_weight + to, in->bn3_bias + to,
                                                   EPS, s->third + to, stream);
        kp::product<Third, WideTile>(x, weight, finish, s->split_third, stream);
    }
}
