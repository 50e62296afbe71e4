/* cluster_words.cuh: words that a block stores into the shared memory of another block of its
 * cluster, and that count at a barrier there as the bytes of a bulk copy do (sm_90a). */
#pragma once
#include "hopper.cuh"

namespace kp {

/* The address, in the block `rank` of the cluster, of what lies at `address` in this one. */
__device__ __forceinline__ uint32_t address_in_block(uint32_t address, int rank) {
    uint32_t there = address;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
#endif
    return there;
}

/* Stores v to `to`, 8 or 16 bytes that count at `bar`; both are addresses in the same block. */
__device__ __forceinline__ void store_words(uint32_t to, float2 v, uint32_t bar) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, "
                 "[%3];" ::"r"(to),
                 "f"(v.x), "f"(v.y), "r"(bar)
                 : "memory");
#endif
}
__device__ __forceinline__ void store_words(uint32_t to, float4 v, uint32_t bar) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 "
                 "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
                 "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(bar)
                 : "memory");
#endif
}

} // namespace kp
