/* dense_layer.cuh: the layers of dense networks: 3 x 3 convolutions to 32 channels of relu(batch
 * norm(all channels so far)), and the 1 x 1 convolutions between their blocks. Where images are
 * large (l3_014) only the product of lines in shared memory with a ring of filters is of use.
 *
 * Idea: activations are lines (pixel_lines.cuh). A block has the lines under a tile of 256 in
 * shared memory, normalised, and multiplies them from there for all nine taps; gathered tap by tap,
 * as convolve.cuh does, they would come from L2 nine times, which with 32 filters takes longer than
 * the products. The depth, taps of groups, is cut into as many parts as multiprocessors can be
 * given; a second kernel adds them up and makes the moments, which the next layer joins while it
 * starts. Products are product.cuh's, the filters as its operand B.
 *
 * What limits it: the products, and what it takes to begin: two kernels a layer. Reaches 29 to 48 %
 * of the floor of products and filters (l3_015, l3_014). */
#pragma once
#include "pixel_lines.cuh"
#include "product.cuh"

namespace kp {

using DenseTile = Tile<GROUP, Tf32Rest, 1>;
using LinePart = Part<true, GROUP>;

/* A convolution's kernel's parameters. Slabs are the taps of group 0, of group 1, ... */
struct LineLayer {
    const float *in;     /* groups of lines */
    const float *blocks; /* filters, split: [group of results][slab] */
    const float *weight, *bias;
    ChannelNorm *standard;     /* of each channel, to mean 0 and variance 1 */
    const Centred *fresh;      /* the last group's moments, of which `standard` has nothing yet */
    float *parts;              /* [part][group of results][line] */
    int groups, results, each; /* results: groups; each: slabs that a part sums */
    float eps;
};

/* The sum of the parts of a convolution. */
struct SumOfParts {
    const float *parts;
    int count, results;
    template <class L, int SHARE>
    __device__ __forceinline__ float4 at(int, int line, int group, int piece, int share) const {
        const float4 *from = (const float4 *)(parts + group * L::PART_WORDS) + line * 8 + piece;
        const size_t step = results * (L::PART_WORDS / 4);
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
        for (int p = share; p < count; p += SHARE) {
            const float4 v = __ldg(from + p * step);
            sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
        }
        return sum;
    }
};

/* ---- convolutions ---- */

/* L's filters of TAPS taps: 9, of normalised lines, or 1, of lines as they are, which are made so
 * beforehand. UNDER: the lines under a tile. */
template <class L_, int TAPS_> struct LineTaps {
    using L = L_;
    static constexpr int TAPS = TAPS_, BEFORE = TAPS > 1 ? L::WIDE + 1 : 0;
    static constexpr int UNDER = TILE_M + 2 * BEFORE;
    static constexpr int BUFFER = (UNDER * GROUP * 4 + 1023) / 1024 * 1024; /* bytes */
    static_assert(TAPS == 1 || TAPS == 9, "1 x 1 or 3 x 3");
    /* Which line under a tile the tap reads for the first one of the tile. */
    static __device__ __forceinline__ int line(int tap) {
        return TAPS > 1 ? tap / 3 * L::WIDE + tap % 3 : 0;
    }
};

/* A block's work: of a tile, slabs first to end of a part. */
template <class C> struct LineWork {
    int tile, part, result, first, end;
    __device__ __forceinline__ explicit LineWork(const LineLayer &layer)
        : tile(blockIdx.x % C::L::TILES), part(blockIdx.x / C::L::TILES / layer.results),
          result(blockIdx.x / C::L::TILES % layer.results), first(part * layer.each),
          end(min(first + layer.each, layer.groups * C::TAPS)) {}
    /* What of a group is the block's. */
    __device__ __forceinline__ int first_tap(int group) const {
        return max(first - group * C::TAPS, 0);
    }
    __device__ __forceinline__ int end_tap(int group) const {
        return min(end - group * C::TAPS, C::TAPS);
    }
    __device__ __forceinline__ const float *block(const LineLayer &layer, int group) const {
        return layer.blocks +
               ((long long)result * layer.groups + group) * C::TAPS * DenseTile::B_WORDS;
    }
};

/* A line's pieces of four change places by where the line lies: so lanes that read halves of two
 * neighbouring ones have different banks. */
__device__ __forceinline__ int swizzle_line(const float *line) {
    const uint32_t n = shared_address(line) / 128;
    return n % 2 * 4 + n / 2 % 4;
}

/* The lines of a group under a tile that some of its taps read: the work of 256 threads. */
template <class C>
__device__ __forceinline__ void fetch_lines(const LineLayer &layer, const LineWork<C> &work,
                                            int group, const ChannelNorm *fresh, float *to) {
    constexpr int TOGETHER = C::TAPS > 1 ? 4 : 8; /* at a time: registers are few */
    const int piece = threadIdx.x % 8, own = threadIdx.x % 256 / 8;
    const int channel = group * GROUP + piece * 4, before = work.tile * TILE_M - C::BEFORE;
    const int end = C::line(work.end_tap(group) - 1) + TILE_M;
    const bool known = !layer.fresh || group < layer.groups - 1;
    const ChannelNorm *standard = known ? layer.standard + channel : fresh + piece * 4;
    const FourNorms norms(standard, layer.weight + channel, layer.bias + channel);
    const float4 *from =
        (const float4 *)(layer.in + group * C::L::WORDS) + (long long)before * 8 + piece;
    for (int i = C::line(work.first_tap(group)) + own; i < end; i += 32 * TOGETHER) {
        float4 v[TOGETHER];
        bool inside[TOGETHER];
#pragma unroll
        for (int j = 0; j < TOGETHER; j++) {
            const int line = i + 32 * j;
            inside[j] = line < end && C::L::inside(before + line);
            v[j] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (inside[j]) v[j] = __ldg(from + line * 8);
        }
#pragma unroll
        for (int j = 0; j < TOGETHER; j++) {
            float *line = to + (i + 32 * j) * GROUP;
            if (C::TAPS > 1 && inside[j]) v[j] = norms(v[j]);
            if (i + 32 * j < end) *(float4 *)(line + (piece ^ swizzle_line(line)) * 4) = v[j];
        }
    }
}

/* Stores a part of a tile. */
template <class C>
__device__ __forceinline__ void store_part(const LineLayer &layer, const LineWork<C> &work,
                                           const LinePart &part) {
    const long long of = (long long)work.part * layer.results + work.result;
    float *to = layer.parts + of * C::L::PART_WORDS +
                (work.tile * TILE_M + first_row<true>()) * GROUP + threadIdx.x % 4 * 2;
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int j = 0; j < GROUP / 8; j++) {
            const float *v = part.v[r / 2] + 4 * j + r % 2 * 2;
            *(float2 *)(to + r * 8 * GROUP + 8 * j) = make_float2(v[0], v[1]);
        }
}

/* The norms of the last group, where these are fresh and the block reads it, to `fresh`, and from
 * one such block to where later layers find them. The whole block, also to meet. */
template <class C>
__device__ __forceinline__ void join_fresh(const LineLayer &layer, const LineWork<C> &work,
                                           double *room, ChannelNorm *fresh) {
    if (!layer.fresh || work.end <= (layer.groups - 1) * C::TAPS) {
        __syncthreads();
        return;
    }
    join_group<typename C::L, DenseTile::THREADS>(layer.fresh, layer.eps, room, fresh);
    if (work.tile == 0 && work.end == layer.groups * C::TAPS && threadIdx.x < GROUP)
        layer.standard[(layer.groups - 1) * GROUP + threadIdx.x] = fresh[threadIdx.x];
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
struct UnderTile { /* as product_hopper.cuh's operand A: a line a row */
    static constexpr bool ALONG_DEPTH = true;
};

/* What product_hopper.cuh multiplies: the filters of a tap from a ring, the lines under it. */
template <class T> struct Stages<T, UnderTile> {
    static constexpr int COUNT = 12, BYTES = COUNT * T::B_BYTES;
    static constexpr int ALL_BYTES = BYTES + (2 * COUNT + 4) * 8; /* with the barriers */
    uint32_t first;     /* of the ring; behind it the barriers: full, empty, of both buffers so */
    const float *lines; /* of the tap; the thread's first */
    int stage, turn;
    __device__ __forceinline__ uint32_t full(int at) const { return first + BYTES + at * 8; }
    __device__ __forceinline__ uint32_t empty(int at) const { return full(COUNT + at); }
    __device__ __forceinline__ uint32_t buffer_full(int at) const { return full(2 * COUNT + at); }
    __device__ __forceinline__ uint32_t buffer_empty(int at) const { return buffer_full(2 + at); }
    __device__ __forceinline__ int second() const { return stage; } /* nobody asks */
    __device__ __forceinline__ void next() {
        if (++stage == COUNT) stage = 0, turn ^= 1;
    }
    __device__ __forceinline__ void wait(int at, int parity) const { bar_wait(full(at), parity); }
    __device__ __forceinline__ void done(int at) const { bar_arrive_warp<T::CLUSTER>(empty(at)); }
    __device__ __forceinline__ const float *slab(int) const { return lines; }
    __device__ __forceinline__ uint64_t block(int at) const {
        return wgmma_operand(first + at * T::B_BYTES);
    }
    /* Prepares the barriers: 256 threads fetch lines, and 256 multiply. One thread. */
    __device__ __forceinline__ void init() const {
        for (int s = 0; s < COUNT; s++) {
            bar_init(full(s), 1);
            bar_init(empty(s), 8 * T::CLUSTER * WARP_ARRIVALS);
        }
        for (int s = 0; s < 4; s++) bar_init(buffer_full(s), 256);
        bar_init_done();
    }
};
using DenseRing = Stages<DenseTile, UnderTile>;

template <>
__device__ __forceinline__ void load_part<UnderTile>(const float *line, int i, float (&v)[4][4]) {
    const int piece = threadIdx.x % 4 ^ swizzle_line(line); /* the same for lines 8 apart */
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int upper = 0; upper < 2; upper++) {
            const float4 f =
                *(const float4 *)(line + (2 * i + h) * 8 * GROUP + (piece ^ upper * 4) * 4);
            v[0][h + 2 * upper] = f.x, v[1][h + 2 * upper] = f.y;
            v[2][h + 2 * upper] = f.z, v[3][h + 2 * upper] = f.w;
        }
}

/* Of the warps that fetch: 256 threads, of which one copies filters, the first before lines. */
template <class C>
__device__ __forceinline__ void fetch_all(const LineLayer &layer, const LineWork<C> &work,
                                          DenseRing ring, const ChannelNorm *fresh,
                                          float *buffers) {
    int count = 0; /* of groups so far */
    auto copy = [&](int group) {
        const float *blocks = work.block(layer, group);
        for (int tap = work.first_tap(group); tap < work.end_tap(group); tap++, ring.next()) {
            bar_wait(ring.empty(ring.stage), ring.turn ^ 1);
            bar_expect(ring.full(ring.stage), DenseTile::B_BYTES);
            copy_bulk<1>(ring.first + ring.stage * DenseTile::B_BYTES,
                         blocks + tap * DenseTile::B_WORDS, DenseTile::B_BYTES,
                         ring.full(ring.stage));
        }
    };
    for (int group = work.first / C::TAPS; group * C::TAPS < work.end; group++, count++) {
        if (threadIdx.x == 256 && count == 0) copy(group);
        bar_wait(ring.buffer_empty(count % 2), count / 2 % 2 ^ 1);
        fetch_lines(layer, work, group, fresh, buffers + count % 2 * (C::BUFFER / 4));
        bar_arrive_at(ring.buffer_full(count % 2), 0);
        if (threadIdx.x == 256 && count > 0) copy(group);
    }
}

template <class C>
__device__ __forceinline__ void multiply_all(const LineLayer &layer, const LineWork<C> &work,
                                             DenseRing ring, const float *buffers) {
    int count = 0;
    LinePart part = {};
    for (int group = work.first / C::TAPS; group * C::TAPS < work.end; group++, count++) {
        bar_wait(ring.buffer_full(count % 2), count / 2 % 2);
#pragma unroll 1
        for (int tap = work.first_tap(group); tap < work.end_tap(group); tap++) {
            ring.lines =
                buffers + count % 2 * (C::BUFFER / 4) + (C::line(tap) + first_row<true>()) * GROUP;
            multiply_ahead<1>(ring, part);
        }
        bar_arrive_at(ring.buffer_empty(count % 2), 0);
    }
    store_part(layer, work, part);
}

template <class C>
__device__ __forceinline__ void run_lines(const LineLayer &layer, const LineWork<C> &work,
                                          float *memory) {
    const DenseRing ring = {shared_address(memory) + 2 * C::BUFFER, nullptr, 0, 0};
    ChannelNorm *fresh =
        (ChannelNorm *)((char *)memory + 2 * C::BUFFER + (DenseRing::ALL_BYTES + 15) / 16 * 16);
    if (threadIdx.x == 0) ring.init();
    join_fresh(layer, work, (double *)memory, fresh);
    if (threadIdx.x >= 256) {
        registers_give<DenseTile::FETCHER>();
        fetch_all(layer, work, ring, fresh, memory);
    } else {
        registers_take<DenseTile::MULTIPLIER>();
        multiply_all(layer, work, ring, memory);
    }
}
#else
/* part += the product of a tap, in fp32, from the thread's first line on; b has a row of filters
 * for each channel. */
__device__ __forceinline__ void multiply_tap(const float *line, const float *b, LinePart &part) {
    b += threadIdx.x % 4 * 2;
#pragma unroll 1
    for (int k = 0; k < GROUP; k += 4) {
        float4 a[4];
#pragma unroll
        for (int r = 0; r < 4; r++)
            a[r] = *(const float4 *)(line + r * 8 * GROUP + (k / 4 ^ swizzle_line(line)) * 4);
#pragma unroll
        for (int d = 0; d < 4; d++)
#pragma unroll
            for (int j = 0; j < GROUP / 8; j++) {
                const float2 f = *(const float2 *)(b + (k + d) * GROUP + 8 * j);
#pragma unroll
                for (int r = 0; r < 4; r++) {
                    const float v = d == 0 ? a[r].x : d == 1 ? a[r].y : d == 2 ? a[r].z : a[r].w;
                    part.v[r / 2][4 * j + r % 2 * 2] += v * f.x;
                    part.v[r / 2][4 * j + r % 2 * 2 + 1] += v * f.y;
                }
            }
    }
}

template <class C>
__device__ __forceinline__ void run_lines(const LineLayer &layer, const LineWork<C> &work,
                                          float *memory) {
    constexpr int TAP = GROUP * GROUP;
    float *b = memory + C::BUFFER / 4;
    ChannelNorm *fresh = (ChannelNorm *)(b + C::TAPS * TAP);
    LinePart part = {};
    join_fresh(layer, work, (double *)memory, fresh);
    for (int group = work.first / C::TAPS; group * C::TAPS < work.end; group++) {
        const float *blocks = work.block(layer, group);
        if (threadIdx.x >= 256) fetch_lines(layer, work, group, fresh, memory);
        for (int i = threadIdx.x; threadIdx.x < 256 && i < C::TAPS * TAP; i += 256)
            b[i] = __ldg(blocks + i / TAP * DenseTile::B_WORDS + i % TAP);
        __syncthreads();
        for (int tap = work.first_tap(group); threadIdx.x < 256 && tap < work.end_tap(group); tap++)
            multiply_tap(memory + (C::line(tap) + first_row<true>()) * GROUP, b + tap * TAP, part);
        __syncthreads();
    }
    if (threadIdx.x < 256) store_part(layer, work, part);
}
#endif

/* A block a part of a tile of a group of results. */
template <class C>
__global__ void KP_CLUSTER(1) __launch_bounds__(DenseTile::THREADS, 1)
    line_kernel(LineLayer layer) {
    extern __shared__ __align__(1024) unsigned char memory[];
    run_lines(layer, LineWork<C>(layer), (float *)memory);
}

/* ---- filters ---- */

/* What to split: filters [32][32 * groups][9]; `before`: how many groups come before its own. */
template <int COUNT> struct DenseFilters {
    const float *of[COUNT];
    int groups[COUNT], before[COUNT];
};

/* Grid: x groups, as many as the largest has, y the filters. */
template <int COUNT>
__global__ void __launch_bounds__(256)
    split_dense_kernel(const __grid_constant__ DenseFilters<COUNT> filters,
                       float *__restrict__ blocks) {
    constexpr int RUN = GROUP * 9; /* neighbours in memory */
    struct Slab {
        float of[GROUP][GROUP + 1], apart; /* a word, for the banks */
    };
    __shared__ Slab slabs[9];
    const int groups = filters.groups[blockIdx.y], group = blockIdx.x;
    if (group >= groups) return;
    const float *from = filters.of[blockIdx.y] + group * RUN;
#pragma unroll 12
    for (int i = threadIdx.x; i < GROUP * RUN; i += 256) {
        const int filter = i / RUN, at = i % RUN;
        slabs[at % 9].of[at / 9][filter] = __ldg(from + filter * groups * RUN + at);
    }
    __syncthreads();
    blocks += (filters.before[blockIdx.y] + group) * 9LL * DenseTile::B_WORDS;
    for (int tap = 0; tap < 9; tap++)
        write_block<DenseTile, true>(slabs[tap].of, blocks + tap * DenseTile::B_WORDS);
}

/* ---- host ---- */

constexpr int LINE_BLOCKS = 132; /* as many as an H200 has multiprocessors */

/* Words that the parts of convolutions to `results` groups need. */
template <class L> constexpr size_t line_parts(int results) {
    const int tiles = L::TILES * results;
    return (size_t)(tiles > LINE_BLOCKS ? tiles : LINE_BLOCKS) * TILE_M * GROUP;
}

/* Enqueues a convolution to out; `moments` are of its results. */
template <class C>
static void convolve_lines(LineLayer layer, float *out, Centred *moments, cudaStream_t stream) {
    using L = typename C::L;
    const int slabs = layer.groups * C::TAPS, tiles = L::TILES * layer.results;
    const int most = tiles > LINE_BLOCKS ? 1 : LINE_BLOCKS / tiles;
    layer.each = (slabs + most - 1) / most;
    const int parts = (slabs + layer.each - 1) / layer.each;
    launch_cluster<1>(line_kernel<C>, parts * tiles, DenseTile::THREADS, stream, layer);
    const SumOfParts sum = {layer.parts, parts, layer.results};
    keep_kernel<L><<<dim3(L::RUNS, layer.results), 256, 0, stream>>>(sum, out, moments);
}

} // namespace kp
