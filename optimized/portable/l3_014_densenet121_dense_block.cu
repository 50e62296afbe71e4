// provenance: shipped
/* A dense block, x [10][32][224][224] -> [10][224][224][224]: six times, a 3 x 3 convolution to 32
 * channels of relu(batch norm(all channels so far)), whose result is appended to these. Norms are
 * by the batch's own statistics.
 *
 * Idea: channels live in the output, and each channel's statistics are gathered once, when it is
 * made (channel_norm.cuh); a layer's norm and ReLU come on the way into shared memory. A block
 * makes patches of 8 x 32 pixels: it has 32 channels of the pixels under a patch in shared memory,
 * normalised, and multiplies them from there for all nine taps; gathered tap by tap, as
 * convolve.cuh does, they would come from L2 nine times, which with 32 filters takes longer than
 * the products. Products are product.cuh's, the filters as its operand B, all layers' split at
 * once (dense_layer.cuh).
 * Floor: 194 GFLOP of products in three passes in TF32, 1.40 ms; 1.9 GiB moved, 0.46 ms.
 * Measured: 2901 us on an H200, 48 % of the floor. */
#include "task.h"
#include "dense_layer.cuh"

constexpr int IMAGES = X_DIM0, Y = X_DIM2, X = X_DIM3, PIXELS = Y * X, CHANNELS = OUT_DIM1;
constexpr int LAYERS = 6, TAPS = 9;
using kp::GROUP; /* channels that a layer makes */
constexpr double EPS = 1e-5;
static_assert(X_DIM1 == GROUP && LAYERS_0_2_WEIGHT_DIM0 == GROUP, "groups of one size");
static_assert(CHANNELS == (LAYERS + 1) * GROUP && PIXELS % 4 == 0, "all groups; whole float4");

/* Patches, a row of one a warp; UNDER: the pixels under one. */
constexpr int PATCH_X = 32, PATCH_Y = 8, WIDE = PATCH_X + 2, UNDER = WIDE * (PATCH_Y + 2);
constexpr int ACROSS = (X + PATCH_X - 1) / PATCH_X, DOWN = (Y + PATCH_Y - 1) / PATCH_Y;
constexpr int PATCHES = IMAGES * ACROSS * DOWN;
constexpr int BUFFER = (UNDER * GROUP * 4 + 1023) / 1024 * 1024; /* bytes of a group under one */

using Tile32 = kp::Tile<GROUP, kp::Tf32Rest>; /* layers pass on what rests in bf16 lose */
using FirstParts = kp::RunParts<GROUP, PIXELS, 1024, IMAGES>; /* of x */
using Parts = kp::RunParts<GROUP, X, PATCH_X, IMAGES * Y>;    /* of a layer's result */

struct Layer {
    float *out;          /* all channels; the layer reads the first groups and makes the next one */
    const float *blocks; /* its filters, split */
    const kp::ChannelNorm *standard; /* of each channel, to mean 0 and variance 1 */
    const float *weight, *bias;
    kp::Centred *parts;
    long long groups;
};

struct Place { /* of a patch; a place beyond all has no pixel inside */
    int image, y, x;
    __device__ __forceinline__ explicit Place(int patch)
        : image(patch / (ACROSS * DOWN)), y(patch / ACROSS % DOWN * PATCH_Y),
          x(patch % ACROSS * PATCH_X) {
        if (patch >= PATCHES) image = 0, y = Y + 1;
    }
};

/* Where the thread's first line for the first tap is: of pixel lane / 4 of its warp's row. */
__device__ __forceinline__ int own_line() {
    return (threadIdx.x / 32 * WIDE + threadIdx.x % 32 / 4) * GROUP;
}

/* Four channels of every 32nd pixel under a patch: the work of a warp, of eight. */
__device__ __forceinline__ void fetch(const Layer &layer, const Place &at, int group, int warp,
                                      float *to) {
    constexpr int EACH = 2; /* pixels at a time: registers are few */
    const int first = group * GROUP + warp * 4;
    const float *from = layer.out + ((long long)at.image * CHANNELS + first) * PIXELS;
    kp::ChannelNorm norm[4];
#pragma unroll
    for (int c = 0; c < 4; c++) {
        norm[c] = kp::ChannelNorm::of(layer.standard, first + c);
        norm[c].scale *= __ldg(layer.weight + first + c);
        norm[c].bias = __ldg(layer.bias + first + c);
    }
#pragma unroll 1
    for (int p = threadIdx.x % 32; p < UNDER; p += 32 * EACH) {
        float v[EACH][4];
        bool inside[EACH];
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const int own = p + 32 * j, y = at.y + own / WIDE - 1, x = at.x + own % WIDE - 1;
            inside[j] = own < UNDER && (unsigned)y < (unsigned)Y && (unsigned)x < (unsigned)X;
#pragma unroll
            for (int c = 0; c < 4; c++)
                v[j][c] = inside[j] ? __ldg(from + c * PIXELS + y * X + x) : 0.0f;
        }
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            float *line = to + (p + 32 * j) * GROUP;
            const kp::Relu relu;
#pragma unroll
            for (int c = 0; c < 4; c++) v[j][c] = inside[j] ? relu(norm[c](v[j][c])) : 0.0f;
            if (p + 32 * j < UNDER)
                *(float4 *)(line + (warp ^ kp::swizzle_line(line)) * 4) =
                    make_float4(v[j][0], v[j][1], v[j][2], v[j][3]);
        }
    }
}

/* Stores a patch, and the moments of the warp's row of each channel. */
__device__ __forceinline__ void store(const Layer &layer, const Place &at,
                                      const kp::LinePart &part) {
    const int y = at.y + threadIdx.x / 32, x = at.x + threadIdx.x % 32 / 4;
    const int column = threadIdx.x % 4 * 2;
    if (y >= Y) return; /* the whole warp */
    const long long first = (long long)at.image * CHANNELS + layer.groups * GROUP + column;
    float *to = layer.out + first * PIXELS + y * X + x;
    bool inside[4];
#pragma unroll
    for (int r = 0; r < 4; r++) {
        inside[r] = X % PATCH_X == 0 || x + 8 * r < X;
#pragma unroll
        for (int j = 0; j < GROUP / 4; j++)
            if (inside[r])
                to[(j / 2 * 8 + j % 2) * PIXELS + 8 * r] =
                    part.v[r / 2][j / 2 * 4 + r % 2 * 2 + j % 2];
    }
    const int index = (at.image * Y + y) * ACROSS + at.x / PATCH_X;
    kp::gather_moments<GROUP>(part, inside, (float)Parts::size(at.x / PATCH_X), 1.0f, column,
                              layer.parts + (long long)index * GROUP + column);
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
using Ring = kp::Stages<Tile32, kp::UnderTile>;

/* Of the warps that fetch: 256 threads, of which one copies filters, half a tap for both blocks. */
__device__ __forceinline__ void fetch_all(const Layer &layer, Ring ring, float *buffers) {
    constexpr int HALF = Tile32::B_BYTES / Tile32::CLUSTER;
    const int rank = kp::cluster_rank(), warp = threadIdx.x / 32 - 8;
    int count = 0; /* of groups so far */
    for (int patch = blockIdx.x; patch - rank < PATCHES; patch += gridDim.x) {
        const float *blocks = layer.blocks + rank * (HALF / 4);
        const Place at(patch);
        for (int group = 0; group < layer.groups; group++, count++) {
            kp::bar_wait(ring.buffer_empty(count % 2), count / 2 % 2 ^ 1);
            fetch(layer, at, group, warp, buffers + count % 2 * (BUFFER / 4));
            kp::bar_arrive_at(ring.buffer_full(count % 2), rank);
            if (threadIdx.x != 256) continue;
            for (int tap = 0; tap < TAPS; tap++, blocks += Tile32::B_WORDS, ring.next()) {
                kp::bar_wait(ring.empty(ring.stage), ring.turn ^ 1);
                kp::bar_expect(ring.full(ring.stage), Tile32::B_BYTES);
                kp::copy_bulk<Tile32::CLUSTER>(ring.first + ring.stage * Tile32::B_BYTES +
                                                   rank * HALF,
                                               blocks, HALF, ring.full(ring.stage));
            }
        }
    }
}

__device__ __forceinline__ void multiply_all(const Layer &layer, Ring ring, const float *buffers) {
    const int rank = kp::cluster_rank();
    int count = 0;
    for (int patch = blockIdx.x; patch - rank < PATCHES; patch += gridDim.x) {
        kp::LinePart part = {};
        for (int group = 0; group < layer.groups; group++, count++) {
            kp::bar_wait(ring.buffer_full(count % 2), count / 2 % 2);
#pragma unroll 1
            for (int tap = 0; tap < TAPS; tap++) {
                ring.lines = buffers + count % 2 * (BUFFER / 4) +
                             (tap / 3 * WIDE + tap % 3) * GROUP + own_line();
                kp::multiply_ahead<1>(ring, part);
            }
            kp::bar_arrive_at(ring.buffer_empty(count % 2), rank);
        }
        store(layer, Place(patch), part);
    }
}

__device__ __forceinline__ void run_block(const Layer &layer, float *memory) {
    const Ring ring = {kp::shared_address(memory) + 2 * BUFFER, nullptr, 0, 0};
    if (threadIdx.x == 0) ring.init();
    kp::cluster_sync();
    if (threadIdx.x >= 256) {
        kp::registers_give<Tile32::FETCHER>();
        fetch_all(layer, ring, memory);
    } else {
        kp::registers_take<Tile32::MULTIPLIER>();
        multiply_all(layer, ring, memory);
    }
    kp::cluster_sync(); /* nobody leaves while the other still sends to it */
}
#else
__device__ __forceinline__ void run_block(const Layer &layer, float *memory) {
    constexpr int TAP = GROUP * GROUP;
    float *b = memory + BUFFER / 4;
    for (int patch = blockIdx.x; patch < PATCHES; patch += gridDim.x) {
        kp::LinePart part = {};
        for (int group = 0; group < layer.groups; group++) {
            if (threadIdx.x >= 256) fetch(layer, Place(patch), group, threadIdx.x / 32 - 8, memory);
            for (int i = threadIdx.x; threadIdx.x < 256 && i < TAPS * TAP; i += 256)
                b[i] = layer.blocks[(group * TAPS + i / TAP) * Tile32::B_WORDS + i % TAP];
            __syncthreads();
            for (int tap = 0; threadIdx.x < 256 && tap < TAPS; tap++)
                kp::multiply_tap(memory + (tap / 3 * WIDE + tap % 3) * GROUP + own_line(),
                                 b + tap * TAP, part);
            __syncthreads();
        }
        if (threadIdx.x < 256) store(layer, Place(patch), part);
    }
}
#endif

/* A layer: each cluster, of two patches, takes others in turn. */
__global__ void KP_CLUSTER(Tile32::CLUSTER) __launch_bounds__(Tile32::THREADS, 1)
    layer_kernel(Layer layer) {
    extern __shared__ __align__(1024) unsigned char memory[];
    run_block(layer, (float *)memory);
}

/* x to the first group of out, and its parts. Grid: parts of a plane, channels, images. */
__global__ void __launch_bounds__(256)
    take_kernel(const float *__restrict__ x, float *__restrict__ out,
                kp::Centred *__restrict__ parts, float *__restrict__ one,
                float *__restrict__ zero) {
    const int pixel = blockIdx.x * FirstParts::SIZE + threadIdx.x * 4;
    const int channel = blockIdx.y, image = blockIdx.z;
    const bool inside = PIXELS % FirstParts::SIZE == 0 || pixel < PIXELS;
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (inside) {
        v = __ldg((const float4 *)(x + ((long long)image * GROUP + channel) * PIXELS + pixel));
        *(float4 *)(out + ((long long)image * CHANNELS + channel) * PIXELS + pixel) = v;
    }
    const float sum = block_reduce<256>((v.x + v.y) + (v.z + v.w), Add());
    const float mean = sum / FirstParts::size(blockIdx.x);
    const float d[4] = {v.x - mean, v.y - mean, v.z - mean, v.w - mean};
    float square = (d[0] * d[0] + d[1] * d[1]) + (d[2] * d[2] + d[3] * d[3]);
    square = block_reduce<256>(inside ? square : 0.0f, Add());
    const int part = image * FirstParts::OF_A_RUN + blockIdx.x;
    if (threadIdx.x == 0) parts[part * GROUP + channel] = {sum, square};
    if (channel == 0 && image == 0 && blockIdx.x == 0 && threadIdx.x < GROUP)
        one[threadIdx.x] = 1.0f, zero[threadIdx.x] = 0.0f;
}

/* What scratch holds. */
struct Scratch {
    float blocks[LAYERS * (LAYERS + 1) / 2 * TAPS * Tile32::B_WORDS];
    kp::ChannelNorm standard[CHANNELS];
    float one[GROUP], zero[GROUP];
    kp::Centred parts[(Parts::BYTES > FirstParts::BYTES ? Parts::BYTES : FirstParts::BYTES) / 8];
};

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Scratch *s = (Scratch *)scratch;
    const kp::DenseFilters<LAYERS> filters = {{in->layers_0_2_weight, in->layers_1_2_weight,
                                               in->layers_2_2_weight, in->layers_3_2_weight,
                                               in->layers_4_2_weight, in->layers_5_2_weight},
                                              {1, 2, 3, 4, 5, 6},
                                              {0, 1, 3, 6, 10, 15}};
    const float *const weight[] = {in->layers_0_0_weight, in->layers_1_0_weight,
                                   in->layers_2_0_weight, in->layers_3_0_weight,
                                   in->layers_4_0_weight, in->layers_5_0_weight};
    const float *const bias[] = {in->layers_0_0_bias, in->layers_1_0_bias, in->layers_2_0_bias,
                                 in->layers_3_0_bias, in->layers_4_0_bias, in->layers_5_0_bias};
    int device = 0, processors = 132;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    const int pairs = (PATCHES + 1) / 2, at_once = processors / 2;
    take_kernel<<<dim3(FirstParts::OF_A_RUN, GROUP, IMAGES), 256, 0, stream>>>(
        in->x, out->out, s->parts, s->one, s->zero);
    kp::split_dense_kernel<LAYERS><<<dim3(LAYERS, LAYERS), 256, 0, stream>>>(filters, s->blocks);
    for (int i = 0; i < LAYERS; i++) {
        if (i == 0)
            kp::join_channels<FirstParts>(s->parts, s->one, s->zero, EPS, s->standard, stream);
        else
            kp::join_channels<Parts>(s->parts, s->one, s->zero, EPS, s->standard + i * GROUP,
                                     stream);
        const Layer layer = {out->out,    s->blocks + filters.before[i] * TAPS * Tile32::B_WORDS,
                             s->standard, weight[i],
                             bias[i],     s->parts,
                             i + 1};
        kp::launch_cluster<Tile32::CLUSTER>(layer_kernel, 2 * (pairs < at_once ? pairs : at_once),
                                            Tile32::THREADS, stream, layer);
    }
}
