/* hopper_f16.cuh: the few instructions of sm_90a that the convolutions use, by name.
 *
 * One-dimensional bulk copies that complete on an mbarrier, and wgmma on f16 with the left operand
 * in registers and the right one in shared memory, K contiguous, without swizzle: cores of 8 rows x
 * 16 bytes, the two of a k-step 128 bytes apart, the next eight rows 256. */
#pragma once
#include <stdint.h>
#include <cuda_runtime.h>

__device__ __forceinline__ uint32_t shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ void barrier_init(uint64_t *bar, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)),
                 "r"(arrivals));
}

__device__ __forceinline__ void barrier_init_done() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Orders this thread's writes to shared memory before bulk copies to the same places, and before
 * what tensor cores read. */
__device__ __forceinline__ void fence_proxy_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void barrier_arrive(uint64_t *bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
}

/* Returns when the phase of this parity is over. */
__device__ __forceinline__ void barrier_wait(uint64_t *bar, uint32_t parity) {
    asm volatile("{\n.reg .pred p;\n"
                 "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@p bra DONE;\nbra WAIT;\nDONE:\n}\n" ::"r"(shared_address(bar)),
                 "r"(parity)
                 : "memory");
}

/* A thread's bulk copies: barrier_expect() announces their bytes, each bulk_copy() brings some (a
 * multiple of 16, both addresses too) from global to shared memory, bulk_copied() is after the
 * last. That is one arrival at the barrier.
 *
 * Racecheck finds no order between a bulk copy and those who wait at its barrier, nor between these
 * and what other lanes did before one of a warp arrived. Where KP_RACECHECK is defined the thread
 * copies by ordinary loads and stores, and its arrival is after them; and every lane of a warp
 * arrives: the same protocol, and racecheck sees all of it (harness/sanitize compiles it for that
 * alone). */
#ifdef KP_RACECHECK
constexpr int WARP_ARRIVALS = 32; /* at a barrier, by barrier_arrive_warp() */

__device__ __forceinline__ void barrier_expect(uint64_t *, uint32_t) {}

__device__ __forceinline__ void bulk_copy(void *to, const void *from, uint32_t bytes, uint64_t *) {
#pragma unroll 1
    for (uint32_t i = 0; i < bytes / 16; i++) ((uint4 *)to)[i] = ((const uint4 *)from)[i];
}

__device__ __forceinline__ void bulk_copied(uint64_t *bar) {
    fence_proxy_async(); /* tensor cores may read it */
    barrier_arrive(bar);
}
#else
constexpr int WARP_ARRIVALS = 1;

__device__ __forceinline__ void barrier_expect(uint64_t *bar, uint32_t bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)),
        "r"(bytes)
        : "memory");
}

__device__ __forceinline__ void bulk_copy(void *to, const void *from, uint32_t bytes,
                                          uint64_t *bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(bar))
                 : "memory");
}

__device__ __forceinline__ void bulk_copied(uint64_t *) {}
#endif

/* A warp arrives, after what its lanes did. */
__device__ __forceinline__ void barrier_arrive_warp(uint64_t *bar) {
    __syncwarp();
    if (threadIdx.x % 32 < WARP_ARRIVALS) barrier_arrive(bar);
}

template <int REGISTERS> __device__ __forceinline__ void more_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS> __device__ __forceinline__ void fewer_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

__device__ __forceinline__ void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

/* Descriptor of the right operand of one k-step at p. */
__device__ __forceinline__ uint64_t operand(const void *p) {
    const uint64_t k_stride = 128 >> 4, n_stride = 256 >> 4;
    return (uint64_t)((shared_address(p) & 0x3ffff) >> 4) | k_stride << 16 | n_stride << 32;
}

/* d (64 x N) = a (64 x 16) b (16 x N), plus d if add. d[4j..]: rows g, g, g + 8, g + 8, columns 8j
 * + 2t, 8j + 2t + 1 twice, g and t being the lane's quotient and rest by four; a, two f16 each, the
 * lower column low: columns 2t of rows g and g + 8, columns 2t + 8 of rows g and g + 8. */
template <int N> struct Wgmma;

template <> struct Wgmma<64> {
    static __device__ __forceinline__ void go(float (&d)[32], uint32_t a0, uint32_t a1, uint32_t a2,
                                              uint32_t a3, uint64_t b, int add) {
        asm volatile(
            "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
            "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
            " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
            "{%32, %33, %34, %35}, %36, p, 1, 1, 0;\n}\n"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
              "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]),
              "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]),
              "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
              "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]),
              "+f"(d[31])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(add));
    }
};

template <> struct Wgmma<96> {
    static __device__ __forceinline__ void go(float (&d)[48], uint32_t a0, uint32_t a1, uint32_t a2,
                                              uint32_t a3, uint64_t b, int add) {
        asm volatile(
            "{\n.reg .pred p;\nsetp.ne.b32 p, %53, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16 "
            "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
            " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
            " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47}, "
            "{%48, %49, %50, %51}, %52, p, 1, 1, 0;\n}\n"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
              "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]),
              "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]),
              "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
              "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]),
              "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
              "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]),
              "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(add));
    }
};

template <> struct Wgmma<128> {
    static __device__ __forceinline__ void go(float (&d)[64], uint32_t a0, uint32_t a1, uint32_t a2,
                                              uint32_t a3, uint64_t b, int add) {
        asm volatile(
            "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
            "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
            " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
            " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
            " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
            "{%64, %65, %66, %67}, %68, p, 1, 1, 0;\n}\n"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
              "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]),
              "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]),
              "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
              "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]),
              "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
              "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]),
              "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
              "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]),
              "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]),
              "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(add));
    }
};
