// provenance: shipped
/* MobileNet with batch norms by the batch's own statistics: x [10][3][224][224] -> [10][1000].
 *
 * Idea: activations are [channel][image][pixel], so a 1 x 1 convolution is one product of pixels by
 * filters (product.cuh), whose depth is split where pixels are few; all filters are split by one
 * kernel at the start. Between two products stands one kernel, which has a channel a block
 * (whole_channels.cuh): it adds the parts, normalises, ReLU, makes the depthwise convolution, whose
 * results are in registers, normalises and ReLU. Up to 28 x 28 pixels the channel is in shared
 * memory, larger ones are read twice. The first depthwise convolution has too few channels: it has
 * a plane a block, and channel_norm.cuh's statistics before and after it.
 * Floor: 11.4 GFLOP of products, three passes in TF32, 82 us; 0.4 GiB moved, 90 us; 33 kernels wait
 * for each other.
 * Measured on an H200: 431 us, 21 % of the floor of what is moved; 300 predicted. */
#include "task.h"
#include "activations.cuh"
#include "channel_norm.cuh"
#include "convolve.cuh"
#include "few_rows.cuh"
#include "norm.cuh"
#include "split_depth.cuh"
#include "whole_channels.cuh"
#include "windows.cuh"

constexpr int IMAGES = X_DIM0, CLASSES = FC_WEIGHT_DIM0, FEATURES = FC_WEIGHT_DIM1;
constexpr double EPS = 1e-5;
constexpr int LAYERS = 13; /* depthwise and 1 x 1 convolutions */
static_assert(X_DIM2 == X_DIM3, "squares");

__host__ __device__ constexpr int halved(int side) {
    return (side - 1) / 2 + 1;
}

/* What a layer of both convolutions, 1 to 13, reads and makes; layer 0 is the first convolution. */
__host__ __device__ constexpr int width(int layer) { /* channels made */
    return layer == 0   ? MODEL_0_0_WEIGHT_DIM0
           : layer == 1 ? MODEL_1_3_WEIGHT_DIM0
           : layer == 2 ? MODEL_2_3_WEIGHT_DIM0
           : layer == 3 ? MODEL_3_3_WEIGHT_DIM0
           : layer == 4 ? MODEL_4_3_WEIGHT_DIM0
           : layer == 5 ? MODEL_5_3_WEIGHT_DIM0
           : layer < 12 ? MODEL_6_3_WEIGHT_DIM0
                        : MODEL_12_3_WEIGHT_DIM0;
}
__host__ __device__ constexpr int stride(int layer) {
    return layer == 2 || layer == 4 || layer == 6 || layer == 12 ? 2 : 1;
}
__host__ __device__ constexpr int side(int layer) { /* of the images made */
    return layer == 0           ? halved(X_DIM2)
           : stride(layer) == 2 ? halved(side(layer - 1))
                                : side(layer - 1);
}
__host__ __device__ constexpr int values(int layer) { /* of a channel */
    return IMAGES * side(layer) * side(layer);
}
/* From a channel of a product's operand to the next: whole tiles of clusters, zeros at the end;
 * asking for the edge would cost product.cuh registers that it lacks. */
__host__ __device__ constexpr int pitch(int layer) {
    return (values(layer) + 2 * kp::TILE_M - 1) / (2 * kp::TILE_M) * (2 * kp::TILE_M);
}
/* Batches of a product, each of a part of the depth: so that tiles are as many as processors. */
__host__ __device__ constexpr int parts(int layer) {
    return layer < 6 ? 1 : layer < 12 ? 2 : 4;
}
static_assert(width(11) == MODEL_11_3_WEIGHT_DIM0 && width(13) == FEATURES, "as the table says");

/* A layer as struct Inputs has it: both convolutions with their norms. */
struct Affine {
    const float *weight, *bias;
};
struct Weights {
    const float *depthwise;
    Affine depthwise_norm;
    const float *filters;
    Affine norm;
};
static_assert(sizeof(struct Inputs) == (1 + 3 + 6 * LAYERS + 2) * sizeof(float *), "no others");

/* ---- depthwise convolutions ---- */

constexpr int ROWS = 7; /* results that a thread has along y at a time */

/* Of a block of a layer's depthwise convolution. */
__host__ __device__ constexpr int threads(int layer) {
    return layer < 5 ? 512 : 256;
}

/* The sizes of a layer's depthwise convolution of COUNT images. */
template <int LAYER, int COUNT> struct Depthwise {
    static constexpr int THREADS = threads(LAYER), STRIDE = stride(LAYER), IN = side(LAYER - 1),
                         OUT = side(LAYER);
    static constexpr int STRIPS = (OUT + ROWS - 1) / ROWS, UNITS = COUNT * STRIPS * OUT;
    static constexpr int EACH = (UNITS + THREADS - 1) / THREADS; /* units a thread */
    using Windows = kp::Windows<IN, 3, STRIDE, 1>;
    static constexpr int UNDER = Windows::under(ROWS); /* rows under a unit */
    static_assert(Windows::OUT == OUT, "size of the result");
    struct Unit {
        int image, y, x;
        bool there;
    };
    static __device__ __forceinline__ Unit unit(int i) {
        const int at = threadIdx.x + i * THREADS, strip = at / OUT;
        return {strip / STRIPS, strip % STRIPS * ROWS, at % OUT, at < UNITS};
    }
    /* Whether value i of a thread's is one. */
    static __device__ __forceinline__ bool inside(int i) {
        const Unit u = unit(i / ROWS);
        return u.there && (OUT % ROWS == 0 || u.y + i % ROWS < OUT);
    }
    /* v = the results of the thread's units; get(image, y, x) reads an input. */
    template <class Get>
    static __device__ __forceinline__ void make(const float *weight, const Get &get,
                                                float (&v)[EACH * ROWS]) {
        float w[9];
#pragma unroll
        for (int t = 0; t < 9; t++) w[t] = __ldg(weight + t);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const Unit u = unit(i);
            if (!u.there) break;
#pragma unroll
            for (int r = 0; r < UNDER; r++) {
                const int y = u.y * STRIDE - 1 + r;
                float in[3];
#pragma unroll
                for (int t = 0; t < 3; t++) {
                    const int x = u.x * STRIDE - 1 + t;
                    const bool there = (unsigned)y < (unsigned)IN && (unsigned)x < (unsigned)IN;
                    in[t] = there ? get(u.image, y, x) : 0.0f;
                }
#pragma unroll
                for (int own = 0; own < ROWS; own++) { /* results that the row is under */
                    const int tap = r - own * STRIDE;
                    if (tap < 0 || tap > 2) continue;
#pragma unroll
                    for (int t = 0; t < 3; t++) v[i * ROWS + own] += w[tap * 3 + t] * in[t];
                }
            }
#pragma unroll
            for (int own = 0; own < ROWS; own++)
                if (!inside(i * ROWS + own)) v[i * ROWS + own] = 0.0f;
        }
    }
    /* f of the thread's results to a run of images. */
    template <class F>
    static __device__ __forceinline__ void store(const float (&v)[EACH * ROWS], const F &f,
                                                 float *to) {
#pragma unroll
        for (int i = 0; i < EACH * ROWS; i++) {
            const Unit u = unit(i / ROWS);
            if (inside(i)) to[(u.image * OUT + u.y + i % ROWS) * OUT + u.x] = f(v[i]);
        }
    }
};

struct NormRelu {
    kp::ChannelNorm norm;
    __device__ __forceinline__ float operator()(float v) const { return kp::Relu()(norm(v)); }
};

/* y = the first depthwise convolution of relu(norm of x), and its parts. Grid: channels, images. */
using FirstDepthwise = Depthwise<1, 1>;
using PlaneParts = kp::RunParts<width(0), side(1) * side(1), side(1) * side(1), IMAGES>;
__global__ void __launch_bounds__(threads(1))
    first_kernel(const float *__restrict__ x, const kp::ChannelNorm *__restrict__ norm,
                 const float *__restrict__ weight, float *__restrict__ y,
                 kp::Centred *__restrict__ parts) {
    constexpr int THREADS = threads(1), SIDE = side(0), EACH = FirstDepthwise::EACH * ROWS;
    const int channel = blockIdx.x, plane = channel * IMAGES + blockIdx.y;
    const NormRelu f = {kp::ChannelNorm::of(norm, channel)};
    float v[EACH] = {}, sum = 0.0f, square = 0.0f;
    FirstDepthwise::make(
        weight + channel * 9,
        [&](int, int row, int column) {
            return f(__ldg(x + (plane * SIDE + row) * SIDE + column));
        },
        v);
    FirstDepthwise::store(
        v, [](float a) { return a; }, y + channel * pitch(1) + blockIdx.y * PlaneParts::SIZE);
#pragma unroll
    for (int i = 0; i < EACH; i++) sum += v[i];
    sum = block_reduce<THREADS>(sum, Add());
    const float mean = sum * (1.0f / PlaneParts::SIZE);
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if (FirstDepthwise::inside(i)) square += (v[i] - mean) * (v[i] - mean);
    square = block_reduce<THREADS>(square, Add());
    if (threadIdx.x == 0) parts[blockIdx.y * width(0) + channel] = {sum, square};
}

/* A channel of what layer LAYER - 1 made, as parts [part][channel][value], normalised: get()
 * reads a value, from shared memory if that has room. */
template <int LAYER, int OF = values(LAYER - 1), bool SHARED = OF <= 8192> struct Made {
    static constexpr int THREADS = threads(LAYER), COUNT = OF, CHANNELS = width(LAYER - 1),
                         PARTS = parts(LAYER - 1);
    static constexpr int EACH = (COUNT + THREADS - 1) / THREADS;
    float *all; /* in shared memory */
    __device__ __forceinline__ Made(const float *from, const Affine &affine, float *shared)
        : all(shared) {
        float v[EACH] = {};
#pragma unroll
        for (int p = 0; p < PARTS; p++)
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const int at = threadIdx.x + i * THREADS;
                if (at < COUNT) v[i] += __ldg(from + (p * CHANNELS + (int)blockIdx.x) * COUNT + at);
            }
        const NormRelu f = {kp::norm_of_block<THREADS, COUNT>(
            v, [](int i) { return (int)threadIdx.x + i * THREADS < COUNT; },
            __ldg(affine.weight + blockIdx.x), __ldg(affine.bias + blockIdx.x), EPS)};
#pragma unroll
        for (int i = 0; i < EACH; i++)
            if (threadIdx.x + i * THREADS < COUNT) all[threadIdx.x + i * THREADS] = f(v[i]);
        __syncthreads();
    }
    __device__ __forceinline__ float get(int at) const {
        return all[at];
    }
};
template <int LAYER, int OF> struct Made<LAYER, OF, false> {
    static constexpr int THREADS = threads(LAYER), COUNT = OF;
    static_assert(parts(LAYER - 1) == 1 && COUNT % 8 == 0, "whole pairs of float4, as they are");
    const float *run;
    NormRelu f;
    __device__ __forceinline__ Made(const float *from, const Affine &affine, float *)
        : run(from + (long long)blockIdx.x * COUNT) {
        Moments m = {0, 0};
#pragma unroll 4
        for (int i = threadIdx.x; i < COUNT / 8; i += THREADS)
            m.take(__ldg((const float4 *)run + 2 * i), __ldg((const float4 *)run + 2 * i + 1));
        m = block_moments<THREADS>(m);
        const double mean = m.sum / COUNT, variance = m.square / COUNT - mean * mean;
        const double deviation = sqrt((variance < 0.0 ? 0.0 : variance) + EPS);
        f.norm = {(float)mean, (float)(__ldg(affine.weight + blockIdx.x) / deviation),
                  __ldg(affine.bias + blockIdx.x)};
    }
    __device__ __forceinline__ float get(int at) const {
        return f(__ldg(run + at));
    }
};

constexpr int SHARED = 8192; /* floats: 32 KB */

/* to[channel] = relu(norm of the depthwise convolution of relu(norm of what was made)). A block a
 * channel. */
template <int LAYER>
__global__ void __launch_bounds__(threads(LAYER), 1)
    channel_kernel(const float *__restrict__ from, Affine norm, const float *__restrict__ weight,
                   Affine own_norm, float *__restrict__ to) {
    using D = Depthwise<LAYER, IMAGES>;
    __shared__ float shared[Made<LAYER>::COUNT <= SHARED ? Made<LAYER>::COUNT : 1];
    const Made<LAYER> made(from, norm, shared);
    float v[D::EACH * ROWS] = {};
    D::make(
        weight + blockIdx.x * 9,
        [&](int image, int y, int x) { return made.get((image * D::IN + y) * D::IN + x); }, v);
    const NormRelu f = {kp::norm_of_block<D::THREADS, values(LAYER)>(
        v, [](int i) { return D::inside(i); }, __ldg(own_norm.weight + blockIdx.x),
        __ldg(own_norm.bias + blockIdx.x), EPS)};
    to += (long long)blockIdx.x * pitch(LAYER);
    D::store(v, f, to);
    for (int i = values(LAYER) + threadIdx.x; i < pitch(LAYER); i += D::THREADS) to[i] = 0.0f;
}

/* means[image][channel] = the mean of relu(norm of what the last layer made). A block a channel. */
__global__ void __launch_bounds__(threads(LAYERS + 1))
    means_kernel(const float *__restrict__ from, Affine norm, float *__restrict__ means) {
    constexpr int PIXELS = side(LAYERS) * side(LAYERS);
    __shared__ float shared[IMAGES * PIXELS];
    const Made<LAYERS + 1, IMAGES * PIXELS, true> made(from, norm, shared);
    float sum = 0.0f;
    if (threadIdx.x >= IMAGES) return;
    for (int i = 0; i < PIXELS; i++) sum += made.get(threadIdx.x * PIXELS + i);
    means[threadIdx.x * FEATURES + blockIdx.x] = sum * (1.0f / PIXELS);
}

/* ---- products ---- */

using Filters = kp::AllFilters<LAYERS>;
using Tile = kp::Tile<64, kp::Tf32Rest>; /* layers pass on what rests in bf16 lose */
using First = kp::Convolution<IMAGES, X_DIM1, width(0), 1, kp::Axis<X_DIM3, 3, 2, 1>,
                              kp::Axis<X_DIM2, 3, 2, 1>>;
using FirstParts = kp::ProductParts<First>;
template <int LAYER>
using Product = kp::SplitDepth<values(LAYER), width(LAYER), width(LAYER - 1), parts(LAYER)>;
template <int LAYER>
using Store = kp::StoreColumns<kp::Same, values(LAYER), width(LAYER),
                               (long long)values(LAYER) * width(LAYER)>;

/* What the first product does to a value of a channel. */
struct MapNormRelu {
    const kp::ChannelNorm *norm;
    __device__ __forceinline__ NormRelu mapper(int channel) const {
        return {kp::ChannelNorm::of(norm, channel)};
    }
};

/* Floats that products make and read at most, and words of all split filters. */
struct Most {
    size_t made = 0, operand = 0, blocks = 0;
    constexpr Most() {
        for (int i = 1; i <= LAYERS; i++) {
            const size_t own = (size_t)parts(i) * values(i) * width(i);
            const size_t read = (size_t)pitch(i) * width(i - 1);
            made = own > made ? own : made, operand = read > operand ? read : operand;
            blocks += (size_t)Filters::blocks<Tile>(width(i - 1), 1, width(i)) * Tile::B_WORDS;
        }
    }
};
constexpr Most MOST;

struct Scratch {
    alignas(16) char first_split[kp::split_bytes<First, Tile>()];
    alignas(16) float blocks[MOST.blocks];
    alignas(16) float made[MOST.made], operand[MOST.operand];
    float means[IMAGES * FEATURES];
    kp::ChannelNorm norm[2][width(0)];
    kp::Centred parts[FirstParts::COUNT * width(0)], plane_parts[IMAGES * width(0)];
};

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

/* ---- the network ---- */

struct Net {
    const Weights *layers; /* layers[i]: of layer i + 1 */
    Scratch *s;
    cudaStream_t stream;
    const float *blocks[LAYERS + 1]; /* of filters */
};

static void split_filters(Net &net) {
    Filters all = {};
    float *to = net.s->blocks;
    for (int i = 1; i <= LAYERS; i++) {
        const int from = width(i - 1), filters = width(i);
        all.of[i - 1] = {net.layers[i - 1].filters, nullptr, to, from, 1, filters, filters};
        net.blocks[i] = to;
        to += (size_t)Filters::blocks<Tile>(from, 1, filters) * Tile::B_WORDS;
    }
    kp::split_all<Tile, false>(all, net.stream);
}

/* Enqueues layers LAYER to the last, from what the one before made. */
template <int LAYER> static void layers(const Net &net) {
    const Weights &before = net.layers[LAYER - 2], &own = net.layers[LAYER - 1];
    const kp::Across<pitch(LAYER), width(LAYER - 1)> operand = {{}, net.s->operand};
    const Store<LAYER> store = {{}, net.s->made};
    constexpr int SAME = LAYER > 7 && LAYER < 12 ? 7 : LAYER; /* one kernel for equal layers */
    channel_kernel<SAME><<<width(LAYER - 1), threads(LAYER), 0, net.stream>>>(
        net.s->made, before.norm, own.depthwise, own.depthwise_norm, net.s->operand);
    kp::multiply<Product<LAYER>, Tile>(operand, net.blocks[LAYER], store, net.stream);
    if constexpr (LAYER < LAYERS) layers<LAYER + 1>(net);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Scratch *s = (Scratch *)scratch;
    Net net = {(const Weights *)&in->model_1_0_weight, s, stream, {}};
    const Weights &first = net.layers[0];
    using StoreFirst = kp::StoreColumns<kp::Same, First::ROWS, First::COLUMNS>;
    const kp::WithMoments<First, StoreFirst> store = {{{}, s->made}, s->parts};
    split_filters(net);
    kp::product<First, Tile>(kp::Patches<First>{{}, in->x},
                             kp::Filters<First>{in->model_0_0_weight}, store, s->first_split,
                             stream);
    kp::join_channels<FirstParts>(s->parts, in->model_0_1_weight, in->model_0_1_bias, EPS,
                                  s->norm[0], stream);
    first_kernel<<<dim3(width(0), IMAGES), threads(1), 0, stream>>>(
        s->made, s->norm[0], first.depthwise, s->operand, s->plane_parts);
    kp::join_channels<PlaneParts>(s->plane_parts, first.depthwise_norm.weight,
                                  first.depthwise_norm.bias, EPS, s->norm[1], stream);
    const kp::MappedAcross<MapNormRelu, pitch(1), width(0)> operand = {{{}, s->operand},
                                                                       {s->norm[1]}};
    kp::multiply<Product<1>, Tile>(operand, net.blocks[1], Store<1>{{}, s->made}, stream);
    layers<2>(net);
    means_kernel<<<FEATURES, threads(LAYERS + 1), 0, stream>>>(s->made, net.layers[LAYERS - 1].norm,
                                                               s->means);
    kp::few_rows<IMAGES, FEATURES, CLASSES>(s->means, in->fc_weight, kp::AddBias{in->fc_bias},
                                            out->out, stream);
}
