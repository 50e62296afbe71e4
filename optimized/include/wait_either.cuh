/* wait_either.cuh: a wait for the sooner of two barriers (sm_90).
 *
 * Idea: bar_wait() (hopper.cuh) sleeps at one barrier; who may go on for either of two reasons asks
 * both in turn.
 *
 * Contract: as of bar_wait(): neither barrier is more than one phase ahead of the one asked for. It
 * is for a warp that has nothing else to do, since it takes issue slots all the while.
 * Reaches: see layer_norm_sm90.cuh. */
#pragma once
#include "hopper.cuh"

namespace kp {

/* Waits until the phase of one of two barriers is over. */
__device__ __forceinline__ void bar_wait_either(uint32_t one, int parity, uint32_t other,
                                                int other_parity) {
    asm volatile("{\n.reg .pred done;\n"
                 "again:\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra over;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 done, [%2], %3;\n"
                 "@!done bra again;\n"
                 "over:\n}" ::"r"(one),
                 "r"(parity), "r"(other), "r"(other_parity)
                 : "memory");
}

} // namespace kp
