/* mma_tf32.cuh: optimized/include/mma_tf32.cuh for tests/emulate: a warp hands over its operands.
 */
#pragma once
#include "mma_f16.cuh"

namespace kp {
inline void mma_tf32(float (&d)[4], const float (&a)[4], const float (&b)[2]) {
    struct Left {
        float v[4];
    } left, lefts[32];
    struct Right {
        float v[2];
    } right, rights[32];
    const auto cut = [](float v) {
        uint32_t bits;
        memcpy(&bits, &v, 4), bits &= 0xffffe000, memcpy(&v, &bits, 4);
        return (double)v;
    };
    memcpy(&left, a, sizeof left), memcpy(&right, b, sizeof right);
    emulator::gather(left, lefts), emulator::gather(right, rights);
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (int h = 0; h < 2; h++)
        for (int e = 0; e < 2; e++) {
            double sum = d[2 * h + e];
            for (int k = 0; k < 8; k++) /* depth k is with lane k % 4 of four */
                sum += cut(lefts[g * 4 + k % 4].v[h + k / 4 * 2]) *
                       cut(rights[(t * 2 + e) * 4 + k % 4].v[k / 4]);
            d[2 * h + e] = (float)sum;
        }
}
} // namespace kp
