/* wait_either.cuh: optimized/include/wait_either.cuh for tests/emulate. */
#pragma once
#include "hopper.cuh"
namespace kp {
inline void bar_wait_either(uint32_t one, int parity, uint32_t other, int other_parity) {
    emulator::Bar &a = emulator::bar_at(one), &b = emulator::bar_at(other);
    while ((a.phase & 1) == parity && (b.phase & 1) == other_parity) __nanosleep(20);
}
} // namespace kp
