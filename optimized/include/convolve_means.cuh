/* convolve_means.cuh: convolutions of whose channels only the means are wanted: the stores gather
 * them (convolve_norm.cuh), and no result goes to memory.
 * Reaches 66 to 92 % of the products' floor (l2_044, l2_042). */
#pragma once
#include "convolve_norm.cuh"

namespace kp {

constexpr int MEANS_THREADS = 128;

/* What a mean is of: a channel of an image. */
template <class C> using Channels = Parts<C, 1, 1>;
template <class C, class T> using MeansScratch = NormScratch<C, T, Channels<C>::COUNT>;

template <class G>
__global__ void __launch_bounds__(MEANS_THREADS)
    map_means_kernel(const Spread *__restrict__ spread, int count, G g, float *__restrict__ out) {
    const int i = blockIdx.x * MEANS_THREADS + threadIdx.x;
    if (i < count) out[i] = g(spread[i].mean, i);
}

/* Enqueues out[i] = g(mean, i) for channel i, counted over all images, where the mean is of
 * f(value, row, filter) of the convolution of x with weight; scratch: MeansScratch<C, T>. */
template <class C, class T, class F, class G>
static void convolve_means(const float *x, const float *weight, float *out, const F &f, const G &g,
                           void *scratch, cudaStream_t stream) {
    constexpr int COUNT = Channels<C>::COUNT;
    const auto own = MeansScratch<C, T>::in(scratch);
    convolve_moments<C, T>(x, weight, f, own.moments, scratch, stream);
    join_moments<Channels<C>>(own.moments, 1e-5, own.spread, stream);
    map_means_kernel<<<(COUNT + MEANS_THREADS - 1) / MEANS_THREADS, MEANS_THREADS, 0, stream>>>(
        own.spread, COUNT, g, out);
}

} // namespace kp
