/* hopper_split.cuh: optimized/include/hopper_split.cuh for tests/emulate. */
#pragma once
#include "hopper_f16.cuh"
namespace emulator {
/* Of a block, by number: 256 threads arrive, some of which wait. */
inline std::map<std::pair<Block *, int>, Barrier> turns;
} // namespace emulator
namespace kp {
inline void turn_pass(int bar) {
    emulator::Barrier &b = emulator::turns[{emulator::self->block, bar}];
    if (++b.arrived == 256) b.arrived = 0, b.gen++;
}
inline void turn_wait(int bar) {
    const int &gen = emulator::turns[{emulator::self->block, bar}].gen, before = gen;
    turn_pass(bar);
    if (gen == before) emulator::wait_change(&gen, before, "turn");
}
inline void store_bulk(void *to, const void *from, int bytes) {
    if ((uintptr_t)to % 16 || (uintptr_t)from % 16 || bytes % 16)
        emulator::fail("bulk store is not aligned");
    memcpy(to, from, bytes);
}
inline float exp2_fast(float x) {
    return exp2f(x);
}
} // namespace kp
