/* named_barrier.cuh: optimized/include/named_barrier.cuh for tests/emulate. */
#pragma once
namespace emulator {
inline std::map<std::pair<Block *, int>, Barrier> named; /* of a block, by number */
} // namespace emulator
namespace kp {
template <int THREADS> void meet(int bar) {
    emulator::barrier(emulator::named[{emulator::self->block, bar}], THREADS, "meet");
}
} // namespace kp
