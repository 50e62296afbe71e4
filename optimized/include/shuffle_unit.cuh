/* shuffle_unit.cuh: what units with shuffled channels share, with batch norms by the batch's own
 * statistics: where a channel goes, the depthwise 3 x 3 convolution of relu(norm(x)), and the store
 * that ends a unit.
 *
 * Idea: a thread has 4 x 4 results in registers, for which it reads six rows of a float4 and its
 * neighbours. The last product is computed twice instead of being stored and read: for its
 * statistics, and for this store, which reads what the unit adds from where it writes. What limits
 * it: bytes. */
#pragma once
#include "activations.cuh"
#include "channel_norm.cuh"

namespace kp {

/* Where a channel goes that was one of GROUPS groups of OWN; and where it was. */
template <int GROUPS, int OWN> __host__ __device__ constexpr int shuffled(int channel) {
    return channel % OWN * GROUPS + channel / OWN;
}
template <int GROUPS, int OWN> __host__ __device__ constexpr int unshuffled(int channel) {
    return shuffled<OWN, GROUPS>(channel);
}

/* sums += the results from (top, left) on, 4 x 4, of the convolution, padded by 1, of relu(norm of
 * a plane of Y x X); weight: of the plane. SOME: whether there are any. */
template <int Y, int X>
__device__ __forceinline__ void depthwise_fours(const float *__restrict__ plane,
                                                const ChannelNorm &norm,
                                                const float *__restrict__ weight, int top, int left,
                                                bool some, float (&sums)[4][4]) {
    static_assert(X % 4 == 0, "whole float4");
    const Relu relu;
    float w[9];
#pragma unroll
    for (int t = 0; t < 9; t++) w[t] = __ldg(weight + t);
#pragma unroll
    for (int r = 0; r < 6; r++) {
        const int at = top + r - 1;
        const float *from = plane + at * X + left;
        float v[6] = {};
        if (some && (unsigned)at < (unsigned)Y) {
            const float4 four = __ldg((const float4 *)from);
            v[1] = relu(norm(four.x)), v[2] = relu(norm(four.y));
            v[3] = relu(norm(four.z)), v[4] = relu(norm(four.w));
            if (left > 0) v[0] = relu(norm(__ldg(from - 1)));
            if (left + 4 < X) v[5] = relu(norm(__ldg(from + 4)));
        }
#pragma unroll
        for (int own = 0; own < 4; own++) { /* results that the row is under */
            if (r < own || r > own + 2) continue;
#pragma unroll
            for (int i = 0; i < 12; i++)
                sums[own][i % 4] += w[(r - own) * 3 + i / 4] * v[i % 4 + i / 4];
        }
    }
}

/* out = relu(norm of the product) + what out has, normalised if NORMED. PITCH and BATCH: from a
 * column and a batch to the next; NORMS: the same for norms. */
template <int COLUMNS, int PITCH, long long BATCH, int NORMS, bool NORMED> struct StoreUnit {
    const ChannelNorm *norms, *residual;
    float *out;

    template <class P>
    __device__ __forceinline__ void tile(const P &part, int batch, int row, int column) const {
        constexpr int AHEAD = P::N % 96 ? 8 : 4; /* columns that are read together */
        static_assert(!P::ALONG_DEPTH && P::N / 4 % AHEAD == 0 && PITCH % 4 == 0,
                      "a thread's rows are a float4");
        if (!whole_tiles(PITCH) && row >= PITCH) return;
        const int channel = batch * NORMS + column;
        float *to = out + batch * BATCH + (long long)column * PITCH + row;
#pragma unroll
        for (int first = 0; first < P::N / 4; first += AHEAD) {
            float4 other[AHEAD];
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                const int n = (first + i) / 2 * 8 + i % 2;
                if (column + n < COLUMNS) other[i] = *(const float4 *)(to + (long long)n * PITCH);
            }
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                const int n = (first + i) / 2 * 8 + i % 2, at = (first + i) / 2 * 4 + i % 2;
                if (column + n >= COLUMNS) continue;
                const ChannelNorm a = ChannelNorm::of(norms, channel + n);
                float4 o = other[i];
                if (NORMED) {
                    const ChannelNorm b = ChannelNorm::of(residual, channel + n);
                    o = make_float4(b(o.x), b(o.y), b(o.z), b(o.w));
                }
                const Relu relu;
                *(float4 *)(to + (long long)n * PITCH) =
                    make_float4(relu(a(part.v[0][at])) + o.x, relu(a(part.v[0][at + 2])) + o.y,
                                relu(a(part.v[1][at])) + o.z, relu(a(part.v[1][at + 2])) + o.w);
            }
        }
    }
};

} // namespace kp
