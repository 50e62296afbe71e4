/* stores.cuh: where the tiles of a product (product.cuh) go.
 *
 * The epilogue of a task is a function f(value, row, column), the base of a store, which may keep
 * pointers; Same leaves values as they are. A store for other results has a tile() of its own.
 * Reaches: see product.cuh. */
#pragma once
#include "product.cuh"

namespace kp {

struct Same {
    __device__ __forceinline__ float operator()(float v, int, int) const { return v; }
};

/* Adds a number for each column of the product. */
struct AddBias {
    const float *bias;
    __device__ __forceinline__ float operator()(float v, int, int column) const {
        return v + __ldg(bias + column);
    }
};

/* f(value, row, column) to out[batch * BATCH + row * COLUMNS + column]. */
template <class F, long long ROWS, int COLUMNS, long long BATCH = 0> struct StoreRows : F {
    float *out;
    template <class P>
    __device__ __forceinline__ void tile(const P &part, int batch, int row, int column) const {
        const F &f = *this;
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int m = row + part.row(i, h);
                if (!whole_tiles(ROWS) && m >= ROWS) continue;
                float *p = out + batch * BATCH + (long long)m * COLUMNS + column;
#pragma unroll
                for (int j = 0; j < P::N / 8; j++) {
                    const float *v = part.v[i] + 4 * j + 2 * h;
                    const int n = column + 8 * j;
                    if (COLUMNS % P::N && n >= COLUMNS) break;
                    const float2 r = make_float2(f(v[0], m, n), f(v[1], m, n + 1));
                    if (COLUMNS % 2 == 0) {
                        *(float2 *)(p + 8 * j) = r;
                    } else {
                        p[8 * j] = r.x;
                        if (n + 1 < COLUMNS) p[8 * j + 1] = r.y;
                    }
                }
            }
    }
};

/* The transpose of v[4] of four lanes: lane i gets what all four had in v[i]. */
__device__ __forceinline__ void transpose_four(float (&v)[4]) {
#pragma unroll
    for (int step = 1; step < 4; step *= 2)
#pragma unroll
        for (int r = 0; r < 4; r++) {
            if (r & step) continue;
            const bool upper = threadIdx.x & step;
            const float other = __shfl_xor_sync(0xffffffffu, upper ? v[r] : v[r + step], step);
            if (upper)
                v[r] = other;
            else
                v[r + step] = other;
        }
}

/* store_columns() for a thread. ALL: all four rows are inside, in all lanes of the warp. Then
 * nothing is asked in between, and elements are computed side by side. */
template <int COLUMNS, long long PITCH, bool FOURS, bool ALL, class P, class F>
__device__ __forceinline__ void store_columns_of(P &part, const F &f, int row, int column, int name,
                                                 float *to, const long long (&at)[4],
                                                 const bool (&inside)[4]) {
    constexpr bool LANES = !FOURS && !P::ALONG_DEPTH;
    const int lane = threadIdx.x % 4; /* of four that have the same rows, and each two columns */
    long long own_at = at[0];
    bool own_inside = inside[0];
#pragma unroll
    for (int r = 1; r < 4; r++)
        if (LANES && lane == r) own_at = at[r], own_inside = inside[r];
    if (LANES) to += own_at - 2 * lane * PITCH;
#pragma unroll
    for (int j = 0; j < P::N / 2; j += 4)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const int n = 2 * j + e;
            const bool some = COLUMNS % P::N == 0 || column + n < COLUMNS;
            if (!LANES && !some) continue;
            float *p = to + n * PITCH, v[4];
#pragma unroll
            for (int r = 0; r < 4; r++) {
                float &of = part.v[r / 2][j + r % 2 * 2 + e];
                if (some && (ALL || inside[r])) of = f(of, row + part.row(r / 2, r % 2), name + n);
                v[r] = of;
            }
            if constexpr (FOURS) {
                *(float4 *)(p + at[0]) = make_float4(v[0], v[1], v[2], v[3]);
            } else if constexpr (LANES) {
                transpose_four(v);
#pragma unroll
                for (int c = 0; c < 4; c++)
                    if ((ALL || own_inside) &&
                        (COLUMNS % P::N == 0 || column + n + 2 * (c - lane) < COLUMNS))
                        p[2 * c * PITCH] = v[c];
            } else {
#pragma unroll
                for (int r = 0; r < 4; r++)
                    if (ALL || inside[r]) p[at[r]] = v[r];
            }
        }
}

/* f(value, row, column) to to[n * PITCH + at[r]] for a thread's rows r that are inside and columns
 * n of the tile, which has COLUMNS from `column` on at most; f is told `name` for the first. FOURS:
 * the rows are a float4. Others go, where a thread's rows are neighbours, to neighbouring lanes, so
 * that a warp writes 32 rows of a column at a time. What it stores stays in `part`. */
template <int COLUMNS, long long PITCH, bool FOURS, class P, class F>
__device__ __forceinline__ void store_columns(P &part, const F &f, int row, int column, int name,
                                              float *to, const long long (&at)[4],
                                              const bool (&inside)[4]) {
    const bool all = inside[0] && inside[1] && inside[2] && inside[3];
    if constexpr (FOURS) {
        if (inside[0])
            store_columns_of<COLUMNS, PITCH, true, true>(part, f, row, column, name, to, at,
                                                         inside);
    } else if (__all_sync(0xffffffffu, all)) {
        store_columns_of<COLUMNS, PITCH, false, true>(part, f, row, column, name, to, at, inside);
    } else {
        store_columns_of<COLUMNS, PITCH, false, false>(part, f, row, column, name, to, at, inside);
    }
}

/* f(value, row, column) to out[batch * BATCH + column * ROWS + row]: the product's transpose. A
 * thread has four rows, side by side if A lies across the depth. */
template <class F, long long ROWS, int COLUMNS, long long BATCH = 0> struct StoreColumns : F {
    float *out;
    template <class P>
    __device__ __forceinline__ void tile(P &part, int batch, int row, int column) const {
        constexpr bool FOURS = !P::ALONG_DEPTH && ROWS % 4 == 0 && BATCH % 4 == 0;
        long long at[4];
        bool inside[4];
#pragma unroll
        for (int r = 0; r < 4; r++) {
            at[r] = part.row(r / 2, r % 2);
            inside[r] = whole_tiles(ROWS) || row + at[r] < ROWS;
        }
        store_columns<COLUMNS, ROWS, FOURS>(part, (const F &)*this, row, column, column,
                                            out + batch * BATCH + (long long)column * ROWS + row,
                                            at, inside);
    }
};

} // namespace kp
