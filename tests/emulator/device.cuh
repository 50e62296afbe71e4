/* device.cuh: CUDA's device language for g++, as far as kernels of optimized/ use it
 * (tests/emulate).
 *
 * A thread is a fiber (fibers.cpp). It runs until it waits: at a barrier, or for the lanes that it
 * names in a shuffle or a vote. Memory is the host's; shared memory begins as NaN. */
#pragma once
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <functional>
#include <map>
#include <type_traits>
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>

namespace emulator {

/* What stands between <<< and >>>. */
struct Config {
    dim3 grid, block;
    size_t shared;
    Config(dim3 g, dim3 b, size_t s = 0, cudaStream_t = 0) : grid(g), block(b), shared(s) {}
};
void launch(const Config &c, const std::function<void()> &kernel);
extern int cluster_size;  /* of the next launch: blocks that run at once */
extern int cluster_width; /* and of a cluster, if those are several */

/* Lanes of a warp that name the same mask: what they hand over, this time and the next. */
struct Group {
    int arrived = 0, gen = 0;
    unsigned char value[2][32][16];
    bool active[2][32];
};
struct Warp {
    std::map<unsigned, Group> groups;
};
struct Barrier {
    int arrived = 0, gen = 0; /* gen: how often it was complete */
};
struct Block {
    uint3 index;
    int rank = 0, live = 0, threads = 0;
    Warp *warps;
    Barrier all;
    int votes[2] = {0, 0};
    int registers = 0, chose = 0; /* wanted beyond those of the launch, by so many threads */
    char *shared = nullptr;
    size_t shared_bytes = 0;
};
struct Thread {
    Block *block;
    uint3 index;
    int linear, lane;
    const int *wait_on = nullptr;
    int wait_value = 0;
    const char *where = "";
    bool done = false;
};
extern Thread *self;
extern dim3 grid_dim __asm__("gridDim"), block_dim
    __asm__("blockDim"); /* what CUDA declares const */

[[noreturn]] void fail(const char *what, int number = 0);
void *shared_memory();                                        /* the block's dynamic one */
void wait_change(const int *p, int value, const char *where); /* until *p != value */
void yield();                                                 /* let others run */
void nap();                                                   /* the same, and nothing was done */
void barrier(Barrier &b, int count, const char *where);       /* until `count` have come */
void sync_all();                                              /* __syncthreads */
int sync_vote(int v);                                         /* and the sum of v */
/* Work that happens as late as it may: when nobody can run. */
void later_copy(uint32_t to, const void *from, int bytes); /* from NULL: zeros */
void later_event(std::function<void()> f);                 /* after all copies so far */
extern int cluster_live;

/* v of lane `from`; the own one if that lane is not among those of the mask. */
template <class T> T exchange(unsigned mask, T v, int from) {
    static_assert(sizeof(T) <= 16, "");
    Group &g = self->block->warps[self->linear / 32].groups[mask];
    const int slot = g.gen & 1, gen = g.gen;
    if (!(mask >> self->lane & 1)) {
        fail("a lane is not in its mask");
    }
    if (g.arrived == 0) memset(g.active[slot], 0, sizeof g.active[slot]);
    memcpy(g.value[slot][self->lane], &v, sizeof v);
    g.active[slot][self->lane] = true;
    if (++g.arrived == __builtin_popcount(mask))
        g.arrived = 0, g.gen++;
    else
        wait_change(&g.gen, gen, "warp");
    T r = v;
    if (g.active[slot][from & 31]) memcpy(&r, g.value[slot][from & 31], sizeof r);
    return r;
}
/* f over what all lanes of the mask hand over. */
template <class F> unsigned collect(unsigned mask, int v, F f) {
    Group &g = self->block->warps[self->linear / 32].groups[mask];
    const int slot = g.gen & 1;
    exchange(mask, v, self->lane);
    unsigned r = 0;
    for (int i = 0; i < 32; i++)
        if (g.active[slot][i]) {
            int x;
            memcpy(&x, g.value[slot][i], 4);
            f(r, x, i);
        }
    return r;
}
} // namespace emulator
inline dim3 &gridDim = emulator::grid_dim, &blockDim = emulator::block_dim;

#undef __shared__
#define __shared__ static
#undef __global__
#define __global__
#undef __device__
#define __device__
#undef __host__
#define __host__
#undef __constant__
#define __constant__
#undef __forceinline__
#define __forceinline__ inline
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __cluster_dims__
#define __cluster_dims__(...)
#undef __grid_constant__
#define __grid_constant__
#define threadIdx (emulator::self->index)
#define blockIdx  (emulator::self->block->index)
#define warpSize  32

inline void __syncthreads() {
    emulator::sync_all();
}
inline int __syncthreads_or(int v) {
    return emulator::sync_vote(v != 0) > 0;
}
inline int __syncthreads_count(int v) {
    return emulator::sync_vote(v != 0);
}
inline int __syncthreads_and(int v) {
    return emulator::sync_vote(v == 0) == 0;
}
inline void __syncwarp(unsigned mask = ~0u) {
    emulator::exchange(mask, 0, emulator::self->lane);
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __nanosleep(unsigned) {
    emulator::nap();
}
template <class T> T __shfl_sync(unsigned m, T v, int from, int width = 32) {
    return emulator::exchange(m, v, (emulator::self->lane & ~(width - 1)) | (from & (width - 1)));
}
template <class T> T __shfl_xor_sync(unsigned m, T v, int x, int width = 32) {
    const int from = emulator::self->lane ^ x;
    return emulator::exchange(
        m, v, from / width == emulator::self->lane / width ? from : emulator::self->lane);
}
template <class T> T __shfl_up_sync(unsigned m, T v, int d, int width = 32) {
    const int from = emulator::self->lane - d;
    return emulator::exchange(
        m, v, from >= (emulator::self->lane & ~(width - 1)) ? from : emulator::self->lane);
}
template <class T> T __shfl_down_sync(unsigned m, T v, int d, int width = 32) {
    const int from = emulator::self->lane + d;
    return emulator::exchange(
        m, v, from <= (emulator::self->lane | (width - 1)) ? from : emulator::self->lane);
}
inline unsigned __ballot_sync(unsigned m, int v) {
    return emulator::collect(m, v != 0, [](unsigned &r, int x, int i) { r |= (unsigned)x << i; });
}
inline int __any_sync(unsigned m, int v) {
    return __ballot_sync(m, v) != 0;
}
inline int __all_sync(unsigned m, int v) {
    return __ballot_sync(m, v) == m;
}
inline unsigned __reduce_add_sync(unsigned m, unsigned v) {
    return emulator::collect(m, (int)v, [](unsigned &r, int x, int) { r += x; });
}
inline unsigned __reduce_max_sync(unsigned m, unsigned v) {
    return emulator::collect(m, (int)v, [](unsigned &r, int x, int) {
        if ((unsigned)x > r) r = x;
    });
}
inline unsigned __reduce_min_sync(unsigned m, unsigned v) {
    return ~emulator::collect(m, (int)~v, [](unsigned &r, int x, int) {
        if ((unsigned)x > r) r = x;
    });
}
inline unsigned __reduce_or_sync(unsigned m, unsigned v) {
    return emulator::collect(m, (int)v, [](unsigned &r, int x, int) { r |= x; });
}
inline unsigned __activemask() {
    return ~0u;
}

template <class T> T __ldg(const T *p) {
    return *p;
}
template <class T> T __ldcs(const T *p) {
    return *p;
}
template <class T> T __ldcg(const T *p) {
    return *p;
}
template <class T> T __ldca(const T *p) {
    return *p;
}
template <class T> T __ldlu(const T *p) {
    return *p;
}
template <class T> T __ldcv(const T *p) {
    return *p;
}
template <class T> void __stcs(T *p, T v) {
    *p = v;
}
template <class T> void __stcg(T *p, T v) {
    *p = v;
}
template <class T> void __stwt(T *p, T v) {
    *p = v;
}
template <class T> void __stwb(T *p, T v) {
    *p = v;
}
template <class T, class U> T atomicAdd(T *p, U v) {
    T o = *p;
    *p = o + (T)v;
    return o;
}
template <class T, class U> T atomicMax(T *p, U v) {
    T o = *p;
    if ((T)v > o) *p = v;
    return o;
}
template <class T, class U> T atomicMin(T *p, U v) {
    T o = *p;
    if ((T)v < o) *p = v;
    return o;
}
template <class T, class U> T atomicExch(T *p, U v) {
    T o = *p;
    *p = v;
    return o;
}
template <class T, class U> T atomicCAS(T *p, U c, U v) {
    T o = *p;
    if (o == (T)c) *p = v;
    return o;
}
inline unsigned atomicInc(unsigned *p, unsigned n) {
    unsigned o = *p;
    *p = o >= n ? 0 : o + 1;
    return o;
}

#define EMULATOR_BITS(NAME, TO, FROM) \
    inline TO NAME(FROM v) {          \
        TO r;                         \
        memcpy(&r, &v, sizeof r);     \
        return r;                     \
    }
EMULATOR_BITS(__float_as_uint, unsigned, float)
EMULATOR_BITS(__uint_as_float, float, unsigned)
EMULATOR_BITS(__float_as_int, int, float)
EMULATOR_BITS(__int_as_float, float, int)
EMULATOR_BITS(__double_as_longlong, long long, double)
EMULATOR_BITS(__longlong_as_double, double, long long)
#undef EMULATOR_BITS
inline float __expf(float x) {
    return expf(x);
}
inline float __logf(float x) {
    return logf(x);
}
inline float __fdividef(float a, float b) {
    return a / b;
}
inline float __frcp_rn(float a) {
    return 1.0f / a;
}
inline float __fsqrt_rn(float a) {
    return sqrtf(a);
}
inline float __frsqrt_rn(float a) {
    return (float)(1.0 / sqrt((double)a));
}
inline float rsqrtf(float a) {
    return (float)(1.0 / sqrt((double)a));
}
inline double rsqrt(double a) {
    return 1.0 / sqrt(a);
}
inline float __fmaf_rn(float a, float b, float c) {
    return fmaf(a, b, c);
}
inline float __fadd_rn(float a, float b) {
    return a + b;
}
inline float __fsub_rn(float a, float b) {
    return a - b;
}
inline float __fmul_rn(float a, float b) {
    return a * b;
}
inline float __fdiv_rn(float a, float b) {
    return a / b;
}
inline float __saturatef(float a) {
    return fminf(fmaxf(a, 0.0f), 1.0f);
}
inline float __int2float_rn(int a) {
    return (float)a;
}
inline int __float2int_rn(float a) {
    return (int)rintf(a);
}
inline int __popc(unsigned v) {
    return __builtin_popcount(v);
}
inline int __clz(int v) {
    return v ? __builtin_clz((unsigned)v) : 32;
}
inline int __ffs(int v) {
    return __builtin_ffs(v);
}
inline unsigned __brev(unsigned v) {
    unsigned r = 0;
    for (int i = 0; i < 32; i++) r |= (v >> i & 1) << (31 - i);
    return r;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)((unsigned long long)a * b >> 32);
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
    const unsigned long long v = (unsigned long long)b << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) r |= (unsigned)(v >> ((s >> (4 * i) & 7) * 8) & 255) << (8 * i);
    return r;
}
inline size_t __cvta_generic_to_shared(const void *p) {
    return (size_t)(uintptr_t)p;
}
inline void *__cvta_shared_to_generic(size_t p) {
    return (void *)(uintptr_t)p;
}
#define EMULATOR_MINMAX(T)    \
    inline T min(T a, T b) {  \
        return b < a ? b : a; \
    }                         \
    inline T max(T a, T b) {  \
        return a < b ? b : a; \
    }
EMULATOR_MINMAX(int)
EMULATOR_MINMAX(unsigned)
EMULATOR_MINMAX(long)
EMULATOR_MINMAX(unsigned long)
EMULATOR_MINMAX(long long)
EMULATOR_MINMAX(unsigned long long)
#undef EMULATOR_MINMAX
    inline float min(float a, float b) {
    return fminf(a, b);
}
inline float max(float a, float b) {
    return fmaxf(a, b);
}
inline double min(double a, double b) {
    return fmin(a, b);
}
inline double max(double a, double b) {
    return fmax(a, b);
}
inline unsigned min(int a, unsigned b) {
    return min((unsigned)a, b);
}
inline unsigned min(unsigned a, int b) {
    return min(a, (unsigned)b);
}
inline unsigned max(int a, unsigned b) {
    return max((unsigned)a, b);
}
inline unsigned max(unsigned a, int b) {
    return max(a, (unsigned)b);
}
inline long long min(int a, long long b) {
    return min((long long)a, b);
}
inline long long min(long long a, int b) {
    return min(a, (long long)b);
}
inline long long max(int a, long long b) {
    return max((long long)a, b);
}
inline long long max(long long a, int b) {
    return max(a, (long long)b);
}
/* The runtime's calls that a launch function makes. */
template <class F> cudaError_t cudaFuncSetAttribute(F *, cudaFuncAttribute, int) {
    return cudaSuccess;
}
template <class F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, F *, int, size_t) {
    *blocks = 1;
    return cudaSuccess;
}
/* Blocks of a cooperative launch run together, as those of a cluster do. */
namespace emulator {
template <class... Parameters, class... Arguments>
cudaError_t launch_by_attributes(const cudaLaunchConfig_t *c, void (*kernel)(Parameters...),
                                 Arguments... arguments) {
    for (unsigned i = 0; i < c->numAttrs; i++) {
        const auto &a = c->attrs[i];
        if (a.id == cudaLaunchAttributeCooperative)
            cluster_size = (int)(c->gridDim.x * c->gridDim.y * c->gridDim.z);
        if (a.id == cudaLaunchAttributeClusterDimension)
            cluster_size = (int)(a.val.clusterDim.x * a.val.clusterDim.y);
    }
    launch({c->gridDim, c->blockDim, c->dynamicSmemBytes}, [=] { kernel(arguments...); });
    return cudaSuccess;
}
} // namespace emulator
#define cudaLaunchKernelEx emulator::launch_by_attributes
