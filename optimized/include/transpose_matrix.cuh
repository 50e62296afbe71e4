/* transpose_matrix.cuh: an 8 x 8 matrix of f16 transposed in the registers of a warp; sm_75 on. */
#pragma once
#include <stdint.h>

namespace kp {

/* The matrix lies over the warp as sums of products do: a thread has two neighbours of row
 * lane / 4, from column lane % 4 * 2 on. */
__device__ __forceinline__ uint32_t transpose_matrix(uint32_t x) {
    uint32_t y;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
    return y;
}

} // namespace kp
