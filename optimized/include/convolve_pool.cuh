/* convolve_pool.cuh: convolutions over two axes (convolve.cuh) of which only the largest of each
 * window of 2 x 2 results, side by side, is wanted: no result of theirs goes to memory.
 *
 * Idea: rows of the product are the pixels window by window, four a window. A thread has four
 * neighbouring rows of each of its columns: a window, of which it stores one number. What it costs:
 * patches of 32 neighbouring rows lie in two lines of the image instead of one. What it saves:
 * eight bytes a result, and a launch.
 * Reaches, in a whole network, 89 to 91 % of the floor (l3_011, l3_012; no share of its own was
 * measured). */
#pragma once
#include "convolve.cuh"
#include "extremes.cuh"

namespace kp {

/* The left operand, as Patches, with its rows in that order. */
template <class C> struct WindowPatches : Patches<C> {
    using Place = typename Patches<C>::Place;
    static_assert(C::X::OUT % 2 == 0 && C::Y::OUT % 2 == 0 && C::Z::OUT == 1 && C::BATCHES == 1,
                  "whole windows");

    __device__ __forceinline__ Place place(int, int row) const {
        constexpr int ACROSS = C::X::OUT / 2; /* windows */
        Place p;
        p.taps_x = C::X::KERNEL, p.taps_y = C::Y::KERNEL, p.all = C::KERNEL;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int at = row + threadIdx.x % 128 + i * 128, pixel = at % C::PIXELS;
            const int window = pixel / 4;
            p.x[i] = C::X::input(window % ACROSS * 2 + pixel % 2, 0);
            p.y[i] = C::Y::input(window / ACROSS * 2 + pixel / 2 % 2, 0);
            p.z[i] = 0;
            p.from[i] = this->data + (long long)(at / C::PIXELS) * C::CHANNELS * C::AREA +
                        p.y[i] * C::X::IN + p.x[i];
            if (!whole_tiles(C::ROWS) && at >= C::ROWS)
                p.x[i] = -(1 << 29); /* outside with any tap */
        }
        return p;
    }
};

/* The largest f(value, row, filter) of each window to out[image][filter][window]; f is the base. */
template <class F, class C> struct StoreWindows : F {
    float *out;
    template <class P>
    __device__ __forceinline__ void tile(const P &part, int, int row, int column) const {
        static_assert(!P::ALONG_DEPTH, "a thread's rows are neighbours");
        constexpr int WINDOWS = C::PIXELS / 4;
        if (!whole_tiles(C::ROWS) && row >= C::ROWS) return;
        const F &f = *this;
        float *to = out + (long long)(row / C::PIXELS * C::FILTERS + column) * WINDOWS +
                    row % C::PIXELS / 4;
#pragma unroll
        for (int j = 0; j < P::N / 8; j++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const int n = column + 8 * j + e;
                if (C::COLUMNS % P::N && n >= C::COLUMNS) continue;
                float v[4];
#pragma unroll
                for (int r = 0; r < 4; r++)
                    v[r] = f(part.v[r / 2][4 * j + r % 2 * 2 + e], row + r, n);
                to[(8 * j + e) * WINDOWS] = larger(larger(v[0], v[1]), larger(v[2], v[3]));
            }
    }
};

/* Enqueues out = the largest of each window of f(convolution of x with weight); scratch:
 * split_bytes<C, T>(). */
template <class C, class T, class F>
static void convolve_pool(const float *x, const float *weight, float *out, const F &f,
                          void *scratch, cudaStream_t stream) {
    const WindowPatches<C> patches = {{{}, x}};
    const Filters<C> filters = {weight};
    const StoreWindows<F, C> store = {f, out};
    product<C, T>(patches, filters, store, scratch, stream);
}

} // namespace kp
