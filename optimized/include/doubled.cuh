/* doubled.cuh: transposed convolutions of few channels that double three axes: 3 x 3 x 3 filters,
 * stride 2, padding 1. What is wanted of their results, a pool or a join of the filters, happens in
 * registers.
 *
 * Idea: windows of 2 x 2 x 2 results, which read 2 x 2 x 2 inputs of a channel, and in which each
 * of the 27 taps counts once. A thread has WINDOWS windows along y, its neighbours those along x,
 * and four filters at a time: one read of four weights from shared memory, which all lanes share,
 * is used 4 * WINDOWS times. Tensor cores would have slabs of a depth of 3 to 24 to multiply,
 * mostly padding.
 *
 * What limits it: reading the weights and the FMAs, which take as long as each other. Reaches 22 to
 * 71 % of the kernel's floor (l2_060, l2_050).
 *
 * Use says what becomes of the results:
 *   static constexpr int BLOCKS        a multiprocessor has at least so many
 *   struct State                       of a thread
 *   void begin(State &)                before the first filters
 *   void take(State &, const Place &, int part, const float (&v)[WINDOWS][4])
 *                                      results `part` of the windows, in the order of their axes,
 *                                      of four filters
 *   void next(State &, const Place &, int filter)
 *                                      the four filters from `filter` on are done
 *   void end(State &, const Place &)   all are; every thread of a block comes here */
#pragma once
#include "states.cuh"

namespace kp {

/* CHANNELS x Z x Y x X inputs an image. EVEN: output padding, so that there are 2 Z results along
 * an axis; else there are 2 Z - 1, and the last windows are halves. */
template <int CHANNELS_, int FILTERS_, int Z_, int Y_, int X_, bool EVEN> struct Doubled {
    static constexpr int CHANNELS = CHANNELS_, FILTERS = FILTERS_, Z = Z_, Y = Y_, X = X_;
    static constexpr int OUT_Z = 2 * Z - !EVEN, OUT_Y = 2 * Y - !EVEN, OUT_X = 2 * X - !EVEN;
    static constexpr int WHOLE_Z = OUT_Z / 2, WHOLE_Y = OUT_Y / 2, WHOLE_X = OUT_X / 2;
    static constexpr int WINDOWS = 4, THREADS = 128, ROWS = Y / WINDOWS;
    static constexpr int BLOCKS = Z * ROWS * X / THREADS; /* of an image */
    static_assert(Y % WINDOWS == 0 && ROWS * X % THREADS == 0 && FILTERS % 4 == 0,
                  "a block is a part of one plane of windows");

    /* The first of a thread's windows. */
    struct Place {
        int image, z, y, x;
        /* Whether window i is whole: all its results exist. */
        __device__ __forceinline__ bool whole(int i) const {
            return EVEN || (z < WHOLE_Z && y + i < WHOLE_Y && x < WHOLE_X);
        }
        /* Whether result `part` of window i exists. */
        __device__ __forceinline__ bool has(int i, int part) const {
            return EVEN || ((z < WHOLE_Z || part < 4) && (y + i < WHOLE_Y || part % 4 < 2) &&
                            (x < WHOLE_X || part % 2 == 0));
        }
        /* Where result `part` of window i is among a filter's. */
        __device__ __forceinline__ int result(int i, int part) const {
            return ((2 * z + part / 4) * OUT_Y + 2 * (y + i) + part / 2 % 2) * OUT_X + 2 * x +
                   part % 2;
        }
        /* Where window i is among a filter's whole ones. */
        __device__ __forceinline__ int window(int i) const {
            return (z * WHOLE_Y + y + i) * WHOLE_X + x;
        }
    };

    static __device__ __forceinline__ Place place() {
        const int i = blockIdx.x * THREADS + threadIdx.x, row = i / X;
        return {row / (ROWS * Z), row / ROWS % Z, row % ROWS * WINDOWS, i % X};
    }

    /* What a thread's windows read of a channel, along z, x and y, and zeros beyond the end. */
    using Channel = float[2][2][WINDOWS + 1];
    static __device__ __forceinline__ void load(const float *__restrict__ x, const Place &at, int c,
                                                Channel &to) {
#pragma unroll
        for (int i = 0; i < 4 * (WINDOWS + 1); i++) {
            const int dz = i / 2 % 2, dx = i % 2, dy = i / 4;
            const bool inside = at.z + dz < Z && at.y + dy < Y && at.x + dx < X;
            const long long plane = ((long long)at.image * CHANNELS + c) * Z + at.z + dz;
            const float *p = x + (plane * Y + at.y + dy) * X + at.x + dx;
            to[dz][dx][dy] = inside ? __ldg(p) : 0.0f;
        }
    }

    struct Weights { /* of four filters each */
        float4 tap[27][CHANNELS][FILTERS / 4], bias[FILTERS / 4];
    };
    static __device__ __forceinline__ void load(const float *__restrict__ weight,
                                                const float *__restrict__ bias, Weights &w) {
        for (int i = threadIdx.x; i < CHANNELS * FILTERS * 27; i += THREADS) {
            const int tap = i % 27, filter = i / 27 % FILTERS, c = i / 27 / FILTERS;
            ((float *)w.tap[tap][c])[filter] = weight[i];
        }
        for (int i = threadIdx.x; i < FILTERS; i += THREADS) ((float *)w.bias)[i] = bias[i];
    }

    /* Of the four filters from `filter` on. */
    using FourTaps = float4[27][CHANNELS];
    static __device__ __forceinline__ void load(const float *__restrict__ weight, int filter,
                                                FourTaps &to) {
        for (int i = threadIdx.x; i < CHANNELS * 4 * 27; i += THREADS) {
            const int tap = i % 27, f = i / 27 % 4, c = i / 27 / 4;
            ((float *)&to[tap][c])[f] = weight[(c * FILTERS + filter + f) * 27 + tap];
        }
    }

    static __device__ __forceinline__ void fill(const float4 &b, float (&v)[WINDOWS][4]) {
#pragma unroll
        for (int i = 0; i < WINDOWS; i++)
            v[i][0] = b.x, v[i][1] = b.y, v[i][2] = b.z, v[i][3] = b.w;
    }

    /* v += a channel's share of results `part` of all windows, of four filters; tap(k): their
     * weights. Along an axis a window's first result has one tap, of its own input; its second has
     * two, of the next input and of its own. */
    template <class Tap>
    static __device__ __forceinline__ void multiply(const Channel &in, const Tap &tap, int part,
                                                    float (&v)[WINDOWS][4]) {
        const int pz = part / 4, py = part / 2 % 2, px = part % 2;
#pragma unroll
        for (int t = 0; t < 8; t++) {
            const int a = t / 4, e = t / 2 % 2, d = t % 2;
            if (a > pz || e > py || d > px) continue;
            const int kz = pz ? 2 * a : 1, ky = py ? 2 * e : 1, kx = px ? 2 * d : 1;
            const float4 four = tap((kz * 3 + ky) * 3 + kx);
            const float(&from)[WINDOWS + 1] = in[pz & !a][px & !d];
#pragma unroll
            for (int i = 0; i < WINDOWS; i++) {
                const float x = from[i + (py & !e)];
                v[i][0] = fmaf(x, four.x, v[i][0]), v[i][1] = fmaf(x, four.y, v[i][1]);
                v[i][2] = fmaf(x, four.z, v[i][2]), v[i][3] = fmaf(x, four.w, v[i][3]);
            }
        }
    }
};

/* Stores a and b, results `part` (even) and `part` + 1 of window i, to `to`, a filter's results: of
 * a warp they are a row, in which neighbouring lanes write neighbours. */
template <class D>
__device__ __forceinline__ void store_pair(float *to, const typename D::Place &at, int i, int part,
                                           float a, float b) {
    static_assert(D::X % 32 == 0, "a warp has a row of windows, or a part of one");
    const int lane = threadIdx.x % 32;
    typename D::Place row = at;
    row.x = 0;
    float *first = to + row.result(i, part) + 2 * (at.x - lane);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int from = 16 * h + lane / 2, column = 32 * h + lane;
        const float even = __shfl_sync(0xffffffffu, a, from);
        const float odd = __shfl_sync(0xffffffffu, b, from);
        if (row.has(i, part) && 2 * (at.x - lane) + column < D::OUT_X)
            first[column] = lane % 2 ? odd : even;
    }
}

/* Of so few channels that a thread has the inputs of all. */
template <class D, class Use>
__global__ void __launch_bounds__(D::THREADS, Use::BLOCKS)
    doubled_kernel(const float *__restrict__ x, const float *__restrict__ weight,
                   const float *__restrict__ bias, const Use use) {
    __shared__ typename D::Weights weights;
    const typename D::Place at = D::place();
    typename D::Channel in[D::CHANNELS];
    typename Use::State state;
    D::load(weight, bias, weights);
#pragma unroll
    for (int c = 0; c < D::CHANNELS; c++) D::load(x, at, c, in[c]);
    __syncthreads();
    use.begin(state);
#pragma unroll 1
    for (int group = 0; group < D::FILTERS / 4; group++) {
#pragma unroll
        for (int part = 0; part < 8; part++) {
            float v[D::WINDOWS][4];
            D::fill(weights.bias[group], v);
#pragma unroll
            for (int c = 0; c < D::CHANNELS; c++)
                D::multiply(
                    in[c], [&](int k) { return weights.tap[k][c][group]; }, part, v);
            use.take(state, at, part, v);
        }
        use.next(state, at, group * 4);
    }
    use.end(state, at);
}

/* Of more channels: a thread has all results of its windows instead, of four filters, and reads the
 * inputs again for each four. */
template <class D, class Use>
__global__ void __launch_bounds__(D::THREADS, Use::BLOCKS)
    doubled_in_turn_kernel(const float *__restrict__ x, const float *__restrict__ weight,
                           const float *__restrict__ bias, const Use use) {
    __shared__ typename D::FourTaps taps;
    const typename D::Place at = D::place();
    typename Use::State state;
    use.begin(state);
#pragma unroll 1
    for (int filter = 0; filter < D::FILTERS; filter += 4) {
        float v[8][D::WINDOWS][4];
        __syncthreads(); /* nobody reads the last ones */
        D::load(weight, filter, taps);
        __syncthreads();
#pragma unroll
        for (int part = 0; part < 8; part++) D::fill(*(const float4 *)(bias + filter), v[part]);
#pragma unroll 1
        for (int c = 0; c < D::CHANNELS; c++) {
            typename D::Channel in;
            D::load(x, at, c, in);
#pragma unroll
            for (int part = 0; part < 8; part++)
                D::multiply(
                    in, [&](int k) { return taps[k][c]; }, part, v[part]);
        }
#pragma unroll
        for (int part = 0; part < 8; part++) use.take(state, at, part, v[part]);
        use.next(state, at, filter);
    }
    use.end(state, at);
}

/* Enqueues the convolution of x [images][CHANNELS][Z][Y][X] with weight
 * [CHANNELS][FILTERS][3][3][3] and a bias for each filter, as Use has it. */
template <class D, class Use>
static void doubled(const float *x, const float *weight, const float *bias, int images,
                    const Use &use, cudaStream_t stream) {
    if constexpr (D::CHANNELS <= 4)
        doubled_kernel<D, Use><<<images * D::BLOCKS, D::THREADS, 0, stream>>>(x, weight, bias, use);
    else
        doubled_in_turn_kernel<D, Use>
            <<<images * D::BLOCKS, D::THREADS, 0, stream>>>(x, weight, bias, use);
}

} // namespace kp
