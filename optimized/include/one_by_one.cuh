/* one_by_one.cuh: stores (stores.cuh) that compute and store one column after another.
 *
 * Idea: the phases of a transposed convolution (convolve.cuh) write parts of the same lines, which
 * are cheap as long as a line stays in L2 until its last part comes. Where all elements are
 * computed side by side they are stored late; one after another, each waits for the one before.
 * Here the four rows that a thread has of a column are side by side, and columns in turn. Some
 * kernels are faster with all side by side: only measuring tells. Reaches: see l2_091 (no share of
 * its own was measured). */
#pragma once
#include "stores.cuh"

namespace kp {

struct NothingBefore {
    __device__ __forceinline__ float operator()(float v, int, int) const { return v; }
};

/* An epilogue: `Before` of all elements, side by side, then F, of one column after the other. What
 * F reads from memory is waited for in each column, what Before reads once. */
template <class F, class Before = NothingBefore> struct OneByOne : F, Before {};

/* As in stores.cuh, which takes this one for such an epilogue. */
template <int COLUMNS, long long PITCH, bool FOURS, class P, class F, class Before>
__device__ __forceinline__ void store_columns(P &part, const OneByOne<F, Before> &f, int row,
                                              int column, int name, float *to,
                                              const long long (&at)[4], const bool (&inside)[4]) {
    static_assert(!FOURS && !P::ALONG_DEPTH, "patches of a transposed convolution");
    const Before &before = f;
    const F &then = f;
#pragma unroll
    for (int j = 0; j < P::N / 2; j++)
#pragma unroll
        for (int i = 0; i < 2; i++)
            part.v[i][j] =
                before(part.v[i][j], row + part.row(i, j / 2 % 2), name + j / 4 * 8 + j % 2);
    const int lane = threadIdx.x % 4; /* of four that have the same rows, and each two columns */
    long long own_at = at[0];
    bool own_inside = inside[0];
#pragma unroll
    for (int r = 1; r < 4; r++)
        if (lane == r) own_at = at[r], own_inside = inside[r];
    to += own_at - 2 * lane * PITCH;
#pragma unroll
    for (int j = 0; j < P::N / 2; j += 4)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float v[4];
#pragma unroll
            for (int r = 0; r < 4; r++) {
                float &of = part.v[r / 2][j + r % 2 * 2 + e];
                v[r] = of = then(of, row + part.row(r / 2, r % 2), name + 2 * j + e);
            }
            transpose_four(v);
#pragma unroll
            for (int c = 0; c < 4; c++)
                if (own_inside &&
                    (COLUMNS % P::N == 0 || column + 2 * j + e + 2 * (c - lane) < COLUMNS))
                    to[(2 * j + e + 2 * c) * PITCH] = v[c];
            __syncwarp();
        }
}

} // namespace kp
