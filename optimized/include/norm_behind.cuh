/* norm_behind.cuh: group norm of a convolution's results (convolve_lines.cuh) while later images
 * are still computed.
 *
 * Idea: a product leaves memory idle, and a norm the tensor cores. The stores gather the moments of
 * eight channels over a warp's 32 rows. On Hopper a fourth warpgroup of each block follows: one
 * warp counts the rows of each image that are in memory, one joins the moments of images that are
 * complete, and two map these in place, each always the same piece of a plane. When the products
 * are done they stop where they are, and the next kernels do the rest: few images on Hopper, all
 * elsewhere. So no block waits for another one, and who maps a piece changes no result.
 *
 * Contract: groups of a multiple of eight channels, planes of a multiple of four results, up to 256
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
    static constexpr int CHANNELS = CHANNELS_, ACROSS = C::FILTERS / CHANNELS;
    static constexpr int IMAGES = C::IMAGES, STATES = C::FILTERS / 8;
    /* A slice is what a warp has of one image: of 16 places, or what its image has of them. */
    static constexpr int ALL_PLACES = C::ALL_PLACES;
    static constexpr int SLICES = (ALL_PLACES % 16 ? (ALL_PLACES + 30) / 16 : ALL_PLACES / 16) * 2;
    /* A plane of float4 in PER pieces, about a warp each in all, and a piece in steps. */
    static constexpr int PER = 256 / C::FILTERS, PIECES = PER * C::FILTERS;
    static constexpr int PLANE = C::OUT_AREA / 4, EACH = (PLANE + PER - 1) / PER;
    static constexpr int STEP = 128, STEPS = (EACH + STEP - 1) / STEP;
    static_assert(C::FILTERS % CHANNELS == 0 && CHANNELS % 8 == 0 && C::OUT_AREA % 4 == 0 &&
                      PER > 0,
                  "see the contract");

    Spread *spread;   /* [IMAGES][ACROSS]; all ones until told */
    Centred *state;   /* [IMAGES][SLICES][STATES]; squares in units */
    float *share;     /* [IMAGES][SLICES]: 1 over how many values a state is of */
    unsigned *stored; /* [IMAGES]: places stored, in all tiles' columns; then whether to stop */
    int *done;        /* [PIECES]: steps of all images */

    static constexpr size_t ONES = (size_t)IMAGES * ACROSS * sizeof(Spread);
    static constexpr size_t ZEROS = (IMAGES + 1 + PIECES) * sizeof(int);
    static constexpr size_t bytes() {
        return ONES + (size_t)IMAGES * SLICES * (STATES * sizeof(Centred) + sizeof(float)) + ZEROS;
    }
    static GroupsBehind in(void *scratch) { /* of bytes(), aligned to 16 */
        Spread *spread = (Spread *)scratch;
        Centred *state = (Centred *)(spread + IMAGES * ACROSS);
        float *share = (float *)(state + (size_t)IMAGES * SLICES * STATES);
        unsigned *stored = (unsigned *)(share + IMAGES * SLICES);
        return {spread, state, share, stored, (int *)(stored + IMAGES + 1)};
    }
    /* The first slice of an image, counted over all places, and how many it has. */
    static __device__ __forceinline__ int first(int image) { return image * ALL_PLACES / 16 * 2; }
    static __device__ __forceinline__ int slices(int image) {
        return (((image + 1) * ALL_PLACES - 1) / 16 + 1) * 2 - first(image);
    }
};

/* Of a block that does what is left: a group is joined, a piece is mapped by a warp a share. */
constexpr int REST_THREADS = 512;

/* Stores f(value, row, filter) to out[image][filter][pixel], gathers moments, and says what is
 * stored; f is the base. Then out = the norm * weight + bias, with both a channel. */
template <class F, class G> struct StoreBehind : F {
    using C = typename G::C;
    G groups;
    float *out;
    const float *weight, *bias;
    double eps;

    template <class P>
    __device__ __forceinline__ void tile(P &part, int batch, int row, int column) const {
        const StorePixels<F, C> store = {(const F &)*this, out};
        store.tile(part, batch, row, column);
        gather(part, row, column);
    }

    /* Calls f(image, first place in all, place behind the last) for COUNT places from `first` on.
     */
    template <int COUNT, class Take>
    static __device__ __forceinline__ void for_images(int first, Take &&f) {
        const int end = min(first + COUNT, G::IMAGES * G::ALL_PLACES);
#pragma unroll 1
        for (int image = first / G::ALL_PLACES; image * G::ALL_PLACES < end; image++)
            f(image, max(first, image * G::ALL_PLACES), min(end, (image + 1) * G::ALL_PLACES));
    }

    /* Says that tile m of the block is in memory. One thread, told by those who stored. */
    __device__ __forceinline__ void announce(int m) const {
        __threadfence();
        for_images<C::PLACES>(m * C::PLACES, [&](int image, int begin, int end) {
            atomicAdd(groups.stored + image, (unsigned)(end - begin));
        });
    }
    /* Says that a block has no tile left. */
    __device__ __forceinline__ void stop() const {
        atomicExch(groups.stored + G::IMAGES, 1u);
    }

    /* What warps of the fourth warpgroup do until they are to stop; T says in how many tiles a
     * place is stored. Number `worker` of so many joins groups: */
    template <class T> __device__ __forceinline__ void join_all(int worker, int workers) const {
#pragma unroll 1
        for (int index = worker; index < G::IMAGES * G::ACROSS; index += workers) {
            if (!wait_for<T>(index / G::ACROSS)) return;
            join<32>(index);
        }
    }
    /* And another maps a piece of each image. */
    template <class T> __device__ __forceinline__ void map_all(int piece) const {
        if (piece >= G::PIECES) return;
        int steps = 0;
#pragma unroll 1
        for (int image = 0; image < G::IMAGES && steps == image * G::STEPS; image++) {
            if (!wait_for<T>(image)) break;
            const Spread *const from = groups.spread + group(image, piece);
            ToldState<Spread> told = told_state(from);
            while (!told.there() && !stopped()) {
                __nanosleep(500);
                told = told_state(from);
            }
            if (!told.there()) break;
            steps += map<true>(image, piece, 0, G::STEPS, told.state());
        }
        if (threadIdx.x % 32 == 0) groups.done[piece] = steps;
    }

    /* Joins a group that is left. A block. */
    __device__ __forceinline__ void join_rest(int index) const {
        if (!told_state(groups.spread + index).there()) join<REST_THREADS>(index);
    }
    /* Maps a share of what is left of a piece, the steps of all images. A warp. */
    __device__ __forceinline__ void finish(int piece, int share, int shares) const {
        const int done = groups.done[piece], all = G::IMAGES * G::STEPS;
        const int each = (all - done + shares - 1) / shares;
        int at = done + share * each;
        const int end = min(at + each, all);
#pragma unroll 1
        while (at < end) {
            const int image = at / G::STEPS, first = at % G::STEPS;
            const Spread spread = told_state(groups.spread + group(image, piece)).state();
            at += map<false>(image, piece, first, min(first + end - at, G::STEPS), spread);
        }
    }

  private:
    static __device__ __forceinline__ int channel(int piece) {
        return piece / G::PER;
    }
    static __device__ __forceinline__ int group(int image, int piece) {
        return image * G::ACROSS + channel(piece) / G::CHANNELS;
    }
    __device__ __forceinline__ bool stopped() const {
        return *(volatile unsigned *)(groups.stored + G::IMAGES);
    }
    /* Returns when the image is complete; false if it is to stop before. */
    template <class T> __device__ __forceinline__ bool wait_for(int image) const {
        constexpr unsigned ALL = G::ALL_PLACES * (unsigned)(C::FILTERS / T::N);
        static_assert(C::FILTERS % T::N == 0, "whole tiles");
        while (*(volatile unsigned *)(groups.stored + image) < ALL) {
            if (stopped()) return false;
            __nanosleep(500);
        }
        __threadfence();
        return true;
    }

    /* Tells the spread of a group, counted over all images. A warp, or a block of so many threads.
     */
    template <int THREADS> __device__ __forceinline__ void join(int index) const {
        constexpr int DEEP = G::CHANNELS / 8;
        const int image = index / G::ACROSS, first = image * G::SLICES, own = index % G::ACROSS;
        const Centred *const from = groups.state + (long long)first * G::STATES + own * DEEP;
        double sum = 0.0, square = 0.0; /* in units */
#pragma unroll 8
        for (int i = threadIdx.x % THREADS; i < G::slices(image) * DEEP; i += THREADS) {
            const float2 m = __ldcg((const float2 *)(from + i / DEEP * G::STATES + i % DEEP));
            const double s = (double)m.x * MOMENT_UNIT;
            sum += s;
            square += m.y + s * s * __ldcg(groups.share + first + i / DEEP);
        }
        sum = lanes_sum(sum), square = lanes_sum(square);
        if constexpr (THREADS > 32) {
            __shared__ double parts[2][THREADS / 32];
            if (threadIdx.x % 32 == 0)
                parts[0][threadIdx.x / 32] = sum, parts[1][threadIdx.x / 32] = square;
            __syncthreads();
            sum = square = 0.0;
#pragma unroll
            for (int w = 0; w < THREADS / 32; w++) sum += parts[0][w], square += parts[1][w];
        }
        constexpr double VALUES = (double)C::OUT_AREA * G::CHANNELS, UNIT = MOMENT_UNIT;
        const double mean = sum / VALUES, variance = square / VALUES - mean * mean;
        const double least = (variance < 0.0 ? 0.0 : variance) / (UNIT * UNIT); /* NaN stays NaN */
        if (threadIdx.x % THREADS == 0)
            tell_state(groups.spread + index,
                       Spread{(float)(mean / UNIT), (float)(1.0 / sqrt(least + eps))});
    }

    /* A warp normalises steps of an image's piece, four float4 a lane each. How many: fewer than
     * all if it was to stop. */
    template <bool MAY_STOP>
    __device__ __forceinline__ int map(int image, int piece, int first, int last,
                                       const Spread &spread) const {
        const int filter = channel(piece), begin = piece % G::PER * G::EACH;
        const int end = min(begin + G::EACH, G::PLANE), own = begin + threadIdx.x % 32;
        float4 *const to = (float4 *)out + (image * C::FILTERS + filter) * (long long)G::PLANE;
        const float w = __ldg(weight + filter), b = __ldg(bias + filter);
        int step = first;
#pragma unroll 1
        for (; step < last; step++) {
            const bool stop = MAY_STOP && stopped(); /* asked while the rest is read */
            const int at = own + step * G::STEP;
            float4 v[G::STEP / 32];
#pragma unroll
            for (int i = 0; i < G::STEP / 32; i++)
                if (at + i * 32 < end) v[i] = __ldcg(to + at + i * 32);
            if (stop) break;
#pragma unroll
            for (int i = 0; i < G::STEP / 32; i++) {
                float *const x = &v[i].x;
#pragma unroll
                for (int k = 0; k < 4; k++) x[k] = (x[k] - spread.mean) * spread.scale * w + b;
                if (at + i * 32 < end) __stcs(to + at + i * 32, v[i]);
            }
        }
        return step - first;
    }

    /* The moments of eight channels each, over a warp's rows. */
    template <class P>
    __device__ __forceinline__ void gather(const P &part, int row, int column) const {
        constexpr int COUNT = P::N / 8;
        const FourPixels<C> pixels(0, row);
        const int warp = __shfl_sync(0xffffffffu, row, 0) / 32; /* counted over all rows */
        for_images<16>(warp / 2 * 16, [&](int image, int begin, int end) {
            bool own[4];
            int rows = 0;
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const int place = C::place(row + r);
                own[r] = pixels.inside[r] && place >= begin && place < end;
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
            const float total = sum_each(sum), share = 1.0f / (8.0f * fmaxf((float)rows, 1.0f));
            const float mean = total * share;
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
            const int slice = image * G::SLICES + warp - G::first(image);
            const int lane = threadIdx.x % 32, at = __shfl_sync(0xffffffffu, column, 0) / 8 + lane;
            if (lane < COUNT) groups.state[(long long)slice * G::STATES + at] = {total, squares};
            if (at == 0) groups.share[slice] = share;
        });
    }
};

/* ---- host ---- */

template <class Store>
__global__ void __launch_bounds__(REST_THREADS)
    join_rest_kernel(const __grid_constant__ Store store) {
    store.join_rest(blockIdx.x);
}

template <class Store>
__global__ void __launch_bounds__(REST_THREADS)
    map_rest_kernel(const __grid_constant__ Store store) {
    store.finish(blockIdx.x, threadIdx.x / 32, REST_THREADS / 32);
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
    cudaMemsetAsync(own.stored, 0, G::ZEROS, stream);
    product<C, T>(Patches<C>{{}, x}, Filters<C>{filters}, store, scratch, stream);
    join_rest_kernel<<<G::IMAGES * G::ACROSS, REST_THREADS, 0, stream>>>(store);
    map_rest_kernel<<<G::PIECES, REST_THREADS, 0, stream>>>(store);
}

} // namespace kp
