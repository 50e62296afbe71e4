/* cluster_words.cuh: optimized/include/cluster_words.cuh for tests/emulate. */
#pragma once
#include "hopper.cuh"

namespace kp {
inline uint32_t address_in_block(uint32_t address, int rank) {
    return emulator::at_rank(address, rank);
}
template <class V> /* float2 or float4 */
inline void store_words(uint32_t to, V v, uint32_t bar) {
    memset(emulator::shared_at(to), 0xff, sizeof v); /* until they come */
    emulator::later_event([=] {
        memcpy(emulator::shared_at(to), &v, sizeof v);
        emulator::Bar &b = emulator::bar_at(bar);
        b.bytes -= sizeof v;
        emulator::bar_check(b);
    });
}
} // namespace kp
