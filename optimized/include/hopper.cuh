/* hopper.cuh: what sm_90a has beyond sm_80, one instruction a function: barriers in shared memory,
 * asynchronous copies that report to them, clusters, and products by a warpgroup (wgmma).
 *
 * Shared memory is named by its 32-bit address. A barrier is 8 bytes of it; a phase of it is over
 * once all arrivals and all announced bytes are there, and phases have parities 0, 1, 0, ...
 *
 * Racecheck finds no order between asynchronous copies and those who wait at their barrier, nor
 * between these and what other lanes of a warp did before one of them arrived. Where KP_RACECHECK
 * is defined copies are ordinary ones and every lane arrives: the same protocol, and racecheck sees
 * it (harness/inspect/sanitize compiles it for that alone). What only tensor cores read, racecheck
 * does not look at: bulk copies stay. */
#pragma once
#include <cuda_runtime.h>
#include <stdint.h>

namespace kp {

__device__ __forceinline__ uint32_t shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* ---- barriers ---- */

__device__ __forceinline__ void bar_init(uint32_t bar, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(arrivals) : "memory");
}

/* Shows fresh barriers to the other blocks of a cluster and to asynchronous copies. */
__device__ __forceinline__ void bar_init_done() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Returns when the phase of this parity is over; the one before the first is over at once. */
__device__ __forceinline__ void bar_wait(uint32_t bar, int parity) {
    asm volatile("{\n.reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" ::"r"(bar),
                 "r"(parity)
                 : "memory");
}

/* Arrives at the barrier of the same place in block `rank` of the cluster, to say that this block
 * has read something. It shows writes to this block alone: .release.cluster, which shows them to
 * others, waits for all memory accesses of the warp (MEMBAR.ALL.GPU). What others then write here
 * is what tensor cores have read: wgmma_wait() has ended these reads, and a bulk copy is issued
 * only after the phase that this arrival ends. */
__device__ __forceinline__ void bar_arrive_at(uint32_t bar, int rank) {
    asm volatile("{\n.reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(bar),
                 "r"(rank)
                 : "memory");
}

/* Arrives, and announces bytes that bulk copies will bring in this phase. */
__device__ __forceinline__ void bar_expect(uint32_t bar, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
                 : "memory");
}

/* ---- copies from global to shared memory ---- */

/* copy_async() copies 4 or 16 bytes, or writes zeros unless `there` (then nothing is read), and
 * copies_wait() waits for those of this thread (both sm_80, too); copies_close() ends a group of
 * them, and copies_wait_but<LEFT>() waits for all groups but the last LEFT. bar_arrive_copied()
 * arrives once those of this thread so far have come. bar_arrive_warp() arrives for a warp at the
 * barrier of each block of the cluster: WARP_ARRIVALS times each. */
#ifdef KP_RACECHECK
constexpr int WARP_ARRIVALS = 32;

template <int BYTES>
__device__ __forceinline__ void copy_async(uint32_t to, const void *from, bool there = true) {
#pragma unroll
    for (int i = 0; i < BYTES; i += 4) {
        const uint32_t word = there ? *(const uint32_t *)((const char *)from + i) : 0;
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(to + i), "r"(word) : "memory");
    }
}

__device__ __forceinline__ void copies_wait() {}

__device__ __forceinline__ void copies_close() {}

template <int LEFT> __device__ __forceinline__ void copies_wait_but() {}

__device__ __forceinline__ void bar_arrive_copied(uint32_t bar) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(bar) : "memory");
}

template <int CLUSTER> __device__ __forceinline__ void bar_arrive_warp(uint32_t bar) {
    for (int rank = 0; rank < CLUSTER; rank++) bar_arrive_at(bar, rank);
}
#else
constexpr int WARP_ARRIVALS = 1;

template <int BYTES>
__device__ __forceinline__ void copy_async(uint32_t to, const void *from, bool there = true) {
    const int bytes = there ? BYTES : 0;
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                     "r"(bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes)
                     : "memory");
}

/* Waits until this thread's copies so far have come. */
__device__ __forceinline__ void copies_wait() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}

__device__ __forceinline__ void copies_close() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int LEFT> __device__ __forceinline__ void copies_wait_but() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

__device__ __forceinline__ void bar_arrive_copied(uint32_t bar) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(bar) : "memory");
}

template <int CLUSTER> __device__ __forceinline__ void bar_arrive_warp(uint32_t bar) {
    if (threadIdx.x % 32 < CLUSTER) bar_arrive_at(bar, threadIdx.x % 32);
}
#endif

/* One bulk copy of a multiple of 16 bytes, to this block or to the same place in all blocks of the
 * cluster; it counts at the barrier of each. */
template <int CLUSTER>
__device__ __forceinline__ void copy_bulk(uint32_t to, const void *from, int bytes, uint32_t bar) {
    if (CLUSTER == 1)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1], %2, [%3];" ::"r"(to),
                     "l"(from), "r"(bytes), "r"(bar)
                     : "memory");
    else
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(to),
                     "l"(from), "r"(bytes), "r"(bar), "h"((uint16_t)((1 << CLUSTER) - 1))
                     : "memory");
}

/* ---- clusters and registers ---- */

__device__ __forceinline__ int cluster_rank() {
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

template <int REGISTERS> __device__ __forceinline__ void registers_take() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS> __device__ __forceinline__ void registers_give() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

/* Enqueues a kernel that has __cluster_dims__(CLUSTER, 1, 1) or may have: with all the shared
 * memory that a block can have, as the host does not know what the kernel was compiled for. */
template <int CLUSTER, class... Parameters, class... Arguments>
static void launch_cluster(void (*kernel)(Parameters...), int blocks, int threads,
                           cudaStream_t stream, const Arguments &...arguments) {
    int device = 0, bytes = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<blocks, threads, bytes, stream>>>(arguments...);
}

/* ---- products by a warpgroup ---- */

/* A group of products: wgmma_begin(), products, wgmma_end(), and wgmma_wait<N>() until all groups
 * but the last N are done. Until then nobody touches their registers and shared memory. */
__device__ __forceinline__ void wgmma_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_end() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int PENDING> __device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* The right operand: rows of 128 bytes along the depth, a row a column of the product. The 16-byte
 * pieces of row r are permuted: piece p lies at p ^ r % 8 (128-byte swizzle). The address is a
 * multiple of 1024; 32 bytes of the depth further is + (32 >> 4). */
__device__ __forceinline__ uint64_t wgmma_operand(uint32_t address) {
    return (uint64_t)(address >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

/* Two numbers, rounded to bf16; the first in the lower half. */
__device__ __forceinline__ uint32_t pack_bf16(float first, float second) {
    uint32_t bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
    return bits;
}

struct Tf32 {}; /* a step of the depth is 8 numbers of 32 bits, the low 13 of which are ignored */
struct Bf16 {}; /* 16 numbers of 16 bits, two in a register, the first in the lower half */
struct F16 {};  /* the same */

/* d (64 x N) = a (64 x 32 bytes of the depth) * b, plus d if ADD. A thread has, with g = lane / 4
 * and t = lane % 4, of rows g and g + 8 of its warp's 16: d[4 j + 2 h + e] is row g + 8 h, column
 * 8 j + 2 t + e; a[h + 2 u] is row g + 8 h, word t + 4 u of the step. */
template <class Type, int N> struct Wgmma;

/* clang-format off */
#define KP_D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
    "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define KP_D16(i) KP_D8(i), KP_D8(i + 8)
#define KP_R_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define KP_R0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define KP_R16 KP_R0 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define KP_R24 KP_R0 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define KP_R32 KP_R16 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define KP_R48 KP_R32 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define KP_WGMMA(TYPE, N, SHAPE, D, A, B, ADDS, LAST, ...) \
    template <> struct Wgmma<TYPE, N> { \
        template <bool ADD> static __device__ __forceinline__ void \
        multiply(float (&d)[N / 2], const uint32_t (&a)[4], uint64_t b) { \
            asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " ADDS ", 0;\n" \
                         "wgmma.mma_async.sync.aligned.m64n" #N SHAPE " {" D "}, {" A "}, " B ", add, 1, 1" LAST ";\n}" \
                         : __VA_ARGS__ \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"((int)ADD)); \
        } \
    };
#define KP_WGMMA_SIZES(TYPE, SHAPE, LAST) \
    KP_WGMMA(TYPE, 16, SHAPE, KP_R_8, "%8, %9, %10, %11", "%12", "%13", LAST, KP_D8(0)) \
    KP_WGMMA(TYPE, 32, SHAPE, KP_R0, "%16, %17, %18, %19", "%20", "%21", LAST, KP_D16(0)) \
    KP_WGMMA(TYPE, 48, SHAPE, KP_R24, "%24, %25, %26, %27", "%28", "%29", LAST, KP_D16(0), KP_D8(16)) \
    KP_WGMMA(TYPE, 64, SHAPE, KP_R16, "%32, %33, %34, %35", "%36", "%37", LAST, KP_D16(0), KP_D16(16)) \
    KP_WGMMA(TYPE, 96, SHAPE, KP_R32, "%48, %49, %50, %51", "%52", "%53", LAST, KP_D16(0), KP_D16(16), KP_D16(32)) \
    KP_WGMMA(TYPE, 128, SHAPE, KP_R48, "%64, %65, %66, %67", "%68", "%69", LAST, KP_D16(0), KP_D16(16), KP_D16(32), KP_D16(48))
KP_WGMMA_SIZES(Tf32, "k8.f32.tf32.tf32", "")
KP_WGMMA_SIZES(Bf16, "k16.f32.bf16.bf16", ", 0")
KP_WGMMA_SIZES(F16, "k16.f32.f16.f16", ", 0")
#undef KP_WGMMA_SIZES
#undef KP_WGMMA
#undef KP_R48
#undef KP_R32
#undef KP_R24
#undef KP_R16
#undef KP_R0
#undef KP_R_8
#undef KP_D16
#undef KP_D8
/* clang-format on */

} // namespace kp
