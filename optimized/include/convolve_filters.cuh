/* convolve_filters.cuh: convolutions (convolve.cuh) whose filters belong together: of a pixel only
 * the least, the largest, the logsumexp of its filters is wanted, or softmax over them.
 *
 * Idea: a tile has all filters of 256 pixels, four lanes those of a pixel: they are joined in
 * registers, before anything is stored. So of a reduction one number a pixel goes to memory. What
 * it costs: the instructions of the operation, and few shuffles, while the block multiplies
 * nothing. Filters are those of one group, at most 128.
 * Reaches 70 to 97 % of the products' floor where the least is wanted (l2_025, l2_032), 29 to 57 %
 * with softmax (l2_049, l2_091). */
#pragma once
#include "convolve.cuh"
#include "reducing_stores.cuh"
#include <float.h>
#include <type_traits>

namespace kp {

/* A member that takes no room where it holds nothing. As a plain member it would take a byte and
 * padding, which nobody sets: a kernel's parameters would differ from recording to recording. */
template <class F, bool EMPTY = std::is_empty<F>::value> struct Held {
    F held;
    __device__ __forceinline__ const F &get() const { return held; }
};
template <class F> struct Held<F, true> {
    __host__ __device__ Held() {}
    __host__ __device__ Held(const F &) {}
    __device__ __forceinline__ F get() const { return {}; }
};

/* out[image][pixel] = g(Op of f(value, row, filter) over the filters); f is the base, Op one of
 * row_ops.cuh for reducing_stores.cuh, or extreme_op.cuh. */
template <class F, class Op, class G, class C> struct StoreOverFilters : F, Held<G> {
    float *out;

    template <class P>
    __device__ __forceinline__ void tile(const P &part, int batch, int row, int column) const {
        static_assert(C::GROUPS == 1 && C::COLUMNS <= P::N && P::N % 16 == 0,
                      "one tile of filters");
        const F &f = *this;
        const G &g = Held<G>::get();
        typename Op::State s[4] = {Op::none(), Op::none(), Op::none(), Op::none()};
#pragma unroll
        for (int j = 0; j < P::N / 8; j += 2)
#pragma unroll
            for (int r = 0; r < 4; r++) {
                float v[4];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int n = column + 8 * (j + i / 2) + i % 2;
                    const float value = part.v[r / 2][4 * (j + i / 2) + r % 2 * 2 + i % 2];
                    v[i] =
                        C::COLUMNS == P::N || n < C::COLUMNS ? f(value, row + r, n) : Op::NEUTRAL;
                }
                const float4 taken[1] = {make_float4(v[0], v[1], v[2], v[3])};
                Op::take(s[r], taken);
            }
        const float value = g(Op::value(join_lanes<Op, 1>(s)));
        const int own = row + threadIdx.x % 4; /* a lane a pixel */
        const FourPixels<C> pixels(batch, own);
        const long long image = own / C::PIXELS;
        if (pixels.inside[0]) out[pixels.at[0] - image * (C::FILTERS - 1) * C::OUT_AREA] = value;
    }
};

/* The store Base, of softmax over the filters of f(value, row, filter). */
template <class F, class C, class Base> struct SoftmaxOverFilters : Base, Held<F> {

    template <class P>
    __device__ __forceinline__ void tile(P &part, int batch, int row, int column) const {
        static_assert(C::GROUPS == 1 && C::COLUMNS <= P::N, "one tile of filters");
        const F &first = Held<F>::get();
#pragma unroll
        for (int r = 0; r < 4; r++) {
            float top = -FLT_MAX, sum = 0.0f;
#pragma unroll
            for (int j = 0; j < P::N / 4; j++) {
                const int n = column + j / 2 * 8 + j % 2;
                float &v = part.v[r / 2][j / 2 * 4 + r % 2 * 2 + j % 2];
                v = C::COLUMNS == P::N || n < C::COLUMNS ? first(v, row + r, n) : -INFINITY;
                top = fmaxf(top, v);
            }
            top = lanes_max<4>(top);
#pragma unroll
            for (int j = 0; j < P::N / 4; j++) {
                float &v = part.v[r / 2][j / 2 * 4 + r % 2 * 2 + j % 2];
                v = expf(v - top);
                sum += v;
            }
            const float share = 1.0f / lanes_sum<4>(sum);
#pragma unroll
            for (int j = 0; j < P::N / 4; j++)
                part.v[r / 2][j / 2 * 4 + r % 2 * 2 + j % 2] *= share;
        }
        Base::tile(part, batch, row, column);
    }
};

/* Enqueues out = g(Op of f(convolution of x with weight) over the filters); scratch:
 * split_bytes<C, T>(). */
template <class C, class T, class Op, class F, class G>
static void convolve_over_filters(const float *x, const float *weight, float *out, const F &f,
                                  const G &g, void *scratch, cudaStream_t stream) {
    const StoreOverFilters<F, Op, G, C> store = {f, g, out};
    product<C, T>(Patches<C>{{}, x}, Filters<C>{weight}, store, scratch, stream);
}

/* Enqueues out = f(softmax over the filters of `first`(convolution of x with weight)); scratch:
 * split_bytes<C, T>(). */
template <class C, class T, class F, class First>
static void convolve_softmax(const float *x, const float *weight, float *out, const First &first,
                             const F &f, void *scratch, cudaStream_t stream) {
    const SoftmaxOverFilters<First, C, StorePixels<F, C>> store = {{f, out}, first};
    product<C, T>(Patches<C>{{}, x}, Filters<C>{weight}, store, scratch, stream);
}

} // namespace kp
