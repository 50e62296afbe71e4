/* channel_norm.cuh: batch norm by the batch's own statistics, without a pass over memory for them.
 *
 * Idea: what stores the values of channels also writes, for each part of them, their sum and the
 * squares of their distances from their own mean (Centred): WithMoments for a product, others by
 * themselves. join_channels() adds up the parts in double, always in the same order, and gives
 * each channel's Affine. What reads the values applies it: MappedPatches for a convolution.
 *
 * Distances from a part's mean survive a large mean of the channel: squares of the values would
 * lose the digits that the variance consists of.
 *
 * What limits it: the parts of a product, 8 bytes for 32 values, are 6 % more bytes. A product's
 * tile takes 12 shuffles a column and thread more, about a third of what a slab costs. Patches are
 * mapped in shared memory by the warps that fetch them: those wait for each slab to arrive. */
#pragma once
#include "convolve.cuh"

namespace kp {

/* Of some values: their sum, and the sum of the squares of their distances from their mean. */
struct Centred {
    float sum, square;
};

/* What batch norm does to a value of a channel. */
struct Affine {
    float scale, shift;
    __device__ __forceinline__ float operator()(float v) const { return v * scale + shift; }
};

/* The parts of CHANNELS channels, as parts[part][channel]: each of RUNS runs of RUN values is cut
 * into parts of SIZE; the last may have fewer. */
template <int CHANNELS_, long long RUN_, int SIZE_, int RUNS_ = 1> struct Parts {
    static constexpr int CHANNELS = CHANNELS_, SIZE = SIZE_;
    static constexpr long long RUN = RUN_, VALUES = RUN * RUNS_; /* values of a channel */
    static constexpr int OF_A_RUN = (int)((RUN + SIZE - 1) / SIZE), COUNT = OF_A_RUN * RUNS_;
    static constexpr size_t BYTES = (size_t)COUNT * CHANNELS * sizeof(Centred);
    /* How many values part `part` of a run has. */
    static __device__ __forceinline__ int size(int part) {
        return RUN % SIZE == 0 || part < OF_A_RUN - 1 ? SIZE : (int)(RUN - (OF_A_RUN - 1LL) * SIZE);
    }
};

/* ---- a product's ---- */

/* A product's rows in parts of a warp's 32. */
template <class S> using ProductParts = Parts<S::COLUMNS, S::ROWS, 32>;

/* A store that stores nothing. */
struct StoreNothing {
    template <class P> __device__ __forceinline__ void tile(const P &, int, int, int) const {}
};

/* The base's store of a product of sizes S, and the moments of its columns before the base's
 * function is applied. */
template <class S, class Base> struct WithMoments : Base {
    Centred *parts; /* ProductParts<S> */
    static_assert(S::BATCHES == 1, "no groups, phases or batches");

    static __device__ __forceinline__ float over_rows(float v) {
        v += __shfl_xor_sync(0xffffffffu, v, 4);
        v += __shfl_xor_sync(0xffffffffu, v, 8);
        return v + __shfl_xor_sync(0xffffffffu, v, 16);
    }
    template <class P>
    __device__ __forceinline__ void tile(const P &part, int batch, int row, int column) const {
        using Of = ProductParts<S>;
        Base::tile(part, batch, row, column);
        const int index = row / 32, lanes = threadIdx.x % 32 / 4; /* the four that share rows */
        if (S::ROWS % TILE_M && index >= Of::COUNT) return;
        const float share = 1.0f / Of::size(index);
        bool inside[4];
#pragma unroll
        for (int r = 0; r < 4; r++)
            inside[r] = S::ROWS % 32 == 0 || row + part.row(r / 2, r % 2) < S::ROWS;
#pragma unroll
        for (int j = 0; j < P::N / 8; j++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                float v[4], sum = 0, square = 0;
#pragma unroll
                for (int r = 0; r < 4; r++) {
                    v[r] = part.v[r / 2][4 * j + r % 2 * 2 + e];
                    sum += inside[r] ? v[r] : 0.0f;
                }
                sum = over_rows(sum);
#pragma unroll
                for (int r = 0; r < 4; r++) {
                    const float d = inside[r] ? v[r] - sum * share : 0.0f;
                    square += d * d;
                }
                square = over_rows(square);
                const int c = column + 8 * j + e;
                if (lanes == j % 8 && (S::COLUMNS % P::N == 0 || c < S::COLUMNS))
                    parts[(long long)index * S::COLUMNS + c] = {sum, square};
            }
    }
};

/* Patches whose values are f(value, channel), an F, the base of what the task gives; padding stays
 * zero. Each thread maps what it copied. */
template <class C, class F> struct MappedPatches : Patches<C> {
    F f;
    static_assert(C::GROUPS == 1, "channels are those of the one group");

    __device__ __forceinline__ void fetch(const typename Patches<C>::Place &p, uint32_t to,
                                          int slab) const {
        using X = typename C::X;
        using Y = typename C::Y;
        using Z = typename C::Z;
        Patches<C>::fetch(p, to, slab);
        copies_wait();
        float *words = (float *)__cvta_shared_to_generic(to);
        words += AcrossSlab::word(threadIdx.x % 128, 0);
#pragma unroll
        for (int t = 0; t < C::TAPS; t++) {
            const int j = C::TAPS > 1 ? slab * C::TAPS + t : slab / C::SLABS_A_TAP;
            const int c = C::TAPS > 1 ? 0 : slab % C::SLABS_A_TAP * TILE_K;
            const int x = j % p.taps_x * X::STEP, y = j / p.taps_x % p.taps_y * Y::STEP;
            const int z = j / (p.taps_x * p.taps_y) * Z::STEP;
            bool inside[2];
#pragma unroll
            for (int i = 0; i < 2; i++)
                inside[i] = (C::TAPS == 1 || j < p.all) &&
                            (unsigned)(p.x[i] + x) < (unsigned)X::IN &&
                            (unsigned)(p.y[i] + y) < (unsigned)Y::IN &&
                            (unsigned)(p.z[i] + z) < (unsigned)Z::IN;
#pragma unroll
            for (int k = 0; k < C::EACH; k++) {
                if (C::DEPTH % C::EACH && c + k >= C::DEPTH) break;
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    float &word = words[AcrossSlab::word(i * 128, t * C::EACH + k)];
                    if (inside[i]) word = f(word, c + k);
                }
            }
        }
        __threadfence_block(); /* before the thread's copies are reported to have come */
    }
};

/* ---- statistics ---- */

constexpr int JOIN_THREADS = 1024, JOIN_CHANNELS = 4, JOIN_LANES = JOIN_THREADS / JOIN_CHANNELS;

/* to[channel] = the batch norm that the parts say, with the biased variance. A block for
 * JOIN_CHANNELS channels, 32 bytes of a part. */
template <class P>
__global__ void __launch_bounds__(JOIN_THREADS, 1)
    join_channels_kernel(const Centred *__restrict__ parts, const float *__restrict__ weight,
                         const float *__restrict__ bias, Affine *__restrict__ to, double eps) {
    __shared__ double joined[JOIN_THREADS / 32][2][JOIN_CHANNELS];
    const int own = threadIdx.x % JOIN_CHANNELS, channel = blockIdx.x * JOIN_CHANNELS + own;
    const bool there = P::CHANNELS % JOIN_CHANNELS == 0 || channel < P::CHANNELS;
    double sum = 0, square = 0; /* of the values */
#pragma unroll 8
    for (int part = threadIdx.x / JOIN_CHANNELS; there && part < P::COUNT; part += JOIN_LANES) {
        const float2 c = __ldg((const float2 *)parts + (long long)part * P::CHANNELS + channel);
        sum += c.x;
        square += c.y + (double)c.x * c.x * (1.0 / P::size(part % P::OF_A_RUN));
    }
#pragma unroll
    for (int step = JOIN_CHANNELS; step < 32; step *= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
        square += __shfl_xor_sync(0xffffffffu, square, step);
    }
    if (threadIdx.x % 32 < JOIN_CHANNELS) {
        joined[threadIdx.x / 32][0][own] = sum;
        joined[threadIdx.x / 32][1][own] = square;
    }
    __syncthreads();
    if (threadIdx.x >= JOIN_CHANNELS || !there) return;
    sum = square = 0;
#pragma unroll
    for (int w = 0; w < JOIN_THREADS / 32; w++) sum += joined[w][0][own], square += joined[w][1][own];
    const double mean = sum / P::VALUES, variance = square / P::VALUES - mean * mean;
    const double scale = weight[channel] / sqrt((variance < 0.0 ? 0.0 : variance) + eps);
    to[channel] = {(float)scale, (float)(bias[channel] - mean * scale)};
}

/* Enqueues to[channel] = the batch norm of the parts P, with a weight and a bias a channel. */
template <class P>
static void join_channels(const Centred *parts, const float *weight, const float *bias, double eps,
                          Affine *to, cudaStream_t stream) {
    constexpr int BLOCKS = (P::CHANNELS + JOIN_CHANNELS - 1) / JOIN_CHANNELS;
    join_channels_kernel<P><<<BLOCKS, JOIN_THREADS, 0, stream>>>(parts, weight, bias, to, eps);
}

} // namespace kp
