/* pieces.cuh: roles of warps that hand pieces of shared memory on to each other, by barriers.
 *
 * A piece comes by a bulk copy to a slot of a ring; warps wait for the phase of its barrier that is
 * this piece's, read it, and arrive at the next barrier, for a whole warp each. The n-th use of a
 * slot is the n-th phase of its barriers. What is handed on by chains of such barriers needs no
 * other synchronisation, and racecheck sees it: where KP_RACECHECK is defined the lanes copy, and
 * every lane arrives (WARP_ARRIVALS, hopper.cuh).
 * Reaches: see drawn_rows.cuh and layer_norm_sm90.cuh. */
#pragma once
#include "hopper_f16.cuh"
#include "kept_in_l2.cuh"

namespace kp {

/* Arrives for a warp, behind all that its lanes have done. */
__device__ __forceinline__ void warp_arrive(uint64_t *bar) {
    __syncwarp();
    if (threadIdx.x % 32 < WARP_ARRIVALS) bar_arrive(shared_address(bar));
}

/* Waits for the n-th phase of a barrier. */
__device__ __forceinline__ void wait_phase(const uint64_t *bar, int n) {
    bar_wait(shared_address(bar), n & 1);
}

/* Asks for a piece of FOURS float4, by a warp; ONCE: nobody will read it again. The barrier expects
 * WARP_ARRIVALS arrivals. */
template <int FOURS, bool ONCE = false>
__device__ __forceinline__ void ask_piece(float4 *slot, const float4 *from, uint64_t *full) {
#ifdef KP_RACECHECK
    for (int i = threadIdx.x % 32; i < FOURS; i += 32)
        copy_async<16>(shared_address(slot + i), from + i);
    warp_arrive(full);
#else
    const uint32_t bar = shared_address(full), to = shared_address(slot);
    if (threadIdx.x % 32) return;
    bar_expect(bar, FOURS * 16);
    if (ONCE)
        copy_bulk_once(to, from, FOURS * 16, bar);
    else
        copy_bulk<1>(to, from, FOURS * 16, bar);
#endif
}

} // namespace kp
