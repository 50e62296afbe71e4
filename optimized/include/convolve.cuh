/* convolve.cuh: convolutions and transposed convolutions over one to three axes as products
 * (product.cuh) whose left operand, the patches, is never stored.
 *
 * Rows are the output pixels of all images, columns the filters of a group, and the depth runs over
 * the filter's positions (taps), and over channels within: a slab is 32 channels of one tap, or
 * pieces of 16, 8 or fewer. A slab of 256 pixels is gathered word by word, neighbours from
 * neighbours, zeros for the padding; L1 and L2 see each element once a tap.
 *
 * A transposed convolution with stride s is s convolutions along each axis, its phases: outputs of
 * one phase (o % s) use the same taps and neighbouring inputs. Phases and groups are batches; the
 * phases of a tile are computed together, so that the lines that they share meet in L2.
 *
 * Reaches 87 to 94 % of the floor of products in the best convolutions of level 1 (l1_056, l1_069),
 * 16 to 30 % in the worst (l1_058, l1_070, l1_077), 65 % or more in half of them. */
#pragma once
#include "product.cuh"
#include "stores.cuh"

namespace kp {

/* An axis of a convolution. Outputs `point` of a phase use taps(phase) taps: tap(phase, j) reads
 * input(point, phase) + j * STEP, and output(point, phase) is the index of the result. */
template <int IN_, int KERNEL_, int STRIDE = 1, int PAD = 0, int DILATION = 1> struct Axis {
    static constexpr bool TRANSPOSED = false;
    static constexpr int IN = IN_, KERNEL = KERNEL_, TAPS = KERNEL, STEP = DILATION, PHASES = 1;
    static constexpr int FEWEST = KERNEL; /* taps of a phase that has any */
    static constexpr int OUT = (IN + 2 * PAD - DILATION * (KERNEL - 1) - 1) / STRIDE + 1;
    static constexpr int POINTS = OUT;
    static __device__ __forceinline__ int taps(int) { return KERNEL; }
    static __device__ __forceinline__ int tap(int, int j) { return j; }
    static __device__ __forceinline__ int input(int point, int) { return point * STRIDE - PAD; }
    static __device__ __forceinline__ int output(int point, int) { return point; }
};

/* An axis of a transposed convolution: output o takes in input i by tap t where
 * o = i * STRIDE - PAD + t * DILATION. */
template <int IN_, int KERNEL_, int STRIDE = 1, int PAD = 0, int DILATION = 1, int OUT_PAD = 0>
struct TransposedAxis {
    static constexpr bool TRANSPOSED = true;
    static constexpr int divisor(int a, int b) { return b ? divisor(b, a % b) : a; }
    static constexpr int EVERY = STRIDE / divisor(STRIDE, DILATION); /* taps of a phase lie apart */
    static constexpr int IN = IN_, KERNEL = KERNEL_, PHASES = STRIDE;
    static constexpr int TAPS = (KERNEL + EVERY - 1) / EVERY, STEP = -(EVERY * DILATION / STRIDE);
    static constexpr int FEWEST = KERNEL < EVERY ? 1 : KERNEL / EVERY;
    static constexpr int OUT = (IN - 1) * STRIDE - 2 * PAD + DILATION * (KERNEL - 1) + OUT_PAD + 1;
    static constexpr int POINTS = (OUT + STRIDE - 1) / STRIDE;
    /* The first tap of a phase, or KERNEL if it has none. */
    static __device__ __forceinline__ int first(int phase) {
        int t = 0;
        while (t < EVERY && (phase + PAD + t * (STRIDE - 1) * DILATION) % STRIDE) t++;
        return t < EVERY && t < KERNEL ? t : KERNEL;
    }
    static __device__ __forceinline__ int taps(int phase) {
        return (KERNEL - first(phase) + EVERY - 1) / EVERY;
    }
    static __device__ __forceinline__ int tap(int phase, int j) { return first(phase) + j * EVERY; }
    static __device__ __forceinline__ int input(int point, int phase) {
        return point + (phase + PAD - first(phase) * DILATION) / STRIDE;
    }
    static __device__ __forceinline__ int output(int point, int phase) {
        return point * STRIDE + phase;
    }
};

/* x [IMAGES][CHANNELS][Z][Y][X], FILTERS results; axes of one length and one tap are left out. The
 * weight is [FILTERS][CHANNELS / GROUPS][taps], transposed [CHANNELS][FILTERS / GROUPS][taps]. */
template <int IMAGES, int CHANNELS_, int FILTERS_, int GROUPS_, class X_, class Y_ = Axis<1, 1>,
          class Z_ = Axis<1, 1>>
struct Convolution {
    using X = X_;
    using Y = Y_;
    using Z = Z_;
    static constexpr int CHANNELS = CHANNELS_, FILTERS = FILTERS_, GROUPS = GROUPS_;
    static constexpr int DEPTH = CHANNELS / GROUPS; /* channels of a group */
    static constexpr int AREA = X::IN * Y::IN * Z::IN, OUT_AREA = X::OUT * Y::OUT * Z::OUT;
    static constexpr int KERNEL = X::KERNEL * Y::KERNEL * Z::KERNEL;
    static constexpr int PIXELS = X::POINTS * Y::POINTS * Z::POINTS;
    static constexpr int PHASES = X::PHASES * Y::PHASES * Z::PHASES;

    /* A slab is PIECES pieces of EACH channels of a tap, which has PIECES_A_TAP of them. What is
     * left of a slab is zero, and so are channels beyond the last. */
    static constexpr int EACH = DEPTH % 32 == 0   ? 32
                                : DEPTH <= 16     ? DEPTH
                                : DEPTH % 16 == 0 ? 16
                                : DEPTH % 8 == 0  ? 8
                                                  : 32;
    static constexpr int PIECES = TILE_K / EACH, PIECES_A_TAP = (DEPTH + EACH - 1) / EACH;
    static constexpr int USED = PIECES * EACH;
    static __device__ __host__ __forceinline__ constexpr int slabs(int taps) {
        return (taps * PIECES_A_TAP + PIECES - 1) / PIECES;
    }

    /* What a product asks for (product.cuh). */
    static constexpr long long ROWS = (long long)IMAGES * PIXELS;
    static constexpr int COLUMNS = FILTERS / GROUPS, SLABS = slabs(X::TAPS * Y::TAPS * Z::TAPS);
    static constexpr int TERMS = DEPTH * X::FEWEST * Y::FEWEST * Z::FEWEST;
    static constexpr int BATCHES = GROUPS * PHASES, B_BATCHES = BATCHES;
    static constexpr bool BATCH_FASTEST = true;
    static_assert(ROWS < 1LL << 30, "rows are counted in 32 bits");
    static __device__ __forceinline__ int first_slab(int, int, int, int, int) { return 0; }
    static __device__ __forceinline__ int end_slab(int batch, int, int, int, int) {
        return PHASES == 1 ? SLABS : slabs(taps_of(batch));
    }

    /* A batch's group and its phase along each axis. */
    static __device__ __forceinline__ int group(int batch) { return batch / PHASES; }
    static __device__ __forceinline__ int x(int batch) { return batch % X::PHASES; }
    static __device__ __forceinline__ int y(int batch) { return batch / X::PHASES % Y::PHASES; }
    static __device__ __forceinline__ int z(int batch) {
        return batch / (X::PHASES * Y::PHASES) % Z::PHASES;
    }
    static __device__ __forceinline__ int taps_of(int batch) {
        return X::taps(x(batch)) * Y::taps(y(batch)) * Z::taps(z(batch));
    }
};

/* The left operand. Each thread copies two pixels. */
template <class C> struct Patches : AcrossSlab {
    using X = typename C::X;
    using Y = typename C::Y;
    using Z = typename C::Z;
    const float *data;

    struct Place {
        const float *from[2];    /* channel 0 of what the first tap reads, if that is inside */
        int x[2], y[2], z[2];    /* where that is */
        int taps_x, taps_y, all; /* of the phase */
    };
    __device__ __forceinline__ Place place(int batch, int row) const {
        Place p;
        p.taps_x = X::taps(C::x(batch)), p.taps_y = Y::taps(C::y(batch));
        p.all = C::taps_of(batch);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int at = row + threadIdx.x % 128 + i * 128, pixel = at % C::PIXELS;
            p.x[i] = X::input(pixel % X::POINTS, C::x(batch));
            p.y[i] = Y::input(pixel / X::POINTS % Y::POINTS, C::y(batch));
            p.z[i] = Z::input(pixel / (X::POINTS * Y::POINTS), C::z(batch));
            const long long channel =
                (long long)(at / C::PIXELS) * C::CHANNELS + C::group(batch) * C::DEPTH;
            p.from[i] = data + channel * C::AREA + (p.z[i] * Y::IN + p.y[i]) * X::IN + p.x[i];
            if (!whole_tiles(C::ROWS) && at >= C::ROWS)
                p.x[i] = -(1 << 29); /* outside with any tap */
        }
        return p;
    }
    __device__ __forceinline__ void fetch(const Place &p, uint32_t to, int slab) const {
        to += AcrossSlab::word(threadIdx.x % 128, 0) * 4;
#pragma unroll
        for (int t = 0; t < C::PIECES; t++) {
            const int piece = slab * C::PIECES + t, j = piece / C::PIECES_A_TAP;
            const int c = piece % C::PIECES_A_TAP * C::EACH;
            const int x = j % p.taps_x * X::STEP, y = j / p.taps_x % p.taps_y * Y::STEP;
            const int z = j / (p.taps_x * p.taps_y) * Z::STEP;
            const long long further = (long long)c * C::AREA + (z * Y::IN + y) * X::IN + x;
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const bool inside = (C::PIECES == 1 || j < p.all) &&
                                    (unsigned)(p.x[i] + x) < (unsigned)X::IN &&
                                    (unsigned)(p.y[i] + y) < (unsigned)Y::IN &&
                                    (unsigned)(p.z[i] + z) < (unsigned)Z::IN;
                const float *from = p.from[i] + further;
#pragma unroll
                for (int k = 0; k < C::EACH; k++)
                    copy_async<4>(to + AcrossSlab::word(i * 128, t * C::EACH + k) * 4,
                                  from + (long long)k * C::AREA,
                                  inside && (C::DEPTH % C::EACH == 0 || c + k < C::DEPTH));
            }
        }
#pragma unroll
        for (int k = C::USED; k < TILE_K; k++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                copy_async<4>(to + AcrossSlab::word(i * 128, k) * 4, data, false);
    }
};

/* The right operand. */
template <class C> struct Filters {
    static constexpr bool ALONG_DEPTH = true;
    const float *data;
    __device__ __forceinline__ float at(int batch, int column, int slab, int k) const {
        using X = typename C::X;
        using Y = typename C::Y;
        const int piece = slab * C::PIECES + k / C::EACH, j = piece / C::PIECES_A_TAP;
        const int c = piece % C::PIECES_A_TAP * C::EACH + k % C::EACH;
        if (column >= C::COLUMNS || c >= C::DEPTH || k >= C::USED || j >= C::taps_of(batch))
            return 0.0f;
        const int taps_x = X::taps(C::x(batch)), taps_y = Y::taps(C::y(batch));
        const int x = X::tap(C::x(batch), j % taps_x), y = Y::tap(C::y(batch), j / taps_x % taps_y);
        const int z = C::Z::tap(C::z(batch), j / (taps_x * taps_y));
        const int first = C::group(batch) * (X::TRANSPOSED ? C::DEPTH : C::COLUMNS);
        const int filter =
            X::TRANSPOSED ? (first + c) * C::COLUMNS + column : (first + column) * C::DEPTH + c;
        return __ldg(data + (long long)filter * C::KERNEL + (z * Y::KERNEL + y) * X::KERNEL + x);
    }
};

/* Where four rows from `row` on lie in out[image][filter][pixel], of filter 0. */
template <class C> struct FourPixels {
    long long at[4];
    bool inside[4];

    __device__ __forceinline__ FourPixels(int batch, int row) {
        using X = typename C::X;
        using Y = typename C::Y;
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int pixel = (row + r) % C::PIXELS;
            const int x = X::output(pixel % X::POINTS, C::x(batch));
            const int y = Y::output(pixel / X::POINTS % Y::POINTS, C::y(batch));
            const int z = C::Z::output(pixel / (X::POINTS * Y::POINTS), C::z(batch));
            const long long image = (row + r) / C::PIXELS;
            at[r] = image * C::FILTERS * C::OUT_AREA + (z * Y::OUT + y) * X::OUT + x;
            inside[r] = row + r < C::ROWS && x < X::OUT && y < Y::OUT && z < C::Z::OUT;
        }
    }
};

/* f(value, row, filter) to out[image][filter][pixel]; f is the base. */
template <class F, class C> struct StorePixels : F {
    float *out;
    template <class P>
    __device__ __forceinline__ void tile(P &part, int batch, int row, int column) const {
        constexpr bool FOURS = C::PHASES == 1 && C::PIXELS % 4 == 0;
        const int filter = C::group(batch) * C::COLUMNS + column;
        const FourPixels<C> pixels(batch, row);
        store_columns<C::COLUMNS, C::OUT_AREA, FOURS>(part, (const F &)*this, row, column, filter,
                                                      out + (long long)filter * C::OUT_AREA,
                                                      pixels.at, pixels.inside);
    }
};

/* Enqueues out = f(convolution of x with weight); scratch: split_bytes<C, T>(). */
template <class C, class T, class F>
static void convolve(const float *x, const float *weight, float *out, const F &f, void *scratch,
                     cudaStream_t stream) {
    const Patches<C> patches = {{}, x};
    const Filters<C> filters = {weight};
    const StorePixels<F, C> store = {f, out};
    product<C, T>(patches, filters, store, scratch, stream);
}

} // namespace kp
