/* hopper_split.cuh: what split_f16.cuh and its kernels need beyond hopper_f16.cuh, one instruction
 * a function. */
#pragma once
#include "hopper_f16.cuh"

namespace kp {

/* Barriers 1 to 15 of a block, each for 256 threads: turn_wait() arrives and waits until all have
 * arrived, turn_pass() arrives. */
__device__ __forceinline__ void turn_wait(int bar) {
    asm volatile("bar.sync %0, 256;" ::"r"(bar) : "memory");
}

__device__ __forceinline__ void turn_pass(int bar) {
    asm volatile("bar.arrive %0, 256;" ::"r"(bar) : "memory");
}

/* Copies a multiple of 16 bytes from shared to global memory, and returns once shared memory may be
 * overwritten. fence_async() comes between what was written there and this. */
__device__ __forceinline__ void store_bulk(void *to, const void *from, int bytes) {
#ifdef KP_RACECHECK
    for (int i = 0; i < bytes / 16; i++) ((uint4 *)to)[i] = ((const uint4 *)from)[i];
#else
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                 "cp.async.bulk.commit_group;\n"
                 "cp.async.bulk.wait_group.read 0;" ::"l"(to),
                 "r"(shared_address(from)), "r"(bytes)
                 : "memory");
#endif
}

/* 2^x by the instruction; arguments and results below 2^-126 count as 0. */
__device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

} // namespace kp
