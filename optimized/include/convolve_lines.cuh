/* convolve_lines.cuh: convolutions over two axes of stride 1 (convolve.cuh) whose patches share
 * what is fetched and split.
 *
 * Idea: InLines<C> is C with its rows in another order: a tile is 64 places of four lines (a
 * dilation apart), a warp's part 16 places of two lines, a thread's two and two. On Hopper the
 * input of a tile, with its halo, is fetched once for 32 channels and serves all taps: patches are
 * addresses in it. A thread multiplies line p with tap p of a column of taps for its first line,
 * and with tap p - 1 for its second, so that KERNEL + 1 lines are split for 2 * KERNEL products;
 * the next line is read and split while these products are under way. One warp fetches B, three A.
 * A warp stores runs of 16 results where they begin anywhere in a sector of memory: shorter runs
 * would write more sectors.
 *
 * Elsewhere patches are gathered word by word, in the same order.
 *
 * Contract: as convolve.cuh, with InLines<C> and LineTile<InLines<C>, N> for C and TileFor: one
 * group, channels a multiple of 32, an odd kernel along y, lines of 64 results or more. Rows beyond
 * the last line are not `inside`: WithMoments wants WHOLE. Rows of an image are not side by side:
 * convolve_norm.cuh is not for these (norm_behind.cuh is).
 *
 * Reaches 87 to 96 % of the floor of products with 64 filters a tile (l1_057, l1_062, l1_065,
 * l1_080), 66 and 72 % with 32 (l1_071, l1_078), 68 to 80 % with long epilogues (l2_019, l2_054,
 * l2_010). */
#pragma once
#include "convolve.cuh"

namespace kp {

/* A convolution's rows in strips of four lines, 64 rows for 16 places of them. */
template <class C_> struct InLines {
    using C = C_;
    using X = typename C::X;
    using Y = typename C::Y;
    static constexpr int LINES = 4, PLACES = TILE_M / LINES; /* of a tile */
    static constexpr int IMAGES = (int)(C::ROWS / C::PIXELS);
    static constexpr int CHANNELS = C::CHANNELS, FILTERS = C::FILTERS, GROUPS = 1;
    static constexpr int DEPTH = C::DEPTH, KERNEL = C::KERNEL, PHASES = 1;
    static constexpr int AREA = C::AREA, OUT_AREA = C::OUT_AREA;
    template <class A> static constexpr int STEP = A::STEP < 0 ? -A::STEP : A::STEP; /* dilation */
    static constexpr int SPAN = LINES * STEP<Y>; /* STEP<Y> strips lie in each other */
    static constexpr int STRIPS = (Y::OUT + SPAN - 1) / SPAN * STEP<Y>; /* of an image */
    static constexpr int ALL_PLACES = STRIPS * X::OUT;                  /* of an image */
    static_assert(C::GROUPS == 1 && C::PHASES == 1 && C::Z::KERNEL == 1 && C::Z::IN == 1,
                  "one group, two axes, stride 1");
    static_assert(DEPTH % TILE_K == 0 && Y::KERNEL % 2 == 1 && X::OUT >= PLACES,
                  "see the contract");

    /* What a product asks for. A slab is 32 channels of a tap; the taps of a column follow each
     * other, then those columns, then channels. */
    static constexpr long long ROWS = (IMAGES * (long long)ALL_PLACES + 15) / 16 * 64;
    static constexpr bool WHOLE = Y::OUT % SPAN == 0 && IMAGES * ALL_PLACES % 16 == 0;
    static constexpr int COLUMNS = FILTERS, SLABS = DEPTH / TILE_K * KERNEL, TERMS = C::TERMS;
    static constexpr int BATCHES = 1, B_BATCHES = 1;
    static constexpr bool BATCH_FASTEST = false;
    static_assert(ROWS < 1LL << 30, "rows are counted in 32 bits");
    /* Where a row lies: its place, counted over all images, and its line, from a strip's first. A
     * thread's rows come in pairs, of places 8 apart. */
    static __device__ __forceinline__ int place(int row) {
        return row / 64 * 16 + row / 4 % 8 + row % 2 * 8;
    }
    static __device__ __forceinline__ int line(int row) {
        return (row / 32 % 2 * 2 + row / 2 % 2) * STEP<Y>;
    }
    /* The first line of a strip, counted over all images. */
    static __device__ __forceinline__ int top(int strip) {
        strip %= STRIPS;
        return strip / STEP<Y> * SPAN + strip % STEP<Y>;
    }
    static __device__ __forceinline__ int first_slab(int, int, int, int, int) { return 0; }
    static __device__ __forceinline__ int end_slab(int, int, int, int, int) { return SLABS; }
    static __device__ __forceinline__ int group(int) { return 0; }

    /* Taps in the order of what they read: result `out` reads input(out) + i * STEP by tap(i). */
    template <class A> static __device__ __forceinline__ int tap(int i) {
        return A::tap(0, A::STEP < 0 ? A::KERNEL - 1 - i : i);
    }
    template <class A> static __device__ __forceinline__ int input(int out) {
        static_assert(A::OUT == A::POINTS && A::OUT + STEP<A> * (A::KERNEL - 1) >= A::IN,
                      "stride 1");
        return A::input(out, 0) + (A::STEP < 0 ? A::STEP * (A::KERNEL - 1) : 0);
    }
};

/* BEHIND: the store has work for a fourth warpgroup (norm_behind.cuh). */
template <class C, int N, bool BEHIND_ = false> struct LineTile : Tile<N, RestFor<C::TERMS>> {
    static constexpr bool BEHIND = BEHIND_;
    static constexpr int FETCHERS = 1, THREADS = BEHIND ? 512 : 384, LAUNCHED = BEHIND ? 128 : 168;
    static constexpr int MULTIPLIER = BEHIND ? 208 : 216, FETCHER = BEHIND ? 48 : 72;
};

/* The left operand as those see it who have no halo: each thread copies two rows of a slab. */
template <class C> struct Patches<InLines<C>> : AcrossSlab {
    using L = InLines<C>;
    using X = typename C::X;
    using Y = typename C::Y;
    const float *data;

    struct Place {
        const float *from[2]; /* channel 0 of what the first tap reads, if that is inside */
        int x[2], y[2];
    };
    __device__ __forceinline__ Place place(int, int row) const {
        Place p;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int at = row + threadIdx.x % 128 + i * 128, place = L::place(at);
            const int strip = place / X::OUT;
            p.x[i] = L::template input<X>(place % X::OUT);
            p.y[i] = L::template input<Y>(L::top(strip) + L::line(at));
            p.from[i] = data + (long long)(strip / L::STRIPS) * L::CHANNELS * L::AREA +
                        p.y[i] * X::IN + p.x[i];
            if (strip >= L::IMAGES * L::STRIPS) p.x[i] = -(1 << 29); /* outside with any tap */
        }
        return p;
    }
    __device__ __forceinline__ void fetch(const Place &p, uint32_t to, int slab) const {
        const int c = slab / L::KERNEL * TILE_K, y = slab % Y::KERNEL * L::template STEP<Y>;
        const int x = slab / Y::KERNEL % X::KERNEL * L::template STEP<X>;
        to += AcrossSlab::word(threadIdx.x % 128, 0) * 4;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const bool inside = (unsigned)(p.x[i] + x) < (unsigned)X::IN &&
                                (unsigned)(p.y[i] + y) < (unsigned)Y::IN;
            const float *from = p.from[i] + (long long)c * L::AREA + y * X::IN + x;
#pragma unroll
            for (int k = 0; k < TILE_K; k++)
                copy_async<4>(to + AcrossSlab::word(i * 128, k) * 4, from + (long long)k * L::AREA,
                              inside);
        }
    }
};

/* The right operand. */
template <class C> struct Filters<InLines<C>> {
    static constexpr bool ALONG_DEPTH = true;
    const float *data;
    __device__ __forceinline__ float at(int, int column, int slab, int k) const {
        using L = InLines<C>;
        using X = typename C::X;
        using Y = typename C::Y;
        const int c = slab / L::KERNEL * TILE_K + k;
        if (column >= L::COLUMNS) return 0.0f;
        const int y = L::template tap<Y>(slab % Y::KERNEL);
        const int x = L::template tap<X>(slab / Y::KERNEL % X::KERNEL);
        const int filter = X::TRANSPOSED ? c * L::COLUMNS + column : column * L::DEPTH + c;
        return __ldg(data + (long long)filter * L::KERNEL + y * X::KERNEL + x);
    }
};

/* Where a thread's four rows lie. */
template <class C> struct FourPixels<InLines<C>> {
    long long at[4];
    bool inside[4];

    __device__ __forceinline__ FourPixels(int, int row) {
        using L = InLines<C>;
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int place = L::place(row + r), strip = place / C::X::OUT;
            const int y = L::top(strip) + L::line(row + r), image = strip / L::STRIPS;
            at[r] = (long long)image * L::FILTERS * L::OUT_AREA + y * C::X::OUT + place % C::X::OUT;
            inside[r] = image < L::IMAGES && y < C::Y::OUT;
        }
    }
};

/* Eight lanes have eight neighbouring places of a line: 32 bytes. Where these are whole sectors of
 * memory they are stored as they are, elsewhere in runs of 16 places. */
template <class F, class C> struct StorePixels<F, InLines<C>> : F {
    float *out;
    template <class P>
    __device__ __forceinline__ void tile(P &part, int, int row, int column) const {
        const FourPixels<InLines<C>> pixels(0, row);
        const bool all =
            pixels.inside[0] && pixels.inside[1] && pixels.inside[2] && pixels.inside[3];
        if (__all_sync(0xffffffffu, all))
            store<true>(part, row, column, pixels);
        else
            store<false>(part, row, column, pixels);
    }

  private:
    using Pixels = FourPixels<InLines<C>>;
    static constexpr int LINE = InLines<C>::template STEP<typename C::Y> * C::X::OUT;
    static constexpr long long PITCH = C::OUT_AREA;
    template <class P> static constexpr bool WHOLE = C::COLUMNS % P::N == 0;

    template <bool ALL, class P>
    __device__ __forceinline__ void store(P &part, int row, int column, const Pixels &at) const {
        if constexpr (C::X::OUT % 8 == 0)
            store_plain<ALL>(part, row, column, at);
        else
            store_runs<ALL>(part, row, column, at);
    }

    template <bool ALL, class P>
    __device__ __forceinline__ void store_plain(P &part, int row, int column,
                                                const Pixels &at) const {
        float *const to[2] = {out + at.at[0] + column * PITCH, out + at.at[1] + column * PITCH};
#pragma unroll
        for (int n = 0; n < P::N; n += 8)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                if (!WHOLE<P> && column + n + e >= C::COLUMNS) continue;
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    float *const v = part.v[i] + n / 2 + e;
#pragma unroll
                    for (int h = 0; h < 2; h++)
                        if (ALL || at.inside[2 * i + h])
                            v[2 * h] = F::operator()(v[2 * h], row + 2 * i + h, column + n + e);
#pragma unroll
                    for (int h = 0; h < 2; h++)
                        if (ALL || at.inside[2 * i + h])
                            to[h][(n + e) * PITCH + i * LINE] = v[2 * h];
                }
                __syncwarp(); /* up to 3 % faster (l1_062): not all stores at the end */
            }
    }

    /* Lanes 2 i and 2 i + 1 have two columns of the same rows. They exchange them, so that one has
     * both columns of the first place of each pair and the other of the second. */
    template <bool ALL, class P>
    __device__ __forceinline__ void store_runs(P &part, int row, int column,
                                               const Pixels &at) const {
        const bool second = threadIdx.x % 2;
        const bool(&in)[4] = at.inside;
        const bool inside[2] = {second ? in[1] : in[0], second ? in[3] : in[2]};
        const int first = column - 2 * second; /* of the two lanes' */
        float *const to = out + (second ? at.at[1] : at.at[0]) + first * PITCH;
#pragma unroll
        for (int n = 0; n < P::N; n += 8)
#pragma unroll
            for (int e = 0; e < 2; e++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    float *const v = part.v[i] + n / 2 + e;
#pragma unroll
                    for (int h = 0; h < 2; h++)
                        if ((ALL || in[2 * i + h]) && (WHOLE<P> || column + n + e < C::COLUMNS))
                            v[2 * h] = F::operator()(v[2 * h], row + 2 * i + h, column + n + e);
                    const float sent = second ? v[0] : v[2];
                    const float other = __shfl_xor_sync(0xffffffffu, sent, 1);
                    const float stored[2] = {second ? other : v[0], second ? v[2] : other};
#pragma unroll
                    for (int k = 0; k < 2; k++)
                        if ((ALL || inside[i]) && (WHOLE<P> || first + n + e + 2 * k < C::COLUMNS))
                            to[(n + e + 2 * k) * PITCH + i * LINE] = stored[k];
                }
    }
};

} // namespace kp

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#include "lines_hopper.cuh"
#endif
