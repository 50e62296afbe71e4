/* norm_behind.cuh: group norm of a convolution's results (convolve_lines.cuh) while later images
 * are still computed.
 *
 * Idea: a product leaves memory idle, and a norm the tensor cores. The stores gather the moments of
 * eight channels over a warp's 32 rows. On Hopper a fourth warpgroup of each block follows: one
 * warp counts the rows of each image that are in memory, and joins the moments of images that are
 * complete; three map these in place, each always the same piece of a plane. When the products are
 * done they stop where they are, and the kernels that come after do the rest: few images on Hopper,
 * all elsewhere. So no block waits for another one, and who maps a piece changes no result.
 *
 * Contract: groups of a multiple of eight channels, planes of a multiple of four results, up to 384
 * filters in whole tiles of 16, 32 or 64. normalize_behind() enqueues all of it; scratch of
 * behind_bytes().
 * Reaches: see l2_019. */
#pragma once
#include "convolve_lines.cuh"
#include "convolve_norm.cuh"
#include "told_words.cuh"

namespace kp {

/* The sums of v[i] over a warp; lane l gets that of i = l % COUNT. */
template <int COUNT> __device__ __forceinline__ float sum_each(float (&v)[COUNT]) {
    static_assert(COUNT == 2 || COUNT == 4 || COUNT == 8, "halves of halves");
#pragma unroll
    for (int step = COUNT / 2; step > 0; step /= 2)
#pragma unroll
        for (int i = 0; i < step; i++) {
            const bool upper = threadIdx.x & step;
            const float other = upper ? v[i] : v[i + step];
            v[i] = (upper ? v[i + step] : v[i]) + __shfl_xor_sync(0xffffffffu, other, step);
        }
    float sum = v[0];
#pragma unroll
    for (int step = COUNT; step < 32; step *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    return sum;
}

/* The norm of C's results in groups of CHANNELS, and where it keeps what in scratch memory. */
template <class C_, int CHANNELS_> struct GroupsBehind {
    using C = C_;
    using M = ChannelMoments<C>; /* for its slices */
    static constexpr int CHANNELS = CHANNELS_, ACROSS = C::FILTERS / CHANNELS;
    static constexpr int IMAGES = M::IMAGES, SLICES = IMAGES * M::SLICES, STATES = C::FILTERS / 8;
    /* A plane of float4 in PER pieces, about a warp each in all, and a piece in steps. */
    static constexpr int PER = 384 / C::FILTERS, PIECES = PER * C::FILTERS;
    static constexpr int PLANE = C::OUT_AREA / 4, EACH = (PLANE + PER - 1) / PER;
    static constexpr int STEP = 128, STEPS = (EACH + STEP - 1) / STEP;
    static_assert(C::FILTERS % CHANNELS == 0 && CHANNELS % 8 == 0 && C::OUT_AREA % 4 == 0 &&
                      PER > 0 && C::PHASES == 1,
                  "see the contract");

    Spread *spread; /* [IMAGES][ACROSS]; all ones until told */
    Centred *state; /* [IMAGES][slices][STATES]; squares in units */
    float *count;   /* [IMAGES][slices]: how many results of a channel */
    unsigned *rows; /* [IMAGES]: so many are stored, in all tiles' columns; then whether to stop */
    int *done;      /* [PIECES]: steps of all images */

    static constexpr size_t ONES = (size_t)IMAGES * ACROSS * sizeof(Spread);
    static constexpr size_t ZEROS = (IMAGES + 1 + PIECES) * sizeof(int);
    static constexpr size_t bytes() {
        return ONES + SLICES * (STATES * sizeof(Centred) + sizeof(float)) + ZEROS;
    }
    static GroupsBehind in(void *scratch) { /* of bytes(), aligned to 16 */
        Spread *spread = (Spread *)scratch;
        Centred *state = (Centred *)(spread + IMAGES * ACROSS);
        float *count = (float *)(state + (size_t)SLICES * STATES);
        unsigned *rows = (unsigned *)(count + SLICES);
        return {spread, state, count, rows, (int *)(rows + IMAGES + 1)};
    }
};

/* Stores f(value, row, filter) to out[image][filter][pixel], gathers moments, and says what is
 * stored; f is the base. Then out = the norm * weight + bias, with both a channel. */
template <class F, class G> struct StoreBehind : F {
    using C = typename G::C;
    using M = typename G::M;
    G groups;
    float *out;
    const float *weight, *bias;
    double eps;

    template <class P>
    __device__ __forceinline__ void tile(P &part, int batch, int row, int column) const {
        const FourPixels<C> pixels(batch, row);
        store_columns<C::COLUMNS, C::OUT_AREA, false>(part, (const F &)*this, row, column, column,
                                                      out + (long long)column * C::OUT_AREA,
                                                      pixels.at, pixels.inside);
        gather(part, pixels.inside, row, column);
    }

    /* Calls f(image, first row in all, row behind the last) for COUNT rows from `first` on. */
    template <int COUNT, class Take>
    static __device__ __forceinline__ void for_images(int first, Take &&f) {
        const int end = min(first + COUNT, (int)C::ROWS);
#pragma unroll 1
        for (int image = first / C::PIXELS; image * C::PIXELS < end; image++)
            f(image, max(first, image * C::PIXELS), min(end, (image + 1) * C::PIXELS));
    }

    /* Says that the block's tile of rows from `first` on is in memory, or that there is none left.
     * One thread, told by those who stored. */
    __device__ __forceinline__ void announce(int first) const {
        __threadfence();
        for_images<TILE_M>(first, [&](int image, int begin, int end) {
            atomicAdd(groups.rows + image, (unsigned)(end - begin));
        });
    }
    __device__ __forceinline__ void stop() const {
        atomicExch(groups.rows + G::IMAGES, 1u);
    }

    /* Joins the groups of complete images from group `index` on, each workers-th, and returns the
     * first that is left. A warp; T says in how many tiles a row is stored. */
    template <class T> __device__ __forceinline__ int join_some(int index, int workers) const {
#pragma unroll 1
        for (; index < G::IMAGES * G::ACROSS && complete<T>(index / G::ACROSS); index += workers)
            join(index);
        return index;
    }
    /* Maps a piece of each image, until it is to stop. A warp. */
    template <class T> __device__ __forceinline__ void map_all(int piece) const {
        if (piece >= G::PIECES) return;
        int steps = 0;
#pragma unroll 1
        for (int image = 0; image < G::IMAGES && steps == image * G::STEPS; image++) {
            while (!(told_state(spread_of(image, piece)).there() && complete<T>(image))) {
                if (stopped()) break;
                __nanosleep(500);
            }
            if (!stopped()) steps += map(image, piece, 0, true);
        }
        if (threadIdx.x % 32 == 0) groups.done[piece] = steps;
    }

    /* The same for what is left of a piece: each SLOTS-th image from `slot` on. */
    __device__ __forceinline__ void finish(int piece, int slot, int slots) const {
        const int done = groups.done[piece];
        for (int image = done / G::STEPS + slot; image < G::IMAGES; image += slots)
            map(image, piece, image == done / G::STEPS ? done % G::STEPS : 0, false);
    }

    /* Tells the spread of a group, counted over all images. A warp. */
    __device__ __forceinline__ void join(int index) const {
        constexpr int DEEP = G::CHANNELS / 8;
        const int image = index / G::ACROSS, states = M::slices(image) * DEEP;
        const float *const count = groups.count + (long long)image * M::SLICES;
        const Centred *const from =
            groups.state + (long long)image * M::SLICES * G::STATES + index % G::ACROSS * DEEP;
        double sum = 0.0, square = 0.0; /* in units */
#pragma unroll 8
        for (int i = threadIdx.x % 32; i < states; i += 32) {
            const float2 m = __ldcg((const float2 *)(from + i / DEEP * G::STATES + i % DEEP));
            const float n = 8.0f * __ldcg(count + i / DEEP);
            const double own = (double)m.x * MOMENT_UNIT;
            sum += own;
            square += m.y + own * own * (1.0f / fmaxf(n, 1.0f));
        }
        constexpr double VALUES = (double)C::OUT_AREA * G::CHANNELS, UNIT = MOMENT_UNIT;
        const double mean = lanes_sum(sum) / VALUES;
        const double variance = fmax(lanes_sum(square) / VALUES - mean * mean, 0.0);
        if (threadIdx.x % 32 == 0)
            tell_state(
                groups.spread + index,
                Spread{(float)(mean / UNIT), (float)(1.0 / sqrt(variance / (UNIT * UNIT) + eps))});
    }

  private:
    static __device__ __forceinline__ int channel(int piece) {
        return piece / G::PER;
    }
    __device__ __forceinline__ const Spread *spread_of(int image, int piece) const {
        return groups.spread + image * G::ACROSS + channel(piece) / G::CHANNELS;
    }
    template <class T> __device__ __forceinline__ bool complete(int image) const {
        constexpr unsigned ALL = C::PIXELS * (unsigned)(C::FILTERS / T::N);
        static_assert(C::FILTERS % T::N == 0, "whole tiles");
        if (*(volatile unsigned *)(groups.rows + image) < ALL) return false;
        __threadfence();
        return true;
    }
    __device__ __forceinline__ bool stopped() const {
        return *(volatile unsigned *)(groups.rows + G::IMAGES);
    }

    /* A warp normalises an image's piece from a step on, four float4 a lane and step. The number of
     * steps, fewer than all if it was to stop. */
    __device__ __forceinline__ int map(int image, int piece, int first, bool may_stop) const {
        const int filter = channel(piece), begin = piece % G::PER * G::EACH;
        const int from = begin + threadIdx.x % 32;
        const int end = min(begin + G::EACH, G::PLANE);
        float4 *to = (float4 *)out + (image * C::FILTERS + filter) * (long long)G::PLANE;
        const Spread spread = told_state(spread_of(image, piece)).state();
        const float w = __ldg(weight + filter), b = __ldg(bias + filter);
        int step = first;
#pragma unroll 1
        for (; step < G::STEPS; step++) {
            const int at = from + step * G::STEP;
            const bool stop = may_stop && stopped(); /* asked while the rest is read */
            float4 v[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (at + i * 32 < end) v[i] = __ldcg(to + at + i * 32);
            if (stop) break;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float *const x = &v[i].x;
#pragma unroll
                for (int k = 0; k < 4; k++) x[k] = (x[k] - spread.mean) * spread.scale * w + b;
                if (at + i * 32 < end) to[at + i * 32] = v[i];
            }
        }
        return step - first;
    }

    /* The moments of eight channels each, over a warp's rows. */
    template <class P>
    __device__ __forceinline__ void gather(const P &part, const bool (&inside)[4], int row,
                                           int column) const {
        constexpr int COUNT = P::N / 8;
        const int first = __shfl_sync(0xffffffffu, row, 0);
        for_images<32>(first, [&](int image, int begin, int end) {
            bool own[4];
            int rows = 0;
#pragma unroll
            for (int r = 0; r < 4; r++) {
                own[r] = inside[r] && row + r >= begin && row + r < end;
                rows += __popc(__ballot_sync(0xffffffffu, own[r]));
            }
            rows /= 4; /* four lanes have each row */
            float sum[COUNT], square[COUNT];
#pragma unroll
            for (int j = 0; j < COUNT; j++) {
                sum[j] = 0.0f;
#pragma unroll
                for (int k = 0; k < 8; k++)
                    if (own[k / 4 * 2 + k / 2 % 2]) sum[j] += part.v[k / 4][4 * j + k % 4];
            }
            const float total = sum_each(sum);
            const float mean = total / (8.0f * fmaxf((float)rows, 1.0f));
#pragma unroll
            for (int j = 0; j < COUNT; j++) {
                const float middle = __shfl_sync(0xffffffffu, mean, j) * -MOMENT_UNIT;
                square[j] = 0.0f;
#pragma unroll
                for (int k = 0; k < 8; k++) {
                    const float off = fmaf(part.v[k / 4][4 * j + k % 4], MOMENT_UNIT, middle);
                    if (own[k / 4 * 2 + k / 2 % 2]) square[j] += off * off;
                }
            }
            const float squares = sum_each(square);
            const int slice = M::index(image, 0, first / 32 - M::first(image));
            const int lane = threadIdx.x % 32, at = __shfl_sync(0xffffffffu, column, 0) / 8 + lane;
            if (lane < COUNT) groups.state[(long long)slice * G::STATES + at] = {total, squares};
            if (at == 0) groups.count[slice] = (float)rows;
        });
    }
};

/* ---- host ---- */

/* What the product has not joined: a warp a group. */
template <class Store>
__global__ void __launch_bounds__(32) join_rest_kernel(const __grid_constant__ Store store) {
    if (!told_state(store.groups.spread + blockIdx.x).there()) store.join(blockIdx.x);
}

constexpr int REST_SLOTS = 16; /* so many warps share what is left of a piece */

template <class Store>
__global__ void __launch_bounds__(32 * REST_SLOTS)
    map_rest_kernel(const __grid_constant__ Store store) {
    store.finish(blockIdx.x, threadIdx.x / 32, REST_SLOTS);
}

template <class G, class T> constexpr size_t behind_bytes() {
    return split_bytes<typename G::C, T>() + G::bytes();
}

/* Enqueues out = the norm of f(convolution of x with filters) * weight + bias, with a weight and a
 * bias a channel. scratch: behind_bytes<G, T>(). */
template <class G, class T, class F>
static void normalize_behind(const float *x, const float *filters, const float *weight,
                             const float *bias, double eps, const F &f, float *out, void *scratch,
                             cudaStream_t stream) {
    using C = typename G::C;
    using Store = StoreBehind<F, G>;
    const G own = G::in((char *)scratch + split_bytes<C, T>());
    const Store store = {f, own, out, weight, bias, eps};
    cudaMemsetAsync(own.spread, 0xff, G::ONES, stream);
    cudaMemsetAsync(own.rows, 0, G::ZEROS, stream);
    product<C, T>(Patches<C>{{}, x}, Filters<C>{filters}, store, scratch, stream);
    join_rest_kernel<<<G::IMAGES * G::ACROSS, 32, 0, stream>>>(store);
    map_rest_kernel<<<G::PIECES, 32 * REST_SLOTS, 0, stream>>>(store);
}

} // namespace kp
