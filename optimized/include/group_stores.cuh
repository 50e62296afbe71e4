/* group_stores.cuh: what maps the values of a product (product.cuh) before a store takes them: one
 * by one, or in groups of 16 or 32 neighbouring rows: group norm, or means, of the features of a
 * linear layer whose weight is the operand A.
 *
 * Idea: a warp has 32 neighbouring rows of a tile, a thread four of each of its columns, so that a
 * group is in one warp: an operation maps it in registers, by shuffles, before another store
 * (stores.cuh, reducing_stores.cuh) takes the values. What it costs: 6 shuffles for a norm of four
 * values of a thread, while the block multiplies nothing.
 *
 * An operation is op(v, row, column): v are the values of a group's column that the thread has,
 * from rows row, row + 8, ...; it maps them. sum_rows() adds over the eight lanes that have the
 * rest.
 *
 * Reaches, with its product, 89 to 93 % of the products' floor (l2_088, l2_062). */
#pragma once
#include "stores.cuh"

namespace kp {

/* Deviations are squared in this unit, so that squares of 2^110 do not overflow. */
constexpr float GROUP_UNIT = 0x1p-50f;

/* (v - mean) / sqrt(variance + 1e-5) by the biased variance of a group of EACH, of values
 * f(v, row, column); f is the base. */
template <int EACH, class F> struct NormOfGroup : F {
    template <int COUNT>
    __device__ __forceinline__ void operator()(float (&v)[COUNT], int row, int column) const {
        const F &f = *this;
        float mean = 0.0f, square = 0.0f;
#pragma unroll
        for (int r = 0; r < COUNT; r++) {
            v[r] = f(v[r], row + 8 * r, column);
            mean += v[r] * (1.0f / EACH);
        }
        mean = sum_rows(mean);
#pragma unroll
        for (int r = 0; r < COUNT; r++) {
            v[r] = (v[r] - mean) * GROUP_UNIT;
            square += v[r] * v[r];
        }
        square = sum_rows(square) * (1.0f / EACH);
        const float scale = rsqrtf(square + 1e-5f * GROUP_UNIT * GROUP_UNIT);
#pragma unroll
        for (int r = 0; r < COUNT; r++) v[r] *= scale;
    }
};

/* The mean of a group of EACH values f(v, row, column), in place of each. */
template <int EACH, class F> struct MeanOfGroup : F {
    template <int COUNT>
    __device__ __forceinline__ void operator()(float (&v)[COUNT], int row, int column) const {
        const F &f = *this;
        float sum = 0.0f;
#pragma unroll
        for (int r = 0; r < COUNT; r++) sum += f(v[r], row + 8 * r, column);
        sum = sum_rows(sum);
#pragma unroll
        for (int r = 0; r < COUNT; r++) v[r] = sum * (1.0f / EACH);
    }
};

/* The store Base of a product of sizes S, whose values are f(value, row, column) first: for a store
 * that takes others in than it stores. */
template <class S, class F, class Base> struct OverValues : Base {
    F f;

    template <class P>
    __device__ __forceinline__ void tile(P &part, int batch, int row, int column) const {
#pragma unroll
        for (int j = 0; j < P::N / 2; j++) {
            const int n = column + j / 4 * 8 + j % 2;
            if (S::COLUMNS % P::N && n >= S::COLUMNS) continue;
#pragma unroll
            for (int i = 0; i < 2; i++)
                part.v[i][j] = f(part.v[i][j], row + part.row(i, j / 2 % 2), n);
        }
        Base::tile(part, batch, row, column);
    }
};

/* The store Base of a product of sizes S, whose groups of EACH rows `op` maps first. */
template <class S, int EACH, class Op, class Base> struct OverGroups : Base {
    static_assert((EACH == 16 || EACH == 32) && S::ROWS % EACH == 0, "whole groups, in a warp");
    Op op;

    template <class P>
    __device__ __forceinline__ void tile(P &part, int batch, int row, int column) const {
        static_assert(P::ALONG_DEPTH, "rows of a thread lie eight apart");
        constexpr int COUNT = EACH / 8;
#pragma unroll
        for (int j = 0; j < P::N / 8; j++)
#pragma unroll
            for (int e = 0; e < 2; e++)
#pragma unroll
                for (int first = 0; first < 4; first += COUNT) {
                    const int at = row + 8 * first;
                    if (!whole_tiles(S::ROWS) && at >= S::ROWS) continue; /* the whole warp */
                    float v[COUNT];
#pragma unroll
                    for (int r = 0; r < COUNT; r++)
                        v[r] = part.v[(first + r) / 2][4 * j + (first + r) % 2 * 2 + e];
                    op(v, at, column + 8 * j + e);
#pragma unroll
                    for (int r = 0; r < COUNT; r++)
                        part.v[(first + r) / 2][4 * j + (first + r) % 2 * 2 + e] = v[r];
                }
        Base::tile(part, batch, row, column);
    }
};

} // namespace kp
