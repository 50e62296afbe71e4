/* window_maps.cuh: planes in windows that lie side by side, whose value (a largest, a mean) is
 * mapped at once: with those of the other channels of its place (map_windows), alone
 * (pool_windows), or added up over its plane (sum_windows). A pool alone is for pools.cuh.
 *
 * A thread reads a window of each channel, as neighbours read neighbours. What limits it: 4 bytes a
 * value over the reading bandwidth. Reaches: see l2_082 (no share of its own was measured).
 *
 * What windows become, R, is one of pools.cuh, or MinOfWindow. */
#pragma once
#include "pools.cuh"
#include "states.cuh"
#include <float.h>

namespace kp {

/* The smallest value; NaN if there is one. */
struct MinOfWindow {
    static __device__ __forceinline__ float none() { return INFINITY; }
    static __device__ __forceinline__ float join(float a, float b) { return smaller(a, b); }
    template <int TAPS> static __device__ __forceinline__ float result(float v) { return v; }
};

/* Planes of Z x Y x X, in windows of WZ x WY x WX; what is left over at the ends is not read. */
template <int Z, int Y, int X, int WZ, int WY, int WX> struct SideBySide {
    static constexpr int PLANE = Z * Y * X, TAPS = WZ * WY * WX;
    static constexpr int OUT_Z = Z / WZ, OUT_Y = Y / WY, OUT_X = X / WX;
    static constexpr int PLACES = OUT_Z * OUT_Y * OUT_X;

    /* The first element of window `place`. */
    static __device__ __forceinline__ int corner(int place) {
        const int x = place % OUT_X, y = place / OUT_X % OUT_Y, z = place / (OUT_X * OUT_Y);
        return (z * WZ * Y + y * WY) * X + x * WX;
    }
    /* R of the window that begins at `from`. */
    template <class R> static __device__ __forceinline__ float join(const float *from) {
        float all = R::none();
#pragma unroll(WZ <= 4 ? WZ : 8)
        for (int z = 0; z < WZ; z++)
#pragma unroll
            for (int y = 0; y < WY; y++)
#pragma unroll
                for (int x = 0; x < WX; x++) all = R::join(all, __ldg(from + (z * Y + y) * X + x));
        return R::template result<TAPS>(all);
    }
};

/* v = softmax(v), in registers. */
template <int COUNT> __device__ __forceinline__ void softmax_values(float (&v)[COUNT]) {
    float top = -FLT_MAX, sum = 0.0f;
#pragma unroll
    for (int i = 0; i < COUNT; i++) top = fmaxf(top, v[i]);
#pragma unroll
    for (int i = 0; i < COUNT; i++) v[i] = expf(v[i] - top), sum += v[i];
    const float share = 1.0f / sum;
#pragma unroll
    for (int i = 0; i < COUNT; i++) v[i] *= share;
}

constexpr int WINDOW_THREADS = 128, WINDOW_SUM_THREADS = 256;

template <class R, class W, int CHANNELS, class F>
__global__ void __launch_bounds__(WINDOW_THREADS, 4)
    map_windows_kernel(const float *__restrict__ x, int images, F f) {
    const long long i = (long long)blockIdx.x * WINDOW_THREADS + threadIdx.x;
    if (i >= (long long)images * W::PLACES) return;
    const int image = (int)(i / W::PLACES), place = (int)(i % W::PLACES);
    const float *from = x + (long long)image * CHANNELS * W::PLANE + W::corner(place);
    float v[CHANNELS];
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) v[c] = W::template join<R>(from + (long long)c * W::PLANE);
    f(v, image, place);
}

/* Enqueues f(v, image, place) for each place of each image of x, [images][CHANNELS][Z][Y][X]: v are
 * R of the windows of its channels, and f stores what it makes of them. */
template <class R, class W, int CHANNELS, class F>
static void map_windows(const float *x, int images, const F &f, cudaStream_t stream) {
    const long long blocks = ((long long)images * W::PLACES + WINDOW_THREADS - 1) / WINDOW_THREADS;
    map_windows_kernel<R, W, CHANNELS>
        <<<(unsigned)blocks, WINDOW_THREADS, 0, stream>>>(x, images, f);
}

/* Stores f(value, plane, place) to out[plane][place]; f is the base. */
template <class F, class W> struct StoreWindow : F {
    float *out;
    __device__ __forceinline__ void operator()(const float (&v)[1], int plane, int place) const {
        out[(long long)plane * W::PLACES + place] = F::operator()(v[0], plane, place);
    }
};

/* Enqueues out[plane][place] = f(R of the window, plane, place), each plane for itself. */
template <class R, class W, class F>
static void pool_windows(const float *x, int planes, const F &f, float *out, cudaStream_t stream) {
    map_windows<R, W, 1>(x, planes, StoreWindow<F, W>{f, out}, stream);
}

template <class R, class W, class F, class G>
__global__ void __launch_bounds__(WINDOW_SUM_THREADS)
    sum_windows_kernel(const float *__restrict__ x, F f, G g, float *__restrict__ out) {
    __shared__ float part[WINDOW_SUM_THREADS / 32];
    const float *plane = x + (long long)blockIdx.x * W::PLANE;
    float sum = 0.0f;
#pragma unroll 4
    for (int place = threadIdx.x; place < W::PLACES; place += WINDOW_SUM_THREADS)
        sum += f(W::template join<R>(plane + W::corner(place)));
    sum = lanes_sum(sum);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
    sum = 0.0f;
    for (float p : part) sum += p;
    out[blockIdx.x] = g(sum, blockIdx.x);
}

/* Enqueues out[plane] = g(sum over the plane's windows of f(R of a window), plane). A block a
 * plane. */
template <class R, class W, class F, class G>
static void sum_windows(const float *x, int planes, const F &f, const G &g, float *out,
                        cudaStream_t stream) {
    sum_windows_kernel<R, W><<<planes, WINDOW_SUM_THREADS, 0, stream>>>(x, f, g, out);
}

} // namespace kp
