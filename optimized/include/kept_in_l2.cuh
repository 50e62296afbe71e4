/* kept_in_l2.cuh: what of the memory the L2 cache keeps longest, and what it drops first (sm_80;
 * the bulk copy sm_90).
 *
 * What is read once need not stay, and what is read again and again should. A hint says which;
 * stores have __stcs(). Hints change times only.
 * Reaches: an L2 told to drop x saves a sixth of a layer norm's time (layer_norm_sm90.cuh); one
 * told to keep the bias saved 1 to 3 %, which no recorded kernel asks for (NOTES.md). */
#pragma once
#include "hopper.cuh"

namespace kp {

/* A float4 that others of its kind will be read again after. */
__device__ __forceinline__ float4 load_kept(const float4 *from) {
    uint64_t hint;
    float4 v;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(hint));
    asm volatile("ld.global.nc.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(from), "l"(hint));
    return v;
}

/* copy_bulk<1>() of what nobody reads again. */
__device__ __forceinline__ void copy_bulk_once(uint32_t to, const void *from, int bytes,
                                               uint32_t bar) {
    uint64_t hint;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(hint));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1], %2, [%3], %4;" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(bar), "l"(hint)
                 : "memory");
}

} // namespace kp
