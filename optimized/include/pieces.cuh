/* pieces.cuh: pieces that warps of different roles hand over in shared memory (sm_90a).
 *
 * Idea: a role is one or more warps that do one thing with each piece: ask for it, reduce it, tell,
 * map. Roles share no barrier of the block; each goes through the block's pieces at its own speed,
 * and waits only for what it needs of the next one.
 *
 * Contract: all roles take pieces in the same order and count them from 0. The i-th of them lies in
 * slot i % SLOTS, and what happens to it ends phase i / SLOTS of the slot's barrier of that name. A
 * barrier is made for WARP_ARRIVALS a warp that arrives. Who asks for a piece has waited until the
 * slot is free; so no barrier is more than one phase ahead of one that waits at it.
 * Reaches: see drawn_rows.cuh. */
#pragma once
#include "hopper_f16.cuh"
#include "kept_in_l2.cuh"

namespace kp {

/* Arrives for a warp, behind all that its lanes have done. */
__device__ __forceinline__ void warp_arrive(uint64_t *bar) {
    __syncwarp();
    if (threadIdx.x % 32 < WARP_ARRIVALS) bar_arrive(shared_address(bar));
}

/* Says, for a warp, that it has read a piece and its slot is free. The next copy to it is of
 * another kind than these reads (the async proxy), and the fence alone puts it behind them: reads
 * that queue behind stores came after it, and found the next piece. */
__device__ __forceinline__ void free_piece(uint64_t *bar) {
    fence_async();
    warp_arrive(bar);
}

/* Waits until phase n of a barrier, from 0, is over. */
__device__ __forceinline__ void wait_phase(const uint64_t *bar, int n) {
    bar_wait(shared_address(bar), n & 1);
}

/* Asks for a piece of FOURS float4, by a warp, which arrives at `full`; that is over when all has
 * come. ONCE: nobody will read it again, so that the L2 cache need not keep it. Racecheck is to see
 * who reads it: there the warp copies it. */
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
