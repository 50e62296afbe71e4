/* made_channels.cuh: batch norms by the batch's own statistics of what 1 x 1 convolutions made, a
 * channel a block.
 *
 * Activations are [channel][image][pixel], a run a channel (whole_channels.cuh). A product P leaves
 * a channel in parts, which are added first; or, where a channel is too large for shared memory
 * (MOST_HELD), the moments of 32 values each (channel_norm.cuh). What a kernel writes are operands:
 * runs are PITCH long, zeros at the end, and behind the last channel are zeros up to a whole slab,
 * so that products ask for no edge: they lack the registers.
 * Reaches: see l3_022 (no share of its own was measured). */
#pragma once
#include "activations.cuh"
#include "channel_norm.cuh"
#include "whole_channels.cuh"

namespace kp {

constexpr int MOST_HELD = 12000; /* floats, of the 48 KB that a block has without asking */

struct Relu6 {
    __device__ __forceinline__ float operator()(float v) const { return Clamp{0.0f, 6.0f}(v); }
};

/* Weight and bias of the norm of each channel. */
struct Affine {
    const float *weight, *bias;
};

template <class Act> struct NormAct {
    ChannelNorm norm;
    __device__ __forceinline__ float operator()(float v) const { return Act()(norm(v)); }
};

/* Threads of a block that has so many values. */
__host__ __device__ constexpr int threads_for(int values) {
    return values > 4096 ? 512 : values > 1024 ? 256 : 128;
}

/* to[i] = 0 from `from` on, to a run's end. */
template <int THREADS, int PITCH>
__device__ __forceinline__ void fill_run(float *__restrict__ to, int from) {
    for (int i = from + threadIdx.x; i < PITCH; i += THREADS) to[i] = 0.0f;
}

/* ---- what a product made ---- */

/* v = channel blockIdx.x of from, [PARTS][CHANNELS][COUNT], a value every THREADS; its norm. */
template <int THREADS, int COUNT, int CHANNELS, int PARTS, int EACH>
__device__ __forceinline__ ChannelNorm read_channel(const float *__restrict__ from,
                                                    const Affine &affine, float (&v)[EACH]) {
    static_assert(EACH == (COUNT + THREADS - 1) / THREADS, "values of a thread");
#pragma unroll
    for (int i = 0; i < EACH; i++) v[i] = 0.0f;
#pragma unroll
    for (int p = 0; p < PARTS; p++)
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int at = threadIdx.x + i * THREADS;
            if (at < COUNT) v[i] += __ldg(from + (p * CHANNELS + (int)blockIdx.x) * COUNT + at);
        }
    return norm_of_block<THREADS, COUNT>(
        v, [](int i) { return (int)threadIdx.x + i * THREADS < COUNT; },
        __ldg(affine.weight + blockIdx.x), __ldg(affine.bias + blockIdx.x), BATCH_NORM_EPS);
}

/* The norm of a channel by its parts P, as join_channels() has it, by each block that needs it. */
template <int THREADS, class P>
__device__ __forceinline__ ChannelNorm join_channel(const Centred *__restrict__ parts, int channel,
                                                    const Affine &affine) {
    double sum = 0, square = 0;
#pragma unroll 4
    for (int part = threadIdx.x; part < P::COUNT; part += THREADS) {
        const float2 c = __ldg((const float2 *)parts + (long long)part * P::CHANNELS + channel);
        sum += c.x;
        square += c.y + (double)c.x * c.x * (1.0 / P::size(part % P::OF_A_RUN));
    }
    sum = block_reduce<THREADS>(sum, Add());
    square = block_reduce<THREADS>(square, Add());
    const double mean = sum / P::VALUES, variance = square / P::VALUES - mean * mean;
    const double deviation = sqrt((variance < 0.0 ? 0.0 : variance) + BATCH_NORM_EPS);
    return {(float)mean, (float)(__ldg(affine.weight + channel) / deviation),
            __ldg(affine.bias + channel)};
}

/* ---- norms ---- */

/* x[channel] = the norm of what the product P made, plus x if RESIDUAL. A block a channel of x. */
template <class P, int PITCH, bool RESIDUAL>
__global__ void __launch_bounds__(threads_for(P::ROWS))
    norm_channel_kernel(const float *__restrict__ from, Affine affine, float *__restrict__ x) {
    constexpr int THREADS = threads_for(P::ROWS), EACH = (P::ROWS + THREADS - 1) / THREADS;
    float v[EACH], add[EACH] = {};
    x += (long long)blockIdx.x * PITCH;
    if (blockIdx.x >= P::COLUMNS) return fill_run<THREADS, PITCH>(x, 0);
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if (RESIDUAL && threadIdx.x + i * THREADS < P::ROWS) add[i] = x[threadIdx.x + i * THREADS];
    const ChannelNorm norm = read_channel<THREADS, P::ROWS, P::COLUMNS, P::PARTS>(from, affine, v);
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if (threadIdx.x + i * THREADS < P::ROWS) x[threadIdx.x + i * THREADS] = norm(v[i]) + add[i];
    fill_run<THREADS, PITCH>(x, P::ROWS);
}

constexpr int SLICE_THREADS = 256, SLICE = 16 * SLICE_THREADS;

/* The same of large channels, a slice a block. Grid: slices, channels of x. */
template <class P, int PITCH, bool RESIDUAL>
__global__ void __launch_bounds__(SLICE_THREADS)
    norm_slice_kernel(const float *__restrict__ from, const Centred *__restrict__ parts,
                      Affine affine, float *__restrict__ x) {
    const bool there = blockIdx.y < P::COLUMNS;
    const ChannelNorm norm =
        join_channel<SLICE_THREADS, typename P::Parts>(parts, there ? blockIdx.y : 0, affine);
    from += (long long)blockIdx.y * P::ROWS, x += (long long)blockIdx.y * PITCH;
#pragma unroll
    for (int i = 0; i < SLICE / SLICE_THREADS; i++) {
        const int at = blockIdx.x * SLICE + i * SLICE_THREADS + threadIdx.x;
        if (at >= PITCH) break;
        const float v = there && at < P::ROWS ? norm(__ldg(from + at)) : 0.0f;
        x[at] = RESIDUAL ? v + x[at] : v;
    }
}

/* means[image][channel] = the mean of act(norm of what the product P made). A block a channel. */
template <class P, int IMAGES, class Act>
__global__ void __launch_bounds__(threads_for(P::ROWS))
    means_channel_kernel(const float *__restrict__ from, Affine affine, float *__restrict__ means) {
    constexpr int THREADS = threads_for(P::ROWS), EACH = (P::ROWS + THREADS - 1) / THREADS;
    constexpr int PIXELS = P::ROWS / IMAGES;
    __shared__ float all[P::ROWS];
    float v[EACH], sum = 0.0f;
    static_assert(!P::WIDE && IMAGES <= THREADS, "a channel in shared memory, a thread an image");
    const NormAct<Act> f = {read_channel<THREADS, P::ROWS, P::COLUMNS, P::PARTS>(from, affine, v)};
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if (threadIdx.x + i * THREADS < P::ROWS) all[threadIdx.x + i * THREADS] = f(v[i]);
    __syncthreads();
    if (threadIdx.x >= IMAGES) return;
    for (int i = 0; i < PIXELS; i++) sum += all[threadIdx.x * PIXELS + i];
    means[threadIdx.x * P::COLUMNS + blockIdx.x] = sum * (1.0f / PIXELS);
}

} // namespace kp
