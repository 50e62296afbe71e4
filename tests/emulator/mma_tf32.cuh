/* mma_tf32.cuh: optimized/include/mma_tf32.cuh for tests/emulate: a warp hands over its operands.
 */
#pragma once
#include "mma_f16.cuh"

namespace kp {
inline void mma_tf32(float (&d)[4], const float (&a)[4], const float (&b)[2]) {
    const auto cut = [](float v) {
        uint32_t bits;
        memcpy(&bits, &v, 4), bits &= 0xffffe000, memcpy(&v, &bits, 4);
        return (double)v;
    };
    emulator::warp_product<8>(d, a, b, [&](const auto *left, const auto *right, int h, int k) {
        const int q = k % 4, u = k / 4; /* q + 4 u is with lane q of four */
        return cut(left[q].v[h + 2 * u]) * cut(right[q].v[u]);
    });
}
} // namespace kp
