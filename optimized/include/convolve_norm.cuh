/* convolve_norm.cuh: convolutions (convolve.cuh) whose results are normalised: group norm, instance
 * norm, batch norm in training mode.
 *
 * The stores of the convolution gather moments of the 32 rows that a warp has (moments.cuh). Two
 * small kernels join these, as Chan does, with no difference of large sums: to those of a channel
 * of an image, and to those of what shares a mean. A last one maps the results in place, from the
 * end of the tensor, which may still be in the L2 cache, to its beginning. So results are written,
 * read and written; moments are 8 bytes to 128 of results. A task that needs nothing but means and
 * variances stores no results.
 *
 * Any sizes: rows of several images, and pixels beyond the edge of a phase, are told apart.
 * Limits: that of the product, then 8 bytes a result over the copy bandwidth. Reaches 21 to 77 % of
 * the kernel's floor (l2_023, l2_077). */
#pragma once
#include "convolve.cuh"
#include "moments.cuh"
#include "states.cuh"

namespace kp {

/* Deviations are squared in this unit, so that squares of 2^110 do not overflow. The least are
 * subnormal and lose 2^-50 at most, which is nothing beside an eps of 1e-5. */
constexpr float MOMENT_UNIT = 0x1p-50f;

/* Moments of C's results, in scratch memory. A slice is what a warp has of one image and phase:
 * 32 rows, or what its image, or its phase, has of them. */
template <class C> struct ChannelMoments {
    static constexpr int IMAGES = (int)(C::ROWS / C::PIXELS);
    static constexpr int SLICES = C::PIXELS % 32 ? (C::PIXELS + 62) / 32 : C::PIXELS / 32;
    static constexpr int PHASES = IMAGES * C::PHASES; /* of all images */
    static constexpr long long ALL = (long long)PHASES * SLICES;

    /* Of a channel, image and phase. */
    struct Plane {
        double mean, square, count;
    };

    Plane *plane;   /* [IMAGES][PHASES][FILTERS] */
    Centred *state; /* [IMAGES][PHASES][SLICES][FILTERS]; squares in units */
    float *count;   /* [IMAGES][PHASES][SLICES]: rows; not set for slices that an image lacks */

    static constexpr size_t bytes() {
        return (size_t)(PHASES * (long long)C::FILTERS * sizeof(Plane) +
                        ALL * (C::FILTERS * sizeof(Centred) + sizeof(float)) + 15) /
               16 * 16;
    }
    static ChannelMoments in(void *scratch) { /* of bytes(), aligned to 16 */
        Plane *plane = (Plane *)scratch;
        Centred *state = (Centred *)(plane + PHASES * (long long)C::FILTERS);
        return {plane, state, (float *)(state + ALL * C::FILTERS)};
    }
    void *end() const { return (char *)plane + bytes(); }
    /* The first slice of an image, counted over all rows, and how many it has. */
    static __device__ __forceinline__ int first(int image) { return image * C::PIXELS / 32; }
    static __device__ __forceinline__ int slices(int image) {
        return ((image + 1) * C::PIXELS - 1) / 32 - first(image) + 1;
    }
    static __device__ __forceinline__ int index(int image, int phase, int slice) {
        return (image * C::PHASES + phase) * SLICES + slice;
    }
};

/* A store that gathers the moments of f(value, row, filter); f is the base. */
template <class F, class C> struct GatherMoments : F {
    ChannelMoments<C> moments;

    template <class P>
    __device__ __forceinline__ void take(const P &part, int batch, int row, int column) const {
        using M = ChannelMoments<C>;
        /* The warp's first row, from one lane: told that no lane leaves the loop before another,
         * the compiler spills nothing. */
        const int first = __shfl_sync(0xffffffffu, row, 0);
        const int filter = C::group(batch) * C::COLUMNS + column;
        const int last = min(first + 31, (int)C::ROWS - 1);
        const FourPixels<C> pixels(batch, row);
#pragma unroll 1
        for (int image = first / C::PIXELS; image <= last / C::PIXELS; image++) {
            bool own[4];
            int count = 0;
#pragma unroll
            for (int r = 0; r < 4; r++) {
                own[r] = pixels.inside[r] && (row + r) / C::PIXELS == image;
                count += __popc(__ballot_sync(0xffffffffu, own[r]));
            }
            const float rows = (float)(count / 4); /* four lanes have each row */
            const int slice = M::index(image, batch % C::PHASES, first / 32 - M::first(image));
            if (filter == 0 && threadIdx.x % 32 == 0) moments.count[slice] = rows;
            gather_moments<C::COLUMNS>(part, own, fmaxf(rows, 1.0f), MOMENT_UNIT, column,
                                       moments.state + (long long)slice * C::FILTERS + filter);
        }
    }

    template <class P>
    __device__ __forceinline__ void tile(P &part, int batch, int row, int column) const {
        const int filter = C::group(batch) * C::COLUMNS + column;
#pragma unroll
        for (int j = 0; j < P::N / 2; j++) {
            const int n = j / 4 * 8 + j % 2;
            if (C::COLUMNS % P::N && column + n >= C::COLUMNS) continue;
#pragma unroll
            for (int i = 0; i < 2; i++)
                part.v[i][j] =
                    F::operator()(part.v[i][j], row + part.row(i, j / 2 % 2), filter + n);
        }
        take(part, batch, row, column);
    }
};

/* The same, and f(value, row, filter) to out[image][filter][pixel]. */
template <class F, class C> struct StoreAndGather : GatherMoments<F, C> {
    float *out;
    template <class P>
    __device__ __forceinline__ void tile(P &part, int batch, int row, int column) const {
        const StorePixels<F, C> store = {(const F &)*this, out};
        store.tile(part, batch, row, column);
        this->take(part, batch, row, column);
    }
};

/* ---- joined ---- */

/* A block joins the slices of 16 channels of an image and phase, 16 threads those of a channel. */
constexpr int JOIN_WIDE = 16, JOIN_DEEP = 16;

/* The sum of v over the threads of a channel. */
__device__ __forceinline__ double channel_sum(double v) {
    __shared__ double part[JOIN_DEEP][JOIN_WIDE];
    const int channel = threadIdx.x % JOIN_WIDE;
    __syncthreads(); /* the sums before this are read */
    part[threadIdx.x / JOIN_WIDE][channel] = v;
    __syncthreads();
    v = 0.0;
#pragma unroll
    for (int i = 0; i < JOIN_DEEP; i++) v += part[i][channel];
    return v;
}

/* First the mean, then squares about that. */
template <class C>
__global__ void __launch_bounds__(JOIN_WIDE *JOIN_DEEP)
    join_slices_kernel(ChannelMoments<C> moments) {
    using M = ChannelMoments<C>;
    constexpr int TILES = (C::FILTERS + JOIN_WIDE - 1) / JOIN_WIDE;
    const int phase = blockIdx.x / TILES, slices = M::slices(phase / C::PHASES);
    const int filter = blockIdx.x % TILES * JOIN_WIDE + threadIdx.x % JOIN_WIDE;
    const float *const number = moments.count + (long long)phase * M::SLICES;
    const Centred *const state = moments.state + (long long)phase * M::SLICES * C::FILTERS;
    auto for_each = [&](auto &&take) {
        if (C::FILTERS % JOIN_WIDE && filter >= C::FILTERS) return;
#pragma unroll 4
        for (int i = threadIdx.x / JOIN_WIDE; i < slices; i += JOIN_DEEP)
            take(number[i], state[(long long)i * C::FILTERS + filter]);
    };
    double count = 0.0, sum = 0.0, square = 0.0;
    for_each([&](float n, const Centred &m) { count += n, sum += m.sum; });
    count = channel_sum(count);
    const double mean = channel_sum(sum) / (count > 0.0 ? count : 1.0);
    for_each([&](float n, const Centred &m) {
        const double off = (m.sum - n * mean) * MOMENT_UNIT; /* n times the mean's */
        square += m.square + off * off * (1.0f / fmaxf(n, 1.0f));
    });
    square = channel_sum(square);
    if (threadIdx.x < JOIN_WIDE && filter < C::FILTERS)
        moments.plane[(long long)phase * C::FILTERS + filter] = {mean, square, count};
}

/* What shares a mean: CHANNELS neighbouring channels of IMAGES images. Group norm has one image and
 * the channels of a group, instance norm one of each, batch norm all images and one channel. */
template <class C_, int IMAGES_, int CHANNELS_> struct Parts {
    using C = C_;
    static constexpr int IMAGES = IMAGES_, CHANNELS = CHANNELS_;
    static constexpr int ACROSS = C::FILTERS / CHANNELS; /* parts side by side */
    static constexpr int COUNT = ChannelMoments<C>::IMAGES / IMAGES * ACROSS;
    static_assert(C::FILTERS % CHANNELS == 0 && ChannelMoments<C>::IMAGES % IMAGES == 0,
                  "whole parts");
    /* The part of a channel's plane, counted over all images. */
    static __device__ __forceinline__ int of(int plane) {
        return plane / C::FILTERS / IMAGES * ACROSS + plane % C::FILTERS / CHANNELS;
    }
};

/* The mean and 1 / sqrt(variance + eps), by the biased variance. */
struct Spread {
    float mean, scale;
};

/* What a task takes of scratch, aligned to 16: the filters that T splits, the convolution's results
 * if no output holds them (KEPT), its moments, and so many spreads. */
template <class C, class T, int SPREADS, bool KEPT = false> struct NormScratch {
    float *results;
    ChannelMoments<C> moments;
    Spread *spread;

    static constexpr size_t RESULTS =
        KEPT ? ((size_t)C::ROWS / C::PIXELS * C::FILTERS * C::OUT_AREA * sizeof(float) + 15) / 16 *
                   16
             : 0;
    static constexpr size_t bytes() {
        return split_bytes<C, T>() + RESULTS + ChannelMoments<C>::bytes() +
               SPREADS * sizeof(Spread);
    }
    static NormScratch in(void *scratch) {
        char *results = (char *)scratch + split_bytes<C, T>();
        const ChannelMoments<C> moments = ChannelMoments<C>::in(results + RESULTS);
        return {(float *)results, moments, (Spread *)moments.end()};
    }
};

/* A warp a part: first the mean, then squares about that. */
template <class P>
__global__ void __launch_bounds__(32)
    join_planes_kernel(const typename ChannelMoments<typename P::C>::Plane *__restrict__ plane,
                       double eps, Spread *__restrict__ spread) {
    using C = typename P::C;
    constexpr int EACH = C::PHASES * P::CHANNELS; /* of an image */
    const int image = blockIdx.x / P::ACROSS * P::IMAGES;
    plane += (long long)image * C::PHASES * C::FILTERS + blockIdx.x % P::ACROSS * P::CHANNELS;
    auto for_each = [&](auto &&take) {
        for (int i = threadIdx.x; i < P::IMAGES * EACH; i += 32)
            take(plane[i / P::CHANNELS * C::FILTERS + i % P::CHANNELS]);
    };
    double count = 0.0, sum = 0.0, square = 0.0;
    for_each([&](const auto &p) { count += p.count, sum += p.count * p.mean; });
    count = lanes_sum(count);
    const double mean = lanes_sum(sum) / count;
    for_each([&](const auto &p) {
        const double off = (p.mean - mean) * MOMENT_UNIT;
        square += p.square + p.count * off * off;
    });
    const double variance = lanes_sum(square) / count / ((double)MOMENT_UNIT * MOMENT_UNIT);
    if (threadIdx.x == 0) spread[blockIdx.x] = {(float)mean, (float)(1.0 / sqrt(variance + eps))};
}

/* y = f((y - mean) * scale * weight + bias, place, channel), with a weight and a bias a channel,
 * either of which may be null: 1 and 0; f is the base, and a place an index of y. */
template <class P, class F> struct Normalize : F {
    const Spread *spread;
    const float *weight, *bias;
    float *y;

    /* What maps a plane. */
    struct Mapper {
        const F &f;
        int channel;
        float mean, scale, weight, bias; /* scale * weight may be too small for a float */
        __device__ __forceinline__ float operator()(float v, int place) const {
            return f((v - mean) * scale * weight + bias, place, channel);
        }
    };
    __device__ __forceinline__ Mapper mapper(int plane) const {
        const Spread s = spread[P::of(plane)];
        const int channel = plane % P::C::FILTERS;
        return {*this,
                channel,
                s.mean,
                s.scale,
                weight ? __ldg(weight + channel) : 1.0f,
                bias ? __ldg(bias + channel) : 0.0f};
    }
};

constexpr int NORMALIZE_THREADS = 128;

/* A float4 a thread: of one plane, or of several. */
template <class P, int AREA, class F>
__global__ void __launch_bounds__(NORMALIZE_THREADS) normalize_kernel(Normalize<P, F> n) {
    constexpr int ALL = ChannelMoments<typename P::C>::IMAGES * P::C::FILTERS * AREA;
    const int at = ((gridDim.x - 1 - blockIdx.x) * NORMALIZE_THREADS + threadIdx.x) * 4;
    if (ALL % (NORMALIZE_THREADS * 4) && at >= ALL) return;
    if (AREA % 4 == 0 || at % AREA + 4 <= AREA) {
        float4 v = *(const float4 *)(n.y + at);
        const auto f = n.mapper(at / AREA);
        v = make_float4(f(v.x, at), f(v.y, at + 1), f(v.z, at + 2), f(v.w, at + 3));
        *(float4 *)(n.y + at) = v;
    } else {
        for (int i = at; i < at + 4 && i < ALL; i++) n.y[i] = n.mapper(i / AREA)(n.y[i], i);
    }
}

/* ---- host ---- */

/* Enqueues the joining of slices. */
template <class C> static void join_slices(const ChannelMoments<C> &moments, cudaStream_t stream) {
    constexpr int TILES = (C::FILTERS + JOIN_WIDE - 1) / JOIN_WIDE;
    join_slices_kernel<<<ChannelMoments<C>::PHASES * TILES, JOIN_WIDE * JOIN_DEEP, 0, stream>>>(
        moments);
}

/* Enqueues out = f(convolution of x with weight) and the gathering of f's moments; or the gathering
 * alone. scratch: split_bytes<C, T>(). */
template <class C, class T, class F>
static void convolve_moments(const float *x, const float *weight, float *out, const F &f,
                             const ChannelMoments<C> &moments, void *scratch, cudaStream_t stream) {
    const StoreAndGather<F, C> store = {{f, moments}, out};
    product<C, T>(Patches<C>{{}, x}, Filters<C>{weight}, store, scratch, stream);
    join_slices(moments, stream);
}
template <class C, class T, class F>
static void convolve_moments(const float *x, const float *weight, const F &f,
                             const ChannelMoments<C> &moments, void *scratch, cudaStream_t stream) {
    const GatherMoments<F, C> store = {f, moments};
    product<C, T>(Patches<C>{{}, x}, Filters<C>{weight}, store, scratch, stream);
    join_slices(moments, stream);
}

/* Enqueues spread[i] = that of part i, P::COUNT in all. */
template <class P>
static void join_moments(const ChannelMoments<typename P::C> &moments, double eps, Spread *spread,
                         cudaStream_t stream) {
    join_planes_kernel<P><<<P::COUNT, 32, 0, stream>>>(moments.plane, eps, spread);
}

/* Enqueues y = f((y - mean) * scale * weight + bias, place, channel) in place; a plane of y has
 * AREA elements. */
template <class P, int AREA = P::C::OUT_AREA, class F>
static void normalize(const Spread *spread, const float *weight, const float *bias, const F &f,
                      float *y, cudaStream_t stream) {
    constexpr long long ALL =
        (long long)ChannelMoments<typename P::C>::IMAGES * P::C::FILTERS * AREA;
    static_assert(ALL < 1LL << 31, "elements are counted in 32 bits");
    constexpr int EACH = NORMALIZE_THREADS * 4;
    const Normalize<P, F> n = {f, spread, weight, bias, y};
    normalize_kernel<P, AREA>
        <<<(unsigned)((ALL + EACH - 1) / EACH), NORMALIZE_THREADS, 0, stream>>>(n);
}

} // namespace kp
