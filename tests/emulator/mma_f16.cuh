/* mma_f16.cuh: optimized/include/mma_f16.cuh for tests/emulate: a warp hands over its operands. */
#pragma once

namespace emulator {
/* v of all lanes of the warp. */
template <class T> void gather(const T &v, T (&all)[32]) {
    Group &g = self->block->warps[self->linear / 32].groups[~0u];
    const int slot = g.gen & 1;
    exchange(~0u, v, self->lane);
    for (int i = 0; i < 32; i++) memcpy(&all[i], g.value[slot][i], sizeof v);
}
inline float half_in(uint32_t word, int upper) {
    const uint16_t bits = (uint16_t)(upper ? word >> 16 : word);
    __half h;
    memcpy(&h, &bits, 2);
    return __half2float(h);
}
/* d (16 x 8) += a * b of a warp, of so much depth: term(left, right, h, k) is the product at depth
 * k, of a lane's row g + 8 h (g = lane / 4) and a column, from what their four lanes hold. */
template <int DEPTH, class W, class F>
void warp_product(float (&d)[4], const W (&a)[4], const W (&b)[2], const F &term) {
    struct Left {
        W v[4];
    } left, lefts[32];
    struct Right {
        W v[2];
    } right, rights[32];
    memcpy(&left, a, sizeof left), memcpy(&right, b, sizeof right);
    gather(left, lefts), gather(right, rights);
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (int h = 0; h < 2; h++)
        for (int e = 0; e < 2; e++) {
            double sum = d[2 * h + e];
            for (int k = 0; k < DEPTH; k++)
                sum += term(lefts + g * 4, rights + (t * 2 + e) * 4, h, k);
            d[2 * h + e] = (float)sum;
        }
}
} // namespace emulator

namespace kp {
inline void mma_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    emulator::warp_product<16>(d, a, b, [](const auto *left, const auto *right, int h, int k) {
        const int q = k % 8 / 2, u = k / 8, o = k % 2; /* 2 q + 8 u + o is with lane q of four */
        return (double)emulator::half_in(left[q].v[h + 2 * u], o) *
               emulator::half_in(right[q].v[u], o);
    });
}
} // namespace kp
