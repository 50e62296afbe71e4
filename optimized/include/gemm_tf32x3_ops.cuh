/* gemm_tf32x3_ops.cuh: what gemm_tf32x3.cuh needs of Hopper: barriers in shared memory, copies that
 * arrive at them, and the tensor cores' instructions for 128 columns. */
#pragma once
#include <cstdint>

namespace tf32x3 {

/* ---- barriers and copies ---- */

__device__ __forceinline__ uint32_t shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ void barrier_init(uint32_t barrier, int count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void barrier_wait(uint32_t barrier, int parity) {
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

__device__ __forceinline__ void barrier_expect(uint32_t barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

/* Arrives at the barrier of the same place in block `rank` of the cluster. */
__device__ __forceinline__ void barrier_arrive(uint32_t barrier, int rank) {
    asm volatile("{\n"
                 ".reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n"
                 "}" ::"r"(barrier),
                 "r"(rank)
                 : "memory");
}

/* barrier_arrive_copied() arrives once this thread's copy16() so far are done;
 * barrier_arrive_warp(), at the same barrier of each block of the cluster, after what the warp's
 * lanes did: its lanes have just waited for a product together.
 *
 * Racecheck finds no order between asynchronous copies and those who wait at their barrier, nor
 * between these and what other lanes did before one of a warp arrived. Where KP_RACECHECK is
 * defined copies are ordinary ones and every lane arrives (harness/sanitize compiles it for that
 * alone). What tensor cores alone read, racecheck does not look at: copy_bulk() stays. */
#ifdef KP_RACECHECK
constexpr int WARP_ARRIVALS = 32; /* at each barrier */

__device__ __forceinline__ void barrier_arrive_copied(uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void copy16(uint32_t to, const float *from) {
    const float4 v = *(const float4 *)from;
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(v.x), "f"(v.y), "f"(v.z),
                 "f"(v.w)
                 : "memory");
}

template <int CLUSTER> __device__ __forceinline__ void barrier_arrive_warp(uint32_t barrier) {
    for (int rank = 0; rank < CLUSTER; rank++) barrier_arrive(barrier, rank);
}
#else
constexpr int WARP_ARRIVALS = 1;

__device__ __forceinline__ void barrier_arrive_copied(uint32_t barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void copy16(uint32_t to, const float *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

template <int CLUSTER> __device__ __forceinline__ void barrier_arrive_warp(uint32_t barrier) {
    if (threadIdx.x % 32 < CLUSTER) barrier_arrive(barrier, threadIdx.x % 32);
}
#endif

/* One bulk copy, to this block or to the same place in all blocks of the cluster. */
template <int CLUSTER>
__device__ __forceinline__ void copy_bulk(uint32_t to, const float *from, int bytes,
                                          uint32_t barrier) {
    if (CLUSTER == 1)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1], %2, [%3];" ::"r"(to),
                     "l"(from), "r"(bytes), "r"(barrier)
                     : "memory");
    else
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(to),
                     "l"(from), "r"(bytes), "r"(barrier), "h"((uint16_t)((1 << CLUSTER) - 1))
                     : "memory");
}

__device__ __forceinline__ int cluster_rank() {
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

/* ---- tensor cores ---- */

__device__ __forceinline__ void multiply_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void multiply_finish() {
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
}

/* What the tensor cores are told of 128 columns of 128 bytes, 128-byte swizzle: the address,
 * and 1024 bytes from eight columns to the next. */
__device__ __forceinline__ uint64_t describe(uint32_t address) {
    return (uint64_t)(address >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

/* sum (+)= A * B, 64 x 128; A in registers. Eight of the depth, in TF32. */
/* clang-format off */
#define SUM_REGISTERS \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"
#define SUM_OPERANDS \
    "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]), "+f"(sum[4]), \
    "+f"(sum[5]), "+f"(sum[6]), "+f"(sum[7]), "+f"(sum[8]), "+f"(sum[9]), \
    "+f"(sum[10]), "+f"(sum[11]), "+f"(sum[12]), "+f"(sum[13]), "+f"(sum[14]), \
    "+f"(sum[15]), "+f"(sum[16]), "+f"(sum[17]), "+f"(sum[18]), "+f"(sum[19]), \
    "+f"(sum[20]), "+f"(sum[21]), "+f"(sum[22]), "+f"(sum[23]), "+f"(sum[24]), \
    "+f"(sum[25]), "+f"(sum[26]), "+f"(sum[27]), "+f"(sum[28]), "+f"(sum[29]), \
    "+f"(sum[30]), "+f"(sum[31]), "+f"(sum[32]), "+f"(sum[33]), "+f"(sum[34]), \
    "+f"(sum[35]), "+f"(sum[36]), "+f"(sum[37]), "+f"(sum[38]), "+f"(sum[39]), \
    "+f"(sum[40]), "+f"(sum[41]), "+f"(sum[42]), "+f"(sum[43]), "+f"(sum[44]), \
    "+f"(sum[45]), "+f"(sum[46]), "+f"(sum[47]), "+f"(sum[48]), "+f"(sum[49]), \
    "+f"(sum[50]), "+f"(sum[51]), "+f"(sum[52]), "+f"(sum[53]), "+f"(sum[54]), \
    "+f"(sum[55]), "+f"(sum[56]), "+f"(sum[57]), "+f"(sum[58]), "+f"(sum[59]), \
    "+f"(sum[60]), "+f"(sum[61]), "+f"(sum[62]), "+f"(sum[63])
template <bool ADD>
__device__ __forceinline__ void multiply_tf32(float (&sum)[64], const uint32_t (&a)[4], uint64_t b) {
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 "
                 SUM_REGISTERS ", {%64, %65, %66, %67}, %68, add, 1, 1;\n}"
                 : SUM_OPERANDS
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"((int)ADD));
}

/* The same for 16 of the depth, in bf16. */
template <bool ADD>
__device__ __forceinline__ void multiply_bf16(float (&sum)[64], const uint32_t (&a)[4], uint64_t b) {
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                 SUM_REGISTERS ", {%64, %65, %66, %67}, %68, add, 1, 1, 0;\n}"
                 : SUM_OPERANDS
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"((int)ADD));
}
#undef SUM_REGISTERS
#undef SUM_OPERANDS
/* clang-format on */

} // namespace tf32x3
