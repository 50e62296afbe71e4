/* channels_last.cuh: convolutions (convolve.cuh) whose patches are gathered 16 bytes at a time,
 * from a copy of x in scratch memory that has the channels of a pixel side by side, and zeros
 * around each image: no tap reads outside.
 *
 * Word by word, a slab of patches takes 256 copies of a warp, and here 64. The copy of x costs its
 * bytes twice: it pays where tiles are narrow and taps many. The depth runs over taps and, within,
 * over a group's channels, a multiple of four of them; slabs of 32 take no notice of where one tap
 * ends, so that no depth is lost.
 *
 * Rows of a slab change places, so that a thread's rows are neighbouring pixels as in convolve.cuh,
 * whose stores serve. */
#pragma once
#include "convolve.cuh"

namespace kp {

/* How many pixels the taps of an axis reach beyond either end of the input. */
template <class> struct Reach;
template <int IN, int KERNEL, int STRIDE, int PAD, int DILATION>
struct Reach<Axis<IN, KERNEL, STRIDE, PAD, DILATION>> {
    using A = Axis<IN, KERNEL, STRIDE, PAD, DILATION>;
    static constexpr int LAST = (A::OUT - 1) * STRIDE - PAD + (KERNEL - 1) * DILATION;
    static constexpr int BELOW = PAD, ABOVE = LAST >= IN ? LAST - IN + 1 : 0;
};
template <int IN, int KERNEL, int STRIDE, int PAD, int DILATION, int OUT_PAD>
struct Reach<TransposedAxis<IN, KERNEL, STRIDE, PAD, DILATION, OUT_PAD>> {
    using A = TransposedAxis<IN, KERNEL, STRIDE, PAD, DILATION, OUT_PAD>;
    /* Output o reads input (o + PAD - t * DILATION) / STRIDE by tap t, where that is whole. */
    static constexpr int BELOW = (KERNEL - 1) * DILATION > PAD
                                     ? ((KERNEL - 1) * DILATION - PAD) / STRIDE
                                     : 0;
    static constexpr int LAST = (A::POINTS * STRIDE - 1 + PAD) / STRIDE;
    static constexpr int ABOVE = LAST >= IN ? LAST - IN + 1 : 0;
};

/* The convolution C with the depth as it is here, and the copy of x: [images][Z][Y][X][WIDE]. */
template <class C> struct ChannelsLast : C {
    using ReachX = Reach<typename C::X>;
    using ReachY = Reach<typename C::Y>;
    using ReachZ = Reach<typename C::Z>;
    static constexpr int X_EXTENT = ReachX::BELOW + C::X::IN + ReachX::ABOVE;
    static constexpr int Y_EXTENT = ReachY::BELOW + C::Y::IN + ReachY::ABOVE;
    static constexpr int Z_EXTENT = ReachZ::BELOW + C::Z::IN + ReachZ::ABOVE;
    static constexpr int EACH = (C::DEPTH + 3) / 4 * 4, WIDE = C::GROUPS * EACH;
    static constexpr long long PLACES =
        C::ROWS / C::PIXELS * Z_EXTENT * (long long)Y_EXTENT * X_EXTENT;
    static_assert(PLACES < 1LL << 31, "pixels are counted in 32 bits");

    static __device__ __host__ __forceinline__ constexpr int slabs(int taps) {
        return (taps * EACH + TILE_K - 1) / TILE_K;
    }
    static constexpr int SLABS = slabs(C::X::TAPS * C::Y::TAPS * C::Z::TAPS);
    static __device__ __forceinline__ int end_slab(int batch, int, int, int, int) {
        return C::PHASES == 1 ? SLABS : slabs(C::taps_of(batch));
    }
};

/* ---- the copy ---- */

/* A block copies TILE places of CHANNELS channels, those of a group or some of them. */
template <class L> struct CopyTile {
    static constexpr int CHANNELS = L::EACH < 32 ? L::EACH : 32;
    static constexpr int TILE = CHANNELS > 16 ? 64 : CHANNELS > 8 ? 128 : CHANNELS > 4 ? 256 : 512;
    static constexpr int A_GROUP = (L::EACH + CHANNELS - 1) / CHANNELS;
};

/* Grid: tiles; parts of the channels. */
template <class L>
__global__ void __launch_bounds__(256)
    channels_last_kernel(const float *__restrict__ x, float *__restrict__ copy) {
    using T = CopyTile<L>;
    constexpr int TILE = T::TILE, CHANNELS = T::CHANNELS;
    __shared__ float part[CHANNELS][TILE + 1];
    const int first = blockIdx.y / T::A_GROUP * L::DEPTH; /* channel of the group */
    const int from = blockIdx.y % T::A_GROUP * CHANNELS;  /* of those */
    const unsigned tile = blockIdx.x * TILE;
    /* Neighbouring threads read neighbouring places of one channel. */
    constexpr int AT_ONCE = TILE < 256 ? TILE : 256;
#pragma unroll
    for (int round = 0; round < TILE / AT_ONCE; round++) {
        const int i = round * AT_ONCE + threadIdx.x % AT_ONCE;
        const unsigned place = tile + i, line = place / L::X_EXTENT;
        const int px = place % L::X_EXTENT - L::ReachX::BELOW;
        const int py = line % L::Y_EXTENT - L::ReachY::BELOW;
        const int pz = line / L::Y_EXTENT % L::Z_EXTENT - L::ReachZ::BELOW;
        const int image = line / (L::Y_EXTENT * L::Z_EXTENT);
        const bool inside = place < L::PLACES && (unsigned)px < (unsigned)L::X::IN &&
                            (unsigned)py < (unsigned)L::Y::IN && (unsigned)pz < (unsigned)L::Z::IN;
        const float *p = x + ((long long)image * L::CHANNELS + first + from) * L::AREA +
                         (pz * L::Y::IN + py) * L::X::IN + px;
#pragma unroll 8
        for (int c = threadIdx.x / AT_ONCE; c < CHANNELS; c += 256 / AT_ONCE)
            part[c][i] = inside && from + c < L::DEPTH ? __ldcs(p + (long long)c * L::AREA) : 0.0f;
    }
    __syncthreads();
    float *const to = copy + (long long)tile * L::WIDE + blockIdx.y / T::A_GROUP * L::EACH + from;
#pragma unroll 4
    for (int f = threadIdx.x; f < TILE * CHANNELS / 4; f += 256) {
        const int i = f / (CHANNELS / 4), c = f % (CHANNELS / 4) * 4;
        if (tile + i >= L::PLACES || (L::EACH % CHANNELS && from + c >= L::EACH)) continue;
        *(float4 *)(to + (long long)i * L::WIDE + c) =
            make_float4(part[c][i], part[c + 1][i], part[c + 2][i], part[c + 3][i]);
    }
}

/* ---- operands ---- */

/* The left operand. Eight threads copy a row of a slab, 16 bytes each, and each thread 16 rows. A
 * warp's lanes know the places of the 64 rows that it copies, two each. */
template <class L> struct PatchesLast : AlongSlab {
    using X = typename L::X;
    using Y = typename L::Y;
    using Z = typename L::Z;
    const float *copy;

    struct Place {
        const float *from;         /* of the thread's group, in the copy */
        int known[2];              /* places that the first taps read */
        int taps_x, taps_y, depth; /* of the phase */
    };
    /* The pixel of a tile that lies in row `row` of a slab: of each 32, lane / 4's four follow each
     * other. */
    static __device__ __forceinline__ int pixel_of(int row) {
        return row / 32 * 32 + row % 8 * 4 + row % 32 / 8;
    }
    __device__ __forceinline__ Place place(int batch, int row) const {
        Place p;
        p.taps_x = X::taps(L::x(batch)), p.taps_y = Y::taps(L::y(batch));
        p.depth = L::taps_of(batch) * L::EACH;
        p.from = copy + L::group(batch) * L::EACH;
        const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int at = row + pixel_of((lane / 4 + 8 * h) * 16 + warp * 4 + lane % 4);
            const int inside = whole_tiles(L::ROWS) || at < L::ROWS ? at : 0,
                      pixel = inside % L::PIXELS;
            const int x = X::input(pixel % X::POINTS, L::x(batch)) + L::ReachX::BELOW;
            const int y = Y::input(pixel / X::POINTS % Y::POINTS, L::y(batch)) + L::ReachY::BELOW;
            const int z = Z::input(pixel / (X::POINTS * Y::POINTS), L::z(batch)) + L::ReachZ::BELOW;
            p.known[h] =
                ((inside / L::PIXELS * L::Z_EXTENT + z) * L::Y_EXTENT + y) * L::X_EXTENT + x;
        }
        return p;
    }
    __device__ __forceinline__ void fetch(const Place &p, uint32_t to, int slab) const {
        const int lane = threadIdx.x % 32, k = lane % 8 * 4, depth = slab * TILE_K + k;
        const int j = depth / L::EACH, c = depth % L::EACH;
        const int x = j % p.taps_x * X::STEP, y = j / p.taps_x % p.taps_y * Y::STEP;
        const int z = j / (p.taps_x * p.taps_y) * Z::STEP;
        const bool there = depth < p.depth;
        const float *const from =
            p.from + c + ((long long)(z * L::Y_EXTENT + y) * L::X_EXTENT + x) * L::WIDE;
#pragma unroll
        for (int i = 0; i < 16; i++) {
            const int place = __shfl_sync(0xffffffffu, p.known[i / 8], i % 8 * 4 + lane / 8);
            const int row = i * 16 + threadIdx.x % 128 / 8;
            copy_async<16>(to + AlongSlab::word(row, k) * 4, from + (long long)place * L::WIDE,
                           there);
        }
    }
};

/* The right operand. */
template <class L> struct FiltersLast {
    static constexpr bool ALONG_DEPTH = true;
    const float *data;
    __device__ __forceinline__ float at(int batch, int column, int slab, int k) const {
        using X = typename L::X;
        using Y = typename L::Y;
        const int j = (slab * TILE_K + k) / L::EACH, c = (slab * TILE_K + k) % L::EACH;
        if (column >= L::COLUMNS || c >= L::DEPTH || j >= L::taps_of(batch)) return 0.0f;
        return __ldg(data + filter_word<L>(batch, column, c, j));
    }
};

/* A store for a part of a tile whose rows are neighbours, as a left operand along the depth has it
 * in the order of PatchesLast. */
template <class Store> struct InOrder : Store {
    template <class P>
    __device__ __forceinline__ void tile(P &part, int batch, int row, int column) const {
        Part<false, P::N> same;
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < P::N / 2; j++) same.v[i][j] = part.v[i][j];
        Store::tile(same, batch, row / 32 * 32 + row % 32 * 4, column);
    }
};

/* ---- host ---- */

/* Bytes of scratch: the split filters, and the copy. */
template <class C, class T> constexpr size_t channels_last_bytes() {
    return split_bytes<ChannelsLast<C>, T>() +
           (size_t)ChannelsLast<C>::PLACES * ChannelsLast<C>::WIDE * sizeof(float);
}

/* Enqueues the product of x's patches, of the copy, with the filters; store: as for product(), of
 * a tile whose rows are neighbours. */
template <class C, class T, class Store>
static void convolve_last_to(const float *x, const float *weight, const Store &store, void *scratch,
                             cudaStream_t stream) {
    using L = ChannelsLast<C>;
    using Copy = CopyTile<L>;
    float *const copy = (float *)((char *)scratch + split_bytes<L, T>());
    channels_last_kernel<L>
        <<<dim3((unsigned)((L::PLACES + Copy::TILE - 1) / Copy::TILE), C::GROUPS * Copy::A_GROUP),
           256, 0, stream>>>(x, copy);
    const PatchesLast<L> patches = {{}, copy};
    product<L, T>(patches, FiltersLast<L>{weight}, InOrder<Store>{store}, scratch, stream);
}

/* Enqueues out = f(convolution of x with weight); scratch: channels_last_bytes<C, T>(). */
template <class C, class T, class F>
static void convolve_last(const float *x, const float *weight, float *out, const F &f,
                          void *scratch, cudaStream_t stream) {
    convolve_last_to<C, T>(x, weight, StorePixels<F, C>{f, out}, scratch, stream);
}

} // namespace kp
