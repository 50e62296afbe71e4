/* triangle.cuh: products (product.cuh) of two triangular matrices of the same kind, which is
 * triangular again: of a tile only the slabs that are not zero are multiplied, and of the other
 * triangle nothing. Rows of the product are columns of the right matrix, and its columns are rows
 * of the left one, as StoreColumns has it.
 * Reaches 60 to 61 % of the floor of these tiles (l1_014, l1_015). */
#pragma once
#include "product.cuh"

namespace kp {

template <int ROWS, int COLUMNS, int DEPTH, bool UPPER>
struct Triangle : Matrices<ROWS, COLUMNS, DEPTH> {
    static constexpr int SLABS = Matrices<ROWS, COLUMNS, DEPTH>::SLABS;
    static constexpr int TERMS = DEPTH / 2; /* on average; a few are shorter */
    static __device__ __forceinline__ int first_slab(int, int row, int, int column, int) {
        return (UPPER ? column : row) / TILE_K;
    }
    static __device__ __forceinline__ int end_slab(int, int, int row_end, int, int column_end) {
        return min(SLABS, (UPPER ? row_end : column_end) / TILE_K);
    }
};

/* What of the result is zero. */
template <bool UPPER> struct InTriangle {
    __device__ __forceinline__ float operator()(float v, int row, int column) const {
        return (UPPER ? row >= column : row <= column) ? v : 0.0f;
    }
};

} // namespace kp
