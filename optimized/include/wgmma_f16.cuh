/* wgmma_f16.cuh: what sm_90a offers to f16 products, one instruction a function: barriers in
 * shared memory, asynchronous copies that report to them, and products by a warpgroup.
 *
 * Operands lie in shared memory as rows of 64 halves (128 bytes), both along the depth. The eight
 * 16-byte pieces of a row are permuted: piece p of row r is at p ^ (r & 7), which is the layout
 * that the tensor cores call the 128-byte swizzle. Eight rows make a group of 1024 bytes, aligned.
 */
#pragma once
#include <cuda_fp16.h>
#include <stdint.h>

constexpr int ROW_BYTES = 128; /* of an operand in shared memory: 64 halves */

/* The address of p inside shared memory. */
__device__ __forceinline__ uint32_t shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* Makes a barrier at `bar` that `count` arrivals complete. */
__device__ __forceinline__ void bar_init(uint32_t bar, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

/* Makes fresh barriers visible to the other CTAs of a cluster and to asynchronous copies. */
__device__ __forceinline__ void bar_init_fence() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void bar_arrive(uint32_t bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

/* Arrives at the barrier that CTA `rank` of the cluster has at the same place. */
__device__ __forceinline__ void bar_arrive_at(uint32_t bar, int rank) {
    asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(bar),
                 "r"(rank)
                 : "memory");
}

/* Waits until the phase of the given parity is complete. */
__device__ __forceinline__ void bar_wait(uint32_t bar, int parity) {
    asm volatile("{\n.reg .pred done;\nagain:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra over;\nbra again;\nover:\n}" ::"r"(bar),
                 "r"(parity)
                 : "memory");
}

/* The same, where other CTAs of the cluster arrive. */
__device__ __forceinline__ void bar_wait_cluster(uint32_t bar, int parity) {
    asm volatile("{\n.reg .pred done;\nagain:\n"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra over;\nbra again;\nover:\n}" ::"r"(bar),
                 "r"(parity)
                 : "memory");
}

/* Every thread of the cluster arrives before any has waited. */
__device__ __forceinline__ void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_meet() {
    cluster_arrive();
    cluster_wait();
}

__device__ __forceinline__ int cluster_rank() {
    int r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}

/* An address of shared memory as CTA `rank` of the cluster has it, for store_at(). */
__device__ __forceinline__ uint32_t at_rank(uint32_t address, int rank) {
    uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

/* Stores to any CTA of the cluster. */
__device__ __forceinline__ void store_at(uint32_t there, float v) {
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(v) : "memory");
}
__device__ __forceinline__ void store_at(uint32_t there, float2 v) {
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(there), "f"(v.x), "f"(v.y)
                 : "memory");
}

/* Starts the copy of 16 bytes from global memory, both addresses `*_OFFSET` bytes on. */
template <int TO_OFFSET, int FROM_OFFSET>
__device__ __forceinline__ void copy16(uint32_t to, const void *from) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0 + %2], [%1 + %3], 16;" ::"r"(to),
                 "l"(from), "n"(TO_OFFSET), "n"(FROM_OFFSET)
                 : "memory");
}

/* Arrives at `bar` once all copies that this thread has started are there. */
__device__ __forceinline__ void bar_arrive_copied(uint32_t bar) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}

__device__ __forceinline__ void copy_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most N groups of this thread's copies are under way. */
template <int N> __device__ __forceinline__ void copy_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* Orders ordinary accesses to shared memory and those of tensor cores and bulk copies. */
__device__ __forceinline__ void fence_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Bulk copies, of multiples of 16 bytes, report to a barrier of bar_init_bulk(), which has copies
 * by one thread of each of `ctas` CTAs of the cluster. The thread announces the bytes that come to
 * its own CTA by bar_expect(); copy_bulk() starts one copy, copy_bulk_to() one into each CTA in
 * `mask`, at the same place, which reports to the barrier of each; bar_bulk_done() is after the
 * last. Who needs them waits by bar_wait_bulk(). store_bulk() starts one copy to global memory, and
 * store_bulk_wait() waits until shared memory may be reused.
 *
 * Racecheck finds no order between a bulk copy and those who wait at its barrier. Where
 * KP_RACECHECK is defined the thread copies by ordinary loads and stores, and then arrives at the
 * barrier of each CTA: the same protocol, and racecheck sees every copy (harness/sanitize compiles
 * it for that alone). */
#ifdef KP_RACECHECK
__device__ __forceinline__ void bar_init_bulk(uint32_t bar, int ctas) {
    bar_init(bar, ctas);
}

__device__ __forceinline__ void bar_expect(uint32_t, int) {}

__device__ __forceinline__ void copy_bulk(uint32_t to, const void *from, int bytes, uint32_t) {
#pragma unroll 1
    for (int i = 0; i < bytes; i += 16) {
        const uint4 v = *(const uint4 *)((const char *)from + i);
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to + i), "r"(v.x), "r"(v.y),
                     "r"(v.z), "r"(v.w)
                     : "memory");
    }
}

__device__ __forceinline__ void copy_bulk_to(uint32_t to, const void *from, int bytes, uint32_t,
                                             int mask) {
#pragma unroll 1
    for (int i = 0; i < bytes; i += 16) {
        const uint4 v = *(const uint4 *)((const char *)from + i);
#pragma unroll 1
        for (int rank = 0; mask >> rank; rank++)
            if (mask >> rank & 1)
                asm volatile("st.shared::cluster.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(
                                 at_rank(to + i, rank)),
                             "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                             : "memory");
    }
}

__device__ __forceinline__ void bar_bulk_done(uint32_t bar, int ctas) {
#pragma unroll 1
    for (int rank = 0; rank < ctas; rank++) bar_arrive_at(bar, rank);
}

__device__ __forceinline__ void bar_wait_bulk(uint32_t bar, int parity) {
    bar_wait_cluster(bar, parity);
    fence_async(); /* tensor cores may read it */
}

__device__ __forceinline__ void store_bulk(void *to, uint32_t from, int bytes) {
#pragma unroll 1
    for (int i = 0; i < bytes; i += 16) {
        uint4 v;
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "r"(from + i)
                     : "memory");
        *(uint4 *)((char *)to + i) = v;
    }
}
#else
__device__ __forceinline__ void bar_init_bulk(uint32_t bar, int) {
    bar_init(bar, 1);
}

__device__ __forceinline__ void bar_expect(uint32_t bar, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void copy_bulk(uint32_t to, const void *from, int bytes, uint32_t bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(bar)
                 : "memory");
}

__device__ __forceinline__ void copy_bulk_to(uint32_t to, const void *from, int bytes, uint32_t bar,
                                             int mask) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(bar), "h"((uint16_t)mask)
                 : "memory");
}

__device__ __forceinline__ void bar_bulk_done(uint32_t, int) {}

__device__ __forceinline__ void bar_wait_bulk(uint32_t bar, int parity) {
    bar_wait(bar, parity);
}

__device__ __forceinline__ void store_bulk(void *to, uint32_t from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                 "cp.async.bulk.commit_group;" ::"l"(to),
                 "r"(from), "r"(bytes)
                 : "memory");
}
#endif

__device__ __forceinline__ void store_bulk_wait() {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/* Lets the threads of this warpgroup use at most N registers each: fewer, or more, than before. */
template <int N> __device__ __forceinline__ void registers_give() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N> __device__ __forceinline__ void registers_take() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

/* Names an operand: rows of 128 bytes from `address` on, swizzled, groups of 8 rows 1024 apart. The
 * next 16 of the depth are 32 bytes on, that is, the descriptor + 2. */
__device__ __forceinline__ uint64_t operand(uint32_t address) {
    return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}

/* Products start after mma_begin(), come in groups that mma_end() closes, and mma_wait<N>() waits
 * until at most N groups are under way. */
__device__ __forceinline__ void mma_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void mma_end() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int N> __device__ __forceinline__ void mma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

#define HOPPER_4(d, i)  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define HOPPER_16(d, i) HOPPER_4(d, i), HOPPER_4(d, i + 4), HOPPER_4(d, i + 8), HOPPER_4(d, i + 12)

/* Element d[4j + 2h + e] of thread t of the warpgroup is in row t/32*16 + t%32/4 + 8h, column
 * 8j + t%4*2 + e. */

/* d (64 x 256, fp32) = A * B, or += where `add` is set: one k-step of 16, A and B by descriptors.
 */
__device__ __forceinline__ void mma_f16(float (&d)[128], uint64_t a, uint64_t b, int add) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
                 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, "
                 "%110, %111, "
                 "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, "
                 "%125, %126, %127}, "
                 "%128, %129, p, 1, 1, 0, 0;\n}\n"
                 : HOPPER_16(d, 0), HOPPER_16(d, 16), HOPPER_16(d, 32), HOPPER_16(d, 48),
                   HOPPER_16(d, 64), HOPPER_16(d, 80), HOPPER_16(d, 96), HOPPER_16(d, 112)
                 : "l"(a), "l"(b), "r"(add));
}

/* d (64 x 128, fp32) = A * B, or += where `add` is set: one k-step of 16, A and B by descriptors.
 */
__device__ __forceinline__ void mma_f16(float (&d)[64], uint64_t a, uint64_t b, int add) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "%64, %65, p, 1, 1, 0, 0;\n}\n"
                 : HOPPER_16(d, 0), HOPPER_16(d, 16), HOPPER_16(d, 32), HOPPER_16(d, 48)
                 : "l"(a), "l"(b), "r"(add));
}

/* d (64 x 64, fp32) = A * B, or += where `add` is set: one k-step of 16, A and B by descriptors. */
__device__ __forceinline__ void mma_f16(float (&d)[32], uint64_t a, uint64_t b, int add) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "%32, %33, p, 1, 1, 0, 0;\n}\n"
                 : HOPPER_16(d, 0), HOPPER_16(d, 16)
                 : "l"(a), "l"(b), "r"(add));
}

/* One k-step of 16 against two operands of 128 rows that lie one after the other: d and e (64 x
 * 128, fp32) = A * B and A * B', or += where `add` is set. */
__device__ __forceinline__ void mma_f16_both(float (&d)[64], float (&e)[64], uint64_t a, uint64_t b,
                                             int add) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
                 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, "
                 "%110, %111, "
                 "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, "
                 "%125, %126, %127}, "
                 "%128, %129, p, 1, 1, 0, 0;\n}\n"
                 : HOPPER_16(d, 0), HOPPER_16(d, 16), HOPPER_16(d, 32), HOPPER_16(d, 48),
                   HOPPER_16(e, 0), HOPPER_16(e, 16), HOPPER_16(e, 32), HOPPER_16(e, 48)
                 : "l"(a), "l"(b), "r"(add));
}

#undef HOPPER_4
#undef HOPPER_16

/* Transposes 4 x 4 words over the four threads of a quad, so that each holds 16 bytes of a row. */
__device__ __forceinline__ void transpose_quad(unsigned (&r)[4], int lane) {
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
        const bool odd = lane & step;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (i & step) continue;
            const unsigned got = __shfl_xor_sync(~0u, odd ? r[i] : r[i + step], step);
            if (odd)
                r[i] = got;
            else
                r[i + step] = got;
        }
    }
}
