/* channel_norm.cuh: batch norm by the batch's own statistics, without a pass over memory for them.
 *
 * Idea: what makes the values of channels also writes, for each part of them, their sum and the
 * squares of their distances from their own mean (Centred): WithMoments for a product, others by
 * themselves. join_channels() adds up the parts in double, always in the same order, and gives
 * each channel's ChannelNorm. What reads the values applies it: MappedAcross for a product.
 *
 * Squares are in fp32, as the baseline's: where one overflows, the channel becomes its bias.
 *
 * What limits it: the parts of a product are 8 bytes for 32 values, 6 % more bytes. A product's
 * tile takes 6 shuffles for four values of a thread. The warps that fetch mapped values wait for
 * each slab, and map it in shared memory: about 1400 cycles, less than the products of 96 columns
 * take. Reaches, with its product, 88 % of the products' floor (l2_039, l2_041). */
#pragma once
#include "moments.cuh"
#include "operands.cuh"

namespace kp {

constexpr double BATCH_NORM_EPS = 1e-5;

/* What batch norm does to a value of a channel. (A product and a sum alone would make NaN of an
 * infinite weight, also where the result is infinite.) */
struct alignas(16) ChannelNorm {
    float mean, scale, bias;
    __device__ __forceinline__ float operator()(float v) const { return (v - mean) * scale + bias; }
    static __device__ __forceinline__ ChannelNorm of(const ChannelNorm *norms, int channel) {
        const float4 n = __ldg((const float4 *)norms + channel);
        return {n.x, n.y, n.z};
    }
};

/* The parts of CHANNELS channels, as parts[part][channel]: each of RUNS runs of RUN values is cut
 * into parts of SIZE; the last may have fewer. */
template <int CHANNELS_, long long RUN_, int SIZE_, int RUNS_ = 1> struct RunParts {
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

/* The rows of a product, of each batch, in parts of a warp's 32. */
template <class S> using ProductParts = RunParts<S::COLUMNS, S::ROWS, 32, S::BATCHES>;

/* A store that stores nothing. */
struct StoreNothing {
    template <class P> __device__ __forceinline__ void tile(const P &, int, int, int) const {}
};

/* The base's store of a product of sizes S, and the parts of its columns, as they are before the
 * base's function. Batches have the same columns: they are images, no groups. */
template <class S, class Base> struct WithMoments : Base {
    Centred *parts; /* ProductParts<S> */

    template <class P>
    __device__ __forceinline__ void tile(P &part, int batch, int row, int column) const {
        if (whole_tiles(S::ROWS) || row / 32 < ProductParts<S>::OF_A_RUN)
            gather(part, batch, row, column);
        Base::tile(part, batch, row, column); /* may change what it stores in `part` */
    }

  private:
    template <class P>
    __device__ __forceinline__ void gather(const P &part, int batch, int row, int column) const {
        using Of = ProductParts<S>;
        const int index = row / 32;
        bool inside[4];
#pragma unroll
        for (int r = 0; r < 4; r++)
            inside[r] = S::ROWS % 32 == 0 || row + part.row(r / 2, r % 2) < S::ROWS;
        gather_moments<S::COLUMNS>(part, inside, (float)Of::size(index), 1.0f, column,
                                   parts + ((long long)batch * Of::OF_A_RUN + index) * S::COLUMNS +
                                       column);
    }
};

/* A left operand as Across, of whole float4, whose values are mapped by their depth, the channel:
 * f.mapper(channel) maps a float. Each thread maps what it copied. */
template <class F, int COUNT, int DEPTH, int PITCH = COUNT, long long BATCH = 0>
struct MappedAcross : Across<COUNT, DEPTH, PITCH, BATCH> {
    using Plain = Across<COUNT, DEPTH, PITCH, BATCH>;
    F f;
    static_assert(Plain::FOURS && DEPTH % TILE_K == 0, "whole float4, whole slabs");

    __device__ __forceinline__ void fetch(const typename Plain::Place &p, uint32_t to,
                                          int slab) const {
        constexpr int TOGETHER = 4; /* at a time: registers are few */
        const int own = Plain::own_k();
        Plain::fetch(p, to, slab);
        copies_wait();
        float *word = (float *)__cvta_shared_to_generic(to) + Plain::word(Plain::own_row(), own);
#pragma unroll 1
        for (int k = 0; k < TILE_K; k += 2 * TOGETHER) {
            float4 v[TOGETHER];
#pragma unroll
            for (int i = 0; i < TOGETHER; i++)
                v[i] = *(const float4 *)(word + Plain::word(0, k + 2 * i));
#pragma unroll
            for (int i = 0; i < TOGETHER; i++) {
                const auto map = f.mapper(slab * TILE_K + own + k + 2 * i);
                *(float4 *)(word + Plain::word(0, k + 2 * i)) =
                    make_float4(map(v[i].x), map(v[i].y), map(v[i].z), map(v[i].w));
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
                         const float *__restrict__ bias, ChannelNorm *__restrict__ to, double eps) {
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
    for (int w = 0; w < JOIN_THREADS / 32; w++)
        sum += joined[w][0][own], square += joined[w][1][own];
    const double mean = sum / P::VALUES, variance = square / P::VALUES - mean * mean;
    const double deviation = sqrt((variance < 0.0 ? 0.0 : variance) + eps); /* NaN stays NaN */
    to[channel] = {(float)mean, (float)(weight[channel] / deviation), bias[channel]};
}

/* Enqueues to[channel] = the batch norm of the parts P, with a weight and a bias a channel. */
template <class P>
static void join_channels(const Centred *parts, const float *weight, const float *bias, double eps,
                          ChannelNorm *to, cudaStream_t stream) {
    constexpr int BLOCKS = (P::CHANNELS + JOIN_CHANNELS - 1) / JOIN_CHANNELS;
    join_channels_kernel<P><<<BLOCKS, JOIN_THREADS, 0, stream>>>(parts, weight, bias, to, eps);
}

} // namespace kp
