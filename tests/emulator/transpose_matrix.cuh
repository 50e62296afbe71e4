/* transpose_matrix.cuh: optimized/include/transpose_matrix.cuh for tests/emulate. */
#pragma once

namespace kp {
inline uint32_t transpose_matrix(uint32_t x) {
    const int lane = threadIdx.x % 32;
    uint32_t y = 0;
    for (int i = 0; i < 2; i++) {
        const uint32_t there = __shfl_sync(~0u, x, (lane % 4 * 2 + i) * 4 + lane / 8);
        y |= (there >> lane / 4 % 2 * 16 & 0xffff) << i * 16;
    }
    return y;
}
} // namespace kp
