/* channel_depthwise.cuh: depthwise convolutions between 1 x 1 ones, with batch norms by the batch's
 * own statistics before and behind them: a channel a block (made_channels.cuh).
 *
 * Idea: results stay in registers until their norm is known. What the convolution reads is
 * normalised in shared memory, or, where a channel is too large for that (MOST_HELD), as it is read
 * from memory; then its norm comes from the product's moments. A multiprocessor has 1024 threads:
 * so kernels with stride 2 spill 36 to 332 bytes a thread (stored and loaded) where sides are 28
 * and more. Reaches: see l3_022 (no share of its own was measured). */
#pragma once
#include "made_channels.cuh"
#include "windows.cuh"

namespace kp {

/* Results along y that a thread makes at a time. */
__host__ __device__ constexpr int rows_for(int out) {
    return out % 7 == 0 ? 7 : out % 6 == 0 ? 6 : out % 5 == 0 ? 5 : 4;
}

/* The convolution of a channel of COUNT images, SIDE x SIDE, padded by half a window. */
template <int COUNT_, int SIDE, int KERNEL, int STRIDE> struct ChannelDepthwise {
    using Window = Windows<SIDE, KERNEL, STRIDE, KERNEL / 2>;
    static constexpr int COUNT = COUNT_, IN = SIDE, OUT = Window::OUT, ROWS = rows_for(OUT);
    static constexpr int VALUES = COUNT * IN * IN, RESULTS = COUNT * OUT * OUT;
    static constexpr int TAPS = KERNEL * KERNEL, THREADS = threads_for(RESULTS);
    static constexpr int STRIPS = (OUT + ROWS - 1) / ROWS, UNITS = COUNT * STRIPS * OUT;
    static constexpr int UNITS_EACH = (UNITS + THREADS - 1) / THREADS, EACH = UNITS_EACH * ROWS;
    static constexpr int BLOCKS = THREADS == 512 && EACH > 21 ? 1 : 1024 / THREADS; /* at once */
    static constexpr int UNDER = Window::under(ROWS); /* rows under a unit */

    struct Unit {
        int image, y, x;
        bool there;
    };
    static __device__ __forceinline__ Unit unit(int i) {
        const int at = threadIdx.x + i * THREADS, strip = at / OUT;
        return {strip / STRIPS, strip % STRIPS * ROWS, at % OUT, at < UNITS};
    }
    /* Whether value i of a thread's is one. */
    static __device__ __forceinline__ bool inside(int i) {
        const Unit u = unit(i / ROWS);
        return u.there && (OUT % ROWS == 0 || u.y + i % ROWS < OUT);
    }
    /* v = the thread's results, zero where none is; get(at) reads an input. */
    template <class Get>
    static __device__ __forceinline__ void make(const float *__restrict__ weight, const Get &get,
                                                float (&v)[EACH]) {
        float w[TAPS];
#pragma unroll
        for (int t = 0; t < TAPS; t++) w[t] = __ldg(weight + t);
#pragma unroll
        for (int i = 0; i < EACH; i++) v[i] = 0.0f;
#pragma unroll
        for (int i = 0; i < UNITS_EACH; i++) {
            const Unit u = unit(i);
            if (!u.there) break;
#pragma unroll
            for (int r = 0; r < UNDER; r++) {
                const int y = u.y * STRIDE - Window::PAD + r;
                float in[KERNEL];
#pragma unroll
                for (int t = 0; t < KERNEL; t++) {
                    const int x = u.x * STRIDE - Window::PAD + t;
                    const bool there = (unsigned)y < (unsigned)IN && (unsigned)x < (unsigned)IN;
                    in[t] = there ? get((u.image * IN + y) * IN + x) : 0.0f;
                }
#pragma unroll
                for (int own = 0; own < ROWS; own++) { /* results that the row is under */
                    const int tap = r - own * STRIDE;
                    if (tap < 0 || tap >= KERNEL) continue;
#pragma unroll
                    for (int t = 0; t < KERNEL; t++)
                        v[i * ROWS + own] += w[tap * KERNEL + t] * in[t];
                }
            }
#pragma unroll
            for (int own = 0; own < ROWS; own++)
                if (!inside(i * ROWS + own)) v[i * ROWS + own] = 0.0f;
        }
    }
    /* f of the thread's results to a run. */
    template <class F>
    static __device__ __forceinline__ void store(const float (&v)[EACH], const F &f, float *to) {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const Unit u = unit(i / ROWS);
            if (inside(i)) to[(u.image * OUT + u.y + i % ROWS) * OUT + u.x] = f(v[i]);
        }
    }
};

/* to[channel] = act(norm of the convolution D of act(norm of what the product P made)). A block a
 * channel of `to`. */
template <class D, class P, int PITCH, class Act>
__global__ void __launch_bounds__(D::THREADS, D::BLOCKS)
    depthwise_channel_kernel(const float *__restrict__ from, const Centred *__restrict__ parts,
                             Affine before, const float *__restrict__ weight, Affine after,
                             float *__restrict__ to) {
    constexpr int THREADS = D::THREADS, VALUES = D::VALUES;
    float v[D::EACH];
    to += (long long)blockIdx.x * PITCH;
    if (blockIdx.x >= P::COLUMNS) return fill_run<THREADS, PITCH>(to, 0);
    weight += blockIdx.x * D::TAPS;
    if constexpr (P::WIDE) {
        const NormAct<Act> f = {
            join_channel<THREADS, typename P::Parts>(parts, blockIdx.x, before)};
        from += (long long)blockIdx.x * VALUES;
        D::make(
            weight, [&](int at) { return f(__ldg(from + at)); }, v);
    } else {
        constexpr int EACH = (VALUES + THREADS - 1) / THREADS;
        __shared__ float all[VALUES];
        float in[EACH];
        const NormAct<Act> f = {
            read_channel<THREADS, VALUES, P::COLUMNS, P::PARTS>(from, before, in)};
#pragma unroll
        for (int i = 0; i < EACH; i++)
            if (threadIdx.x + i * THREADS < VALUES) all[threadIdx.x + i * THREADS] = f(in[i]);
        __syncthreads();
        D::make(
            weight, [&](int at) { return all[at]; }, v);
    }
    const NormAct<Act> f = {norm_of_block<THREADS, D::RESULTS>(
        v, [](int i) { return D::inside(i); }, __ldg(after.weight + blockIdx.x),
        __ldg(after.bias + blockIdx.x), BATCH_NORM_EPS)};
    D::store(v, f, to);
    fill_run<THREADS, PITCH>(to, D::RESULTS);
}

/* y = the convolution D, of one image, of act(norm of x), and its parts: for few and large
 * channels. Grid: channels, images. */
template <class D, int CHANNELS, class Act>
__global__ void __launch_bounds__(D::THREADS)
    depthwise_plane_kernel(const float *__restrict__ x, const ChannelNorm *__restrict__ norm,
                           const float *__restrict__ weight, float *__restrict__ y,
                           Centred *__restrict__ parts) {
    const int channel = blockIdx.x, plane = channel * gridDim.y + blockIdx.y;
    const NormAct<Act> f = {ChannelNorm::of(norm, channel)};
    float v[D::EACH], sum = 0.0f, square = 0.0f;
    x += (long long)plane * D::VALUES;
    D::make(
        weight + channel * D::TAPS, [&](int at) { return f(__ldg(x + at)); }, v);
    D::store(
        v, [](float a) { return a; }, y + (long long)plane * D::RESULTS);
#pragma unroll
    for (int i = 0; i < D::EACH; i++) sum += v[i];
    sum = block_reduce<D::THREADS>(sum, Add());
    const float mean = sum * (1.0f / D::RESULTS);
#pragma unroll
    for (int i = 0; i < D::EACH; i++)
        if (D::inside(i)) square += (v[i] - mean) * (v[i] - mean);
    square = block_reduce<D::THREADS>(square, Add());
    if (threadIdx.x == 0) parts[blockIdx.y * CHANNELS + channel] = {sum, square};
}

} // namespace kp
