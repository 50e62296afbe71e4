/* named_barrier.cuh: a barrier for some warps of a block, while the others go on. */
#pragma once

namespace kp {

/* Returns once THREADS threads, whole warps, have come to barrier `bar`, 1 to 15; what they stored
 * before is seen. */
template <int THREADS> __device__ __forceinline__ void meet(int bar) {
    asm volatile("bar.sync %0, %1;" ::"r"(bar), "n"(THREADS) : "memory");
}

} // namespace kp
