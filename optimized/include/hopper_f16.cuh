/* hopper_f16.cuh: what products of f16 need of sm_90a beyond hopper.cuh, one instruction a
 * function: products of two operands in shared memory, sums sent to other blocks of a cluster,
 * copies of boxes of a matrix by tensor maps, and copies from shared memory (strips.cuh).
 *
 * An operand in shared memory is what wgmma_operand() wants: rows of 128 bytes along the depth,
 * 16-byte piece p of row r at p ^ r % 8. */
#pragma once
#include <cuda.h>
#include <cuda_fp16.h>
#include "hopper.cuh"

namespace kp {

/* Orders ordinary writes to shared memory and what tensor cores and bulk copies read. */
__device__ __forceinline__ void fence_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Arrives at a barrier of this block. */
__device__ __forceinline__ void bar_arrive(uint32_t bar) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(bar) : "memory");
}

/* A counter in global memory that goes from 0 to `most` and is 0 again. What this thread wrote, and
 * what others wrote before a barrier that it came to, is seen by those who see the new count. */
__device__ __forceinline__ void count_up(unsigned *counter, unsigned most) {
    asm volatile("red.release.gpu.global.inc.u32 [%0], %1;" ::"l"(counter), "r"(most) : "memory");
}

/* The same, and returns the count before. */
__device__ __forceinline__ unsigned count_next(unsigned *counter, unsigned most) {
    unsigned before;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(counter), "r"(most)
                 : "memory");
    return before;
}

/* Waits until a counter has reached `all`. */
__device__ __forceinline__ void count_wait(const unsigned *counter, unsigned all) {
    unsigned now;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(counter) : "memory");
    while (now < all);
}

/* ---- clusters ---- */

/* Every thread arrives, and then has waited until all blocks of the cluster run and have the
 * barriers that bar_init_done() shows. Of memory it shows nothing else, as cluster_sync() does,
 * which waits for all that a warp has loaded and stored (MEMBAR.ALL.GPU). */
__device__ __forceinline__ void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* An address of shared memory as block `rank` of the cluster has it, for send_at(). */
__device__ __forceinline__ uint32_t at_rank(uint32_t address, int rank) {
    uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

/* Sends four floats, whose 16 bytes count at barrier `bar` there. */
__device__ __forceinline__ void send_at(uint32_t there, float4 v, uint32_t bar) {
#ifdef KP_RACECHECK
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(there), "f"(v.x),
                 "f"(v.y), "f"(v.z), "f"(v.w)
                 : "memory");
#else
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32"
                 " [%0], {%1, %2, %3, %4}, [%5];" ::"r"(there),
                 "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(bar)
                 : "memory");
#endif
}

/* Waits for what the blocks of a cluster send to this one: all that its barrier expects. All
 * threads of the block call it. */
__device__ __forceinline__ void sent_wait(uint32_t bar) {
#ifdef KP_RACECHECK
    cluster_sync();
#else
    bar_wait(bar, 0);
#endif
}

/* Whether so many blocks, one a multiprocessor, run at once and may wait for each other: of larger
 * clusters it depends on the chip how many it has room for. */
template <int CLUSTER> static bool run_at_once(int blocks, int processors) {
    return CLUSTER <= 2 && blocks <= processors;
}

/* Enqueues a kernel in clusters of CLUSTER blocks, each with so many bytes of shared memory. If
 * they wait for each other, `together`, the launch fails where they do not run at once. */
template <int CLUSTER, class... Parameters, class... Arguments>
static void launch_sized(void (*kernel)(Parameters...), int blocks, int threads, int bytes,
                         cudaStream_t stream, bool together, const Arguments &...arguments) {
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t c = {};
    c.gridDim = blocks, c.blockDim = threads, c.dynamicSmemBytes = bytes, c.stream = stream;
    c.attrs = attributes;
    if (CLUSTER > 1) {
        attributes[c.numAttrs].id = cudaLaunchAttributeClusterDimension;
        attributes[c.numAttrs].val.clusterDim.x = CLUSTER;
        attributes[c.numAttrs].val.clusterDim.y = attributes[c.numAttrs].val.clusterDim.z = 1;
        c.numAttrs++;
    }
    if (together) {
        attributes[c.numAttrs].id = cudaLaunchAttributeCooperative;
        attributes[c.numAttrs++].val.cooperative = 1;
    }
    if (bytes > 48 * 1024)
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    cudaLaunchKernelEx(&c, kernel, arguments...);
}

/* ---- tensor maps ---- */

/* What the copy engine knows of a matrix. A kernel takes it as const __grid_constant__. */
using TensorMap = CUtensorMap;

/* The map of a row-major matrix of f16, which is read and written in boxes of 64 columns (128
 * bytes) by `box` rows, laid out as operands; zeros lie beyond it. The L2 fetches lines of 128
 * bytes, or two at a time. The runtime finds the driver's function, so nothing links the driver. */
static inline TensorMap map_of(const __half *matrix, int rows, int columns, int box,
                               int lines = 2) {
    const cuuint64_t dimension[] = {(cuuint64_t)columns, (cuuint64_t)rows};
    const cuuint64_t pitch[] = {(cuuint64_t)columns * sizeof(__half)};
    const cuuint32_t size[] = {64, (cuuint32_t)box}, step[] = {1, 1};
    enum cudaDriverEntryPointQueryResult status;
    void *encode = nullptr;
    TensorMap map = {};
#if CUDART_VERSION >= 12050
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault,
                                     &status);
#else
    cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &encode, cudaEnableDefault, &status);
#endif
    if (encode)
        ((decltype(cuTensorMapEncodeTiled) *)encode)(
            &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, (void *)matrix, dimension, pitch, size, step,
            CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
            lines == 1 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B : CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return map;
}

/* Whether this lane is the one to ask the copy engine, of a warp whose lanes are all here. Of this
 * instruction the compiler knows that one lane goes on, always the same. After a comparison with
 * threadIdx.x it makes a loop over the lanes that may be there around each copy. */
__device__ __forceinline__ bool elect_one() {
    uint32_t chosen;
    asm volatile("{\n.reg .pred chosen;\n"
                 "elect.sync _|chosen, 0xffffffff;\n"
                 "selp.u32 %0, 1, 0, chosen;\n}"
                 : "=r"(chosen)::"memory");
    return chosen;
}

/* Has a map brought near, before it is needed. */
__device__ __forceinline__ void map_prefetch(const TensorMap *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* Starts the copy of the box from (row, column) on, to this block or to the same place in all
 * blocks of the cluster; it counts at the barrier of each. */
template <int CLUSTER>
__device__ __forceinline__ void copy_box(uint32_t to, const TensorMap *map, int row, int column,
                                         uint32_t bar) {
    if (CLUSTER == 1)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                     ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                     "l"(map), "r"(column), "r"(row), "r"(bar)
                     : "memory");
    else
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                     ".mbarrier::complete_tx::bytes.multicast::cluster"
                     " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                     "l"(map), "r"(column), "r"(row), "r"(bar), "h"((uint16_t)((1 << CLUSTER) - 1))
                     : "memory");
}

/* Starts the copy of a box of this block's shared memory to (row, column), as a group. */
__device__ __forceinline__ void copy_box_out(const TensorMap *map, int row, int column,
                                             uint32_t from) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];\n"
        "cp.async.bulk.commit_group;" ::"l"(map),
        "r"(column), "r"(row), "r"(from)
        : "memory");
}

/* Starts a copy of a multiple of 16 bytes from this block's shared memory, as a group. */
__device__ __forceinline__ void copy_bulk_out(void *to, uint32_t from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                 "cp.async.bulk.commit_group;" ::"l"(to),
                 "r"(from), "r"(bytes)
                 : "memory");
}

/* Waits until all but LEFT of this thread's groups have read what they copy. */
template <int LEFT> __device__ __forceinline__ void copies_out_wait() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(LEFT) : "memory");
}

/* Stores four 8 x 8 matrices of f16, which lie over a warp as sums of products do; lane l says
 * where row l % 8 of matrix l / 8 goes. */
__device__ __forceinline__ void store_matrices(uint32_t to, const uint32_t (&r)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}

/* ---- products ---- */

/* Keeps the compiler from reading sums before a wait for the products that add to them. */
template <int N> __device__ __forceinline__ void wgmma_hold(float (&d)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory");
}

/* d (64 x N, fp32) = a * b, or += where `add` is set: a step of 16 of the depth, both operands by
 * wgmma_operand(). Who has what of d is as in Wgmma. */
template <int N> struct WgmmaShared;

/* clang-format off */
#define KP_D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
    "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define KP_D16(i) KP_D8(i), KP_D8(i + 8)
#define KP_D64(i) KP_D16(i), KP_D16(i + 16), KP_D16(i + 32), KP_D16(i + 48)
#define KP_R16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define KP_R32 KP_R16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define KP_R48 KP_R32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define KP_R64 KP_R32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define KP_R96 KP_R64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define KP_R128 KP_R96 ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define KP_WGMMA(N, D, A, B, ADDS, ...) \
    template <> struct WgmmaShared<N> { \
        static __device__ __forceinline__ void multiply(float (&d)[N / 2], uint64_t a, uint64_t b, int add) { \
            asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " ADDS ", 0;\n" \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.f16.f16 {" D "}, " A ", " B \
                         ", add, 1, 1, 0, 0;\n}" : __VA_ARGS__ : "l"(a), "l"(b), "r"(add)); \
        } \
    };
KP_WGMMA(32, KP_R16, "%16", "%17", "%18", KP_D16(0))
KP_WGMMA(64, KP_R32, "%32", "%33", "%34", KP_D16(0), KP_D16(16))
KP_WGMMA(96, KP_R48, "%48", "%49", "%50", KP_D16(0), KP_D16(16), KP_D16(32))
KP_WGMMA(128, KP_R64, "%64", "%65", "%66", KP_D64(0))
KP_WGMMA(192, KP_R96, "%96", "%97", "%98", KP_D64(0), KP_D16(64), KP_D16(80))
KP_WGMMA(256, KP_R128, "%128", "%129", "%130", KP_D64(0), KP_D64(64))
#undef KP_WGMMA
#undef KP_R128
#undef KP_R96
#undef KP_R64
#undef KP_R48
#undef KP_R32
#undef KP_R16
#undef KP_D64
#undef KP_D16
#undef KP_D8
/* clang-format on */

} // namespace kp
