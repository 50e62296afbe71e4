/* async.cuh: copies from global to shared memory that run behind the thread's back (sm_80).
 *
 * Where a thread copies only what it will read itself, its own wait is all the synchronisation
 * that is needed. */
#pragma once

/* Starts to copy 16 bytes; `to` is shared memory. Data that is used once, past L1. */
__device__ __forceinline__ void copy_async(void *to, const void *from) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
}

/* Closes a group of copies; it may be empty. */
__device__ __forceinline__ void copy_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most `pending` of this thread's latest groups are unfinished; a constant once
 * loops are unrolled. At most 7. */
__device__ __forceinline__ void copy_wait(int pending) {
    switch (pending) {
    case 0: asm volatile("cp.async.wait_group 0;" ::: "memory"); break;
    case 1: asm volatile("cp.async.wait_group 1;" ::: "memory"); break;
    case 2: asm volatile("cp.async.wait_group 2;" ::: "memory"); break;
    case 3: asm volatile("cp.async.wait_group 3;" ::: "memory"); break;
    case 4: asm volatile("cp.async.wait_group 4;" ::: "memory"); break;
    case 5: asm volatile("cp.async.wait_group 5;" ::: "memory"); break;
    case 6: asm volatile("cp.async.wait_group 6;" ::: "memory"); break;
    default: asm volatile("cp.async.wait_group 7;" ::: "memory"); break;
    }
}
