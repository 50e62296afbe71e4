/* strips.cuh: strips of whole rows through shared memory, on Hopper.
 *
 * What a block reads is one run of memory, and so is what it writes: one bulk copy brings the one,
 * another takes the other away. Blocks are small and in the order of memory, so that what is on
 * its way on the whole chip is close together. Rows of results need not be whole sectors: where
 * warps store them, a sector of 32 bytes that two of them share is written in parts, which costs
 * more than to write it once.
 * Reaches 97 to 99 % of the bytes' floor (l1_085, l1_042). */
#pragma once
#include "hopper_f16.cuh"

namespace kp {

/* Copies `count` floats, a multiple of 4, to shared memory, where `bar` is unused. The whole block
 * calls it, once; 16-byte alignment. */
__device__ __forceinline__ void strip_fetch(float *to, const float *from, int count,
                                            uint64_t *bar) {
    const uint32_t at = shared_address(bar);
    if (threadIdx.x == 0) {
        bar_init(at, 1);
        bar_init_done();
        bar_expect(at, count * 4);
        copy_bulk<1>(shared_address(to), from, count * 4, at);
    }
    __syncthreads();
    bar_wait(at, 0);
}

/* Copies from[begin] to from[end - 1], at least four, from shared memory to the same places of
 * `to`. The whole block calls it, last; from and to are aligned to 16 bytes. */
__device__ __forceinline__ void strip_store(float *to, const float *from, int begin, int end) {
    const int first = (begin + 3) / 4 * 4, last = end / 4 * 4; /* whole float4 between them */
    const int i = threadIdx.x;
    fence_async();
    __syncthreads();
    if (i == 0) {
        if (last > first)
            copy_bulk_out(to + first, shared_address(from + first), (last - first) * 4);
        copies_out_wait<0>(); /* before the memory is given back */
    } else if (i < 4) {
        if (begin + i - 1 < first) to[begin + i - 1] = from[begin + i - 1];
    } else if (i < 7) {
        if (last + i - 4 < end) to[last + i - 4] = from[last + i - 4];
    }
}

} // namespace kp
