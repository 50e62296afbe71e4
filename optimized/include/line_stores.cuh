/* line_stores.cuh: lines of results that begin anywhere, stored by a warp each.
 *
 * A line of 638 floats begins at any of 32 places of a cache line. A store of 32 neighbours from
 * there on would touch two of them, and leave parts of sectors to others; so the first store ends
 * where the cache line does, and the others are whole.
 * Reaches: see l1_081 (no share of its own was measured). */
#pragma once

namespace kp {

/* to[i] = value(i) for i from 0 to `length`. All lanes of a warp call it. */
template <class F>
__device__ __forceinline__ void store_line(float *to, int length, const F &value) {
    const int before = (int)((size_t)to / sizeof(float) % 32);
#pragma unroll 4
    for (int i = (int)(threadIdx.x % 32) - before; i < length; i += 32)
        if (i >= 0) to[i] = value(i);
}

} // namespace kp
