/* moments.cuh: what the store of a product (product.cuh) knows of a norm's moments: of each column,
 * and the 32 rows that a warp has, the sum and the squares of the distances from their own mean.
 *
 * Squares of distances from a part's mean keep the digits that squares of values lose where a
 * column's mean is large. A tile takes 6 shuffles for four values of a thread. Reaches: see l2_039
 * (no share of its own was measured). */
#pragma once
#include "product_parts.cuh"

namespace kp {

/* Of some values: their sum, and the sum of the squares of their distances from their mean. */
struct alignas(8) Centred {
    float sum, square;
};

/* to[n] = the moments of column n of a product of COLUMNS columns, over the rows that are `own` of
 * a thread's four, and `count` of them in the warp; the thread's first column is `column`, and `to`
 * points at that. Distances are taken in `unit`. */
template <int COLUMNS, class P>
__device__ __forceinline__ void gather_moments(const P &part, const bool (&own)[4], float count,
                                               float unit, int column, Centred *to) {
    const float share = 1.0f / count;
#pragma unroll
    for (int j = 0; j < P::N / 8; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float sum = 0.0f, square = 0.0f;
#pragma unroll
            for (int r = 0; r < 4; r++)
                if (own[r]) sum += part.v[r / 2][4 * j + r % 2 * 2 + e];
            sum = sum_rows(sum);
            const float mean = sum * share;
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const float off = (part.v[r / 2][4 * j + r % 2 * 2 + e] - mean) * unit;
                if (own[r]) square += off * off;
            }
            square = sum_rows(square);
            const int n = 8 * j + e;
            if (threadIdx.x % 32 < 4 && (COLUMNS % P::N == 0 || column + n < COLUMNS))
                to[n] = {sum, square}; /* the other lanes have the same */
        }
}

} // namespace kp
