// provenance: shipped
/* GoogLeNet: x [10][3][224][224] -> [10][1000]. A stem (7 x 7 convolution, stride 2, ReLU, pool;
 * 1 x 1, ReLU; 3 x 3, ReLU, pool) to [10][192][28][28]; nine inception modules, without ReLU, with
 * pools of stride 2 after the second and seventh; means, linear layer. A module is, side by side: a
 * 1 x 1 convolution; one, then 3 x 3; one, then 5 x 5; the largest of windows of 3 x 3, then 1 x 1.
 *
 * Idea: products at fp32 accuracy (product.cuh), of which modules need two launches: all that reads
 * x, then all that reads what that or the pool made. A block has a job: a tile of a convolution's
 * results and a part of its depth, so that a launch's jobs are about as many as multiprocessors.
 * What a job is, sizes included, is in the kernel's parameters: all layers but the first share one
 * kernel. Activations are [channel][image][pixel]: a join adds the parts of a few planes in shared
 * memory, and stores them and their pools; channels side by side are the concatenation. The filters
 * are split at the start.
 * Floor: 31.7 GFLOP of products in three passes in TF32, 229 us; 32 MiB from memory, 7 us. This
 * method multiplies 1.12 times as much, writes 52 MB of split filters, and has 42 kernels in a row,
 * most of which start early (early_start.cuh).
 * Measured: 947.9 us on an H200, 24 % of the floor. */
#include "task.h"
#include <algorithm>
#include "bias_relu.cuh"
#include "convolve.cuh"
#include "early_start.cuh"
#include "few_rows.cuh"
#include "pools.cuh"
#include "reduce.cuh"

constexpr int IMAGES = X_DIM0, CLASSES = FC_WEIGHT_DIM0, FEATURES = FC_WEIGHT_DIM1;
constexpr int FIRST = CONV1_WEIGHT_DIM0, SECOND = CONV2_WEIGHT_DIM0, THIRD = CONV3_WEIGHT_DIM0;
static_assert(X_DIM2 == X_DIM3 && X_DIM2 % 16 == 0, "squares; a quarter of a side is whole float4");

/* ---- sizes ---- */

/* Channels of a module's convolutions, and the side of what it reads. */
struct Module {
    int from, one, to_three, three, to_five, five, pooled, side;
    constexpr int width() const { return one + three + five + pooled; }
};
#define MODULE(n, side)                                                                     \
    {                                                                                       \
        INCEPTION##n##_BRANCH1X1_WEIGHT_DIM1, INCEPTION##n##_BRANCH1X1_WEIGHT_DIM0,         \
            INCEPTION##n##_BRANCH3X3_0_WEIGHT_DIM0, INCEPTION##n##_BRANCH3X3_1_WEIGHT_DIM0, \
            INCEPTION##n##_BRANCH5X5_0_WEIGHT_DIM0, INCEPTION##n##_BRANCH5X5_1_WEIGHT_DIM0, \
            INCEPTION##n##_BRANCH_POOL_1_WEIGHT_DIM0, side                                  \
    }
constexpr int S1 = X_DIM2 / 2, S2 = S1 / 2, S3 = S2 / 2, S4 = S3 / 2, S5 = (S4 + 1) / 2;
constexpr int COUNT = 9;
constexpr Module MODULES[COUNT] = {MODULE(3A, S3), MODULE(3B, S3), MODULE(4A, S4),
                                   MODULE(4B, S4), MODULE(4C, S4), MODULE(4D, S4),
                                   MODULE(4E, S4), MODULE(5A, S5), MODULE(5B, S5)};
static_assert(S3 * 8 == X_DIM2 && MODULES[0].from == THIRD && MODULES[8].width() == FEATURES,
              "one follows the other");

struct Conv { /* as they follow each other in struct Inputs */
    const float *filters, *bias;
};
static_assert(sizeof(struct Inputs) == (1 + 2 * (3 + 6 * COUNT + 1)) * sizeof(float *), "all");

__host__ __device__ constexpr int pieces(int n, int size) {
    return (n + size - 1) / size;
}
__host__ __device__ constexpr int pitch_of(int side) { /* of channels, in whole float4 */
    return pieces(IMAGES * side * side, 4) * 4;
}

/* A job's. All passes in TF32: layers in a row pass on what rests in bf16 lose. */
using Tile = kp::Tile<64, kp::Tf32Rest, 1>;
constexpr int TAPS = 5; /* whose filters a block splits */
/* A convolution. A slab is 32 channels of a tap. */
struct Shape {
    int columns, channels, kernel;
    __host__ __device__ constexpr int tiles() const { return pieces(columns, Tile::N); }
    __host__ __device__ constexpr int a_tap() const { return pieces(channels, kp::TILE_K); }
    __host__ __device__ constexpr int slabs() const { return a_tap() * kernel * kernel; }
    __host__ __device__ constexpr int groups() const { return pieces(kernel * kernel, TAPS); }
    constexpr int blocks() const { return tiles() * slabs(); } /* of split filters */
};
/* Those of a module: 0 and 1 read x, the second for both 3 x 3 and 5 x 5; 2 to 4 are behind. */
constexpr int SHAPES = 5, BETWEEN = 1;
constexpr int LAYER[SHAPES] = {0, 1, 2, 4, 5}; /* of a module's six in struct Inputs */
constexpr Shape shape(int m, int i) {
    const Module &own = MODULES[m];
    const Shape all[SHAPES] = {{own.one, own.from, 1},
                               {own.to_three + own.to_five, own.from, 1},
                               {own.three, own.to_three, 3},
                               {own.five, own.to_five, 5},
                               {own.pooled, own.from, 1}};
    return all[i];
}

/* In how many parts their depth is summed: by a search for the least time of each launch on 132
 * multiprocessors, where a job takes as long as its slabs and 2.5 more, and 2 MB of parts one. */
constexpr int PARTS[COUNT][SHAPES] = {{1, 1, 1, 1, 1}, {2, 1, 1, 3, 1}, {3, 3, 3, 3, 3},
                                      {2, 2, 3, 2, 2}, {3, 3, 3, 2, 2}, {3, 3, 2, 2, 1},
                                      {2, 2, 2, 2, 1}, {9, 9, 9, 5, 6}, {6, 6, 7, 7, 4}};

constexpr Shape SHAPE_2 = {SECOND, FIRST, 1}, SHAPE_3 = {THIRD, SECOND, 3};
/* What the largest needs: floats of a module's parts, of x, of what lies between; and all blocks of
 * split filters. */
struct Most {
    size_t parts = 0, x = (size_t)THIRD * pitch_of(S3), between = 0;
    size_t blocks = SHAPE_2.blocks() + SHAPE_3.blocks();
    constexpr Most() {
        for (int m = 0; m < COUNT; m++) {
            const size_t pitch = pitch_of(MODULES[m].side);
            size_t own = 0;
            for (int i = 0; i < SHAPES; i++) {
                own += PARTS[m][i] * shape(m, i).columns * pitch;
                blocks += shape(m, i).blocks();
            }
            parts = std::max(parts, own), x = std::max(x, MODULES[m].width() * pitch);
            between = std::max(between, shape(m, BETWEEN).columns * pitch);
        }
    }
};
constexpr Most MOST;

/* ---- filters ---- */

/* A convolution's: [columns][channels][taps], and biases; from column `own` on `other`. `block` is
 * the first of its blocks, and `first` the first that splits them: one does a few taps of 32
 * channels, so that what it reads is in L1 for the later ones. */
struct Filters {
    const float *data, *other, *bias, *other_bias;
    Shape shape;
    int own, block, first;
};
struct AllFilters {
    Filters of[2 + COUNT * SHAPES];
};

__global__ void __launch_bounds__(256)
    split_kernel(const __grid_constant__ AllFilters all, float *blocks) {
    __shared__ float slab[kp::TILE_K][Tile::N + 1];
    __shared__ int which;
    constexpr int LAST = 1 + COUNT * SHAPES;
    const int i = threadIdx.x, block = blockIdx.x;
    if (i <= LAST && all.of[i].first <= block && (i == LAST || all.of[i + 1].first > block))
        which = i;
    __syncthreads();
    const Filters &own = all.of[which];
    const Shape s = own.shape;
    const int taps = s.kernel * s.kernel, groups = s.groups();
    const int index = block - own.first, piece = index / groups % s.a_tap();
    const int tile = index / groups / s.a_tap(), begin = index % groups * TAPS;
    for (int tap = begin; tap < min(begin + TAPS, taps); tap++) {
#pragma unroll
        for (int i = threadIdx.x; i < Tile::N * kp::TILE_K; i += 256) {
            const int n = tile * Tile::N + i / kp::TILE_K, k = i % kp::TILE_K;
            const int channel = piece * kp::TILE_K + k;
            const float *from = n < own.own ? own.data + n * s.channels * taps
                                            : own.other + (n - own.own) * s.channels * taps;
            slab[k][i / kp::TILE_K] =
                n < s.columns && channel < s.channels ? __ldg(from + channel * taps + tap) : 0.0f;
        }
        __syncthreads();
        const long long at = own.block + tile * s.slabs() + tap * s.a_tap() + piece;
        kp::write_block<Tile, false>(slab, blocks + at * Tile::B_WORDS);
        __syncthreads();
    }
}

/* ---- products ---- */

/* A convolution of a launch: of x [channels][pitch] to out [part][columns][pitch]. No parts: there
 * is none. */
struct Branch : Filters {
    const float *x;
    float *out;
    int side, parts;
    float least, unused; /* what results are at least; no padding */
    __host__ __device__ int rows() const { return IMAGES * side * side; }
    __host__ __device__ int jobs() const {
        return pieces(rows(), kp::TILE_M) * shape.tiles() * parts;
    }
};
struct Launch {
    Branch of[3];
};
/* What a block has to do. Slabs are numbered through all split filters; `base` is the first of the
 * tile's columns. */
struct Job : Branch {
    int pitch, row, column, part, base, begin, end;
};
__device__ __forceinline__ Job &job() {
    __shared__ Job the;
    return the;
}

/* Finds job `index` of a launch. */
__device__ __forceinline__ void find(const Launch &launch, int index) {
#pragma unroll
    for (int i = 0; i < 3; i++) {
        const Branch &b = launch.of[i];
        const int jobs = b.jobs();
        if (index >= 0 && index < jobs) {
            const int tiles = pieces(b.rows(), kp::TILE_M), slabs = b.shape.slabs();
            const int each = pieces(slabs, b.parts), part = index / tiles % b.parts;
            const int n = index / tiles / b.parts, base = b.block + n * slabs;
            const int begin = base + part * each, end = base + min((part + 1) * each, slabs);
            job() = {
                b,  pitch_of(b.side), index % tiles * kp::TILE_M, n * Tile::N, part, base, begin,
                end};
        }
        index -= jobs;
    }
}

/* The sizes of a block's product: one tile. */
struct OneTile : kp::Matrices<kp::TILE_M, Tile::N, kp::TILE_K> {
    static __device__ __forceinline__ int first_slab(int, int, int, int, int) {
        return job().begin;
    }
    static __device__ __forceinline__ int end_slab(int, int, int, int, int) { return job().end; }
};

/* Its left operand: of 1 x 1 convolutions a thread copies four pixels of every second channel, of
 * others two pixels of each. */
struct Source : kp::AcrossSlab {
    struct Place {
        const float *from[2];
        int x[2], y[2];
    };
    __device__ __forceinline__ Place place(int, int) const {
        const Job &j = job();
        const int t = threadIdx.x % 128;
        Place p = {};
        if (j.shape.kernel == 1) {
            const int row = j.row + t % 64 * 4;
            p.from[0] = j.x + t / 64 * j.pitch + row, p.x[0] = row < j.rows();
            return p;
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int row = j.row + t + i * 128, pixel = row % (j.side * j.side);
            p.y[i] = pixel / j.side, p.x[i] = pixel % j.side;
            p.from[i] = j.x + row;
            if (row >= j.rows()) p.x[i] = -(1 << 29); /* outside with any tap */
        }
        return p;
    }
    __device__ __forceinline__ void fetch(const Place &p, uint32_t to, int slab) const {
        const Job &j = job();
        const int t = threadIdx.x % 128, a_tap = j.shape.a_tap();
        const int tap = (slab - j.base) / a_tap, channel = (slab - j.base) % a_tap * kp::TILE_K;
        const long long further = (long long)channel * j.pitch;
        int left = j.shape.channels - channel;
        if (j.shape.kernel == 1) {
            const float *from = p.from[0] + further;
            to += word(t % 64 * 4, t / 64) * 4;
            left = p.x[0] ? left - t / 64 : 0;
#pragma unroll
            for (int k = 0; k < kp::TILE_K; k += 2, from += 2 * j.pitch)
                kp::copy_async<16>(to + word(0, k) * 4, from, k < left);
            return;
        }
        const int y = tap / j.shape.kernel - j.shape.kernel / 2,
                  x = tap % j.shape.kernel - j.shape.kernel / 2;
        to += word(t, 0) * 4;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const bool inside = (unsigned)(p.x[i] + x) < (unsigned)j.side &&
                                (unsigned)(p.y[i] + y) < (unsigned)j.side;
            const float *from = p.from[i] + further + y * j.side + x;
            const int deep = inside ? left : 0;
#pragma unroll
            for (int k = 0; k < kp::TILE_K; k++, from += j.pitch)
                kp::copy_async<4>(to + word(i * 128, k) * 4, from, k < deep);
        }
    }
};

/* To out[part][column][row]; the first part has the bias. A thread's rows are a float4. */
struct Results {
    template <class P>
    __device__ __forceinline__ void tile(const P &part, int, int row, int column) const {
        const Job &j = job();
        if ((row += j.row) >= j.rows()) return;
        column += j.column;
        float *to = j.out + (long long)(j.part * j.shape.columns + column) * j.pitch + row;
#pragma unroll
        for (int i = 0; i < P::N / 4; i++) {
            const int n = i / 2 * 8 + i % 2, at = i / 2 * 4 + i % 2, c = column + n;
            if (c >= j.shape.columns) continue;
            const float *bias = c < j.own ? j.bias + c : j.other_bias + c - j.own;
            const float b = j.part ? 0.0f : __ldg(bias);
            float4 v =
                make_float4(part.v[0][at], part.v[0][at + 2], part.v[1][at], part.v[1][at + 2]);
            const auto f = [&](float a) { return a + b < j.least ? j.least : a + b; };
            *(float4 *)(to + (long long)n * j.pitch) = make_float4(f(v.x), f(v.y), f(v.z), f(v.w));
        }
    }
};

/* Grid: y the jobs; run_block() goes on along x, where there is no other. */
__global__ void KP_CLUSTER(Tile::CLUSTER) __launch_bounds__(Tile::THREADS, 1)
    jobs_kernel(const __grid_constant__ Launch launch, const float *blocks) {
    extern __shared__ __align__(1024) unsigned char memory[];
    kp::let_next_start();
    if (threadIdx.x == 0) find(launch, blockIdx.y);
    __syncthreads();
    kp::wait_for_before();
    kp::run_block<OneTile, Tile>(Source(), blocks, Results(), memory);
}

/* ---- between products ---- */

constexpr int HELD = 4096; /* values that a block has */
static_assert(S2 * S2 <= HELD && S3 % 2 == 0, "a plane at least, and whole float4 where several");

/* Channels side by side, those of `of[i]` being the sum of [parts][channels][pitch]; if `halved`,
 * their pools of stride 2. They go to `out`, their pools of stride 1 to `pooled`, and their means
 * to means[image][channel], unless these are null. */
struct Parts {
    const float *from;
    int parts, channels;
};
struct Join {
    Parts of[4];
    float *out, *pooled, *means;
    int side, halved;
    __host__ __device__ int images() const {
        return HELD / (side * side) < IMAGES ? HELD / (side * side) : IMAGES;
    }
};

/* The largest of the 3 x 3 values around (y, x). */
__device__ __forceinline__ float largest(const float *plane, int side, int y, int x) {
    float most = -INFINITY;
#pragma unroll
    for (int t = 0; t < 9; t++) {
        const int row = y + t / 3 - 1, column = x + t % 3 - 1;
        if ((unsigned)row < (unsigned)side && (unsigned)column < (unsigned)side)
            most = kp::larger(most, plane[row * side + column]);
    }
    return most;
}

/* Grid: channels, runs of images. */
__global__ void __launch_bounds__(256) join_kernel(const __grid_constant__ Join join) {
    __shared__ __align__(16) float plane[HELD], half[HELD / 4 + 256];
    kp::let_next_start();
    int channel = blockIdx.x, i = 0;
    while (channel >= join.of[i].channels) channel -= join.of[i++].channels;
    const int first = blockIdx.y * join.images(), images = min(join.images(), IMAGES - first);
    int side = join.side, area = side * side, pitch = pitch_of(side);
    const int parts = join.of[i].parts, apart = join.of[i].channels * pitch;
    const float *from = join.of[i].from + (long long)channel * pitch + first * area;
    long long to = (long long)blockIdx.x * pitch + first * area;
    kp::wait_for_before();
    for (int at = threadIdx.x * 4; at < images * area; at += 1024) {
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
        for (int p = 0; p < parts; p++) {
            const float4 v = *(const float4 *)(from + (long long)p * apart + at);
            sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
        }
        *(float4 *)(plane + at) = sum;
        if (join.out && !join.halved) *(float4 *)(join.out + to + at) = sum;
    }
    __syncthreads();
    const float *own = plane;
    if (join.halved) {
        const int whole = side;
        side = (side + 1) / 2, pitch = pitch_of(side);
        to = (long long)blockIdx.x * pitch + first * side * side;
        for (int at = threadIdx.x; at < images * side * side; at += 256) {
            const int image = at / (side * side), y = at / side % side, x = at % side;
            join.out[to + at] = half[at] = largest(plane + image * area, whole, 2 * y, 2 * x);
        }
        area = side * side, own = half;
        __syncthreads();
    }
    for (int at = threadIdx.x; join.pooled && at < images * area; at += 256)
        join.pooled[to + at] = largest(own + at / area * area, side, at / side % side, at % side);
    for (int image = threadIdx.x / 32; join.means && image < images; image += 8) {
        float sum = 0.0f;
        for (int at = threadIdx.x % 32; at < area; at += 32) sum += own[image * area + at];
        sum = warp_reduce(sum, Add()) / area;
        if (threadIdx.x % 32 == 0) join.means[(first + image) * gridDim.x + blockIdx.x] = sum;
    }
}

/* ---- the network ---- */

using Stem =
    kp::Convolution<IMAGES, X_DIM1, FIRST, 1, kp::Axis<X_DIM3, 7, 2, 3>, kp::Axis<X_DIM2, 7, 2, 3>>;
using StemTile = kp::Tile<64, kp::Tf32Rest>;
using Pool = kp::PoolShape<kp::Windows<1, 1>, kp::Windows<S1, 3, 2, 1>, kp::Windows<S1, 3, 2, 1>,
                           (S1 + 31) / 32 * 32, 1, 8>;

struct Scratch {
    alignas(32) float blocks[MOST.blocks * Tile::B_WORDS];
    alignas(32) char stem_blocks[kp::split_bytes<Stem, StemTile>()];
    alignas(32) float stem[FIRST * Stem::ROWS], stem_pooled[FIRST * pitch_of(S2)];
    alignas(32) float second[SECOND * pitch_of(S2)], third[THIRD * pitch_of(S2)];
    alignas(32) float x[MOST.x], pooled[MOST.x], between[MOST.between], parts[MOST.parts];
    float means[IMAGES * FEATURES];
};

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

struct Net {
    AllFilters filters;
    Scratch *s;
    cudaStream_t stream;

    /* Names all filters but the first, and enqueues their splitting. */
    void split(const Conv *layers) {
        int count = 0, block = 0, first = 0;
        const auto take = [&](const Shape &s, const Conv &conv, const Conv &other, int own) {
            filters.of[count++] = {conv.filters, other.filters, conv.bias, other.bias, s,
                                   own,          block,         first};
            block += s.blocks(), first += s.tiles() * s.a_tap() * s.groups();
        };
        take(SHAPE_2, layers[1], layers[1], SECOND);
        take(SHAPE_3, layers[2], layers[2], THIRD);
        for (int m = 0; m < COUNT; m++)
            for (int i = 0; i < SHAPES; i++) {
                const Conv *own = layers + 3 + 6 * m;
                take(shape(m, i), own[LAYER[i]], own[3],
                     i == BETWEEN ? MODULES[m].to_three : shape(m, i).columns);
            }
        split_kernel<<<first, 256, 0, stream>>>(filters, s->blocks);
    }

    /* Enqueues a launch's jobs. */
    void multiply(const Launch &launch) const {
        int device = 0, bytes = 0, jobs = 0;
        cudaGetDevice(&device);
        cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
        bytes -= 1024; /* for the job */
        cudaFuncSetAttribute(jobs_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        for (const Branch &b : launch.of) jobs += b.jobs();
        kp::launch_early(jobs_kernel, dim3(1, jobs), Tile::THREADS, bytes, stream, launch,
                         (const float *)s->blocks);
    }

    /* Enqueues a join. */
    void join(const Join &join) const {
        int channels = 0;
        for (const auto &of : join.of) channels += of.channels;
        /* As much shared memory as the other has: a multiprocessor need not be idle in between. */
        cudaFuncSetAttribute(join_kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 100);
        kp::launch_early(join_kernel, dim3(channels, pieces(IMAGES, join.images())), 256, 0, stream,
                         join);
    }

    /* What is before the modules. */
    void stem(const float *x, const Conv &first) const {
        const kp::StoreColumns<kp::BiasRelu, Stem::ROWS, FIRST> store = {{first.bias}, s->stem};
        kp::product<Stem, StemTile>(kp::Patches<Stem>{{}, x}, kp::Filters<Stem>{first.filters},
                                    store, s->stem_blocks, stream);
        kp::pool_windows<kp::MaxOfWindow, Pool>(s->stem, s->stem_pooled, FIRST * IMAGES, stream);
        multiply({{{filters.of[0], s->stem_pooled, s->second, S2, 1, 0.0f, 0.0f}}}); /* ReLU */
        multiply({{{filters.of[1], s->second, s->third, S2, 1, 0.0f, 0.0f}}});
        join({{{s->third, 1, THIRD}}, s->x, s->pooled, nullptr, S2, true});
    }

    /* Module m, from s->x and s->pooled to s->x and s->pooled, or of the last the means. */
    void module(int m) const {
        const Module &own = MODULES[m];
        const int side = own.side, joined = PARTS[m][BETWEEN];
        float *parts[SHAPES + 1] = {s->parts};
        Parts sums[SHAPES];
        for (int i = 0; i < SHAPES; i++) {
            sums[i] = {parts[i], PARTS[m][i], shape(m, i).columns};
            parts[i + 1] = parts[i] + sums[i].parts * sums[i].channels * pitch_of(side);
        }
        const float *between = joined > 1 ? s->between : parts[BETWEEN];
        const float *of_five = between + own.to_three * pitch_of(side);
        const float *x[SHAPES] = {s->x, s->x, between, of_five, s->pooled};
        const Filters *of = filters.of + 2 + SHAPES * m;
        const auto branch = [&](int i) -> Branch {
            return {of[i], x[i], parts[i], side, PARTS[m][i], -INFINITY, 0.0f};
        };
        multiply({{branch(1), branch(0)}});
        if (joined > 1) join({{sums[BETWEEN]}, s->between, nullptr, nullptr, side, false});
        multiply({{branch(2), branch(3), branch(4)}});

        const bool last = m + 1 == COUNT, halved = !last && MODULES[m + 1].side < side;
        Join all = {{sums[0], sums[2], sums[3], sums[4]}, s->x, s->pooled, nullptr, side, halved};
        if (last) all.out = all.pooled = nullptr, all.means = s->means;
        join(all);
    }
};

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Net net = {{}, (Scratch *)scratch, stream};
    const Conv *layers = (const Conv *)&in->conv1_weight;
    net.split(layers);
    net.stem(in->x, layers[0]);
    for (int m = 0; m < COUNT; m++) net.module(m);
    kp::few_rows<IMAGES, FEATURES, CLASSES>(net.s->means, in->fc_weight, kp::AddBias{in->fc_bias},
                                            out->out, stream);
}
