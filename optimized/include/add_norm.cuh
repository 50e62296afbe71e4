/* add_norm.cuh: a store (stores.cuh) that adds bias and a residual to a row of the product,
 * normalises it (layer norm) and writes the transpose: rows are pixels, columns all channels of a
 * tile. Four lanes have a row, so mean and variance take two shuffles each. Reaches: see l3_031 (no
 * share of its own was measured). */
#pragma once
#include "product.cuh"

namespace kp {

/* out = layer norm(x + value + bias), eps 1e-5; x and out are [batches][CHANNELS][PIXELS]. */
template <int PIXELS, int CHANNELS> struct AddNorm {
    const float *bias, *x, *norm_weight, *norm_bias;
    float *out;

    /* The sum over the lanes and v. */
    template <int N, class F>
    static __device__ __forceinline__ float sum_of(const float (&v)[N], int first, const F &f) {
        float sum = 0.0f;
#pragma unroll
        for (int j = 0; j < N; j += 4) sum += f(v[j + first]) + f(v[j + first + 1]);
        sum += __shfl_xor_sync(~0u, sum, 1);
        return sum + __shfl_xor_sync(~0u, sum, 2);
    }
    template <class P>
    __device__ __forceinline__ void tile(P &part, int image, int row, int column) const {
        static_assert(P::N == CHANNELS, "a tile has whole rows");
        const long long plane = (long long)image * CHANNELS * PIXELS;
#pragma unroll
        for (int r = 0; r < 4; r++) {
            auto &v = part.v[r / 2];
            const int pixel = row + part.row(r / 2, r % 2), first = r % 2 * 2;
            const bool inside = whole_tiles(PIXELS) || pixel < PIXELS;
            const long long at = plane + (long long)column * PIXELS + pixel;
#pragma unroll
            for (int j = 0; j < P::N / 8; j++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    if (inside)
                        v[4 * j + first + e] +=
                            __ldg(bias + column + 8 * j + e) + __ldg(x + at + (8 * j + e) * PIXELS);
            const float mean = sum_of(v, first, [](float a) { return a; }) / CHANNELS;
            const float square =
                sum_of(v, first, [=](float a) { return (a - mean) * (a - mean); }) / CHANNELS;
            const float scale = 1.0f / sqrtf(square + 1e-5f);
#pragma unroll
            for (int j = 0; j < P::N / 8; j++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    if (inside)
                        out[at + (8 * j + e) * PIXELS] =
                            (v[4 * j + first + e] - mean) * scale *
                                __ldg(norm_weight + column + 8 * j + e) +
                            __ldg(norm_bias + column + 8 * j + e);
        }
    }
};

} // namespace kp
