/* layer_norm_sm90.cuh: layer norm of few, very long rows that reads little of x twice (sm_90: 227
 * KB of shared memory).
 *
 * A block owns a slice of the columns, in all rows, and keeps its weight and bias in shared memory.
 * Two teams of its threads take rows in turn: while one waits for the sums of all blocks, the other
 * reads or writes, so that memory is never idle. A team holds half of its row in registers, which
 * fill with its next row as they are written out, and finds the other half, which it has just read,
 * in the L2 cache.
 * Reaches 82 % of the bytes' floor (l1_040, crfm_layernorm). Spills 12 bytes a thread (stored and
 * loaded). */
#pragma once
#include "layer_norm.cuh"

constexpr int SLICES = 128; /* blocks; all have to run at once */
constexpr int TEAM = 512;   /* threads that share a row of the slice */
constexpr int KEPT = 14; /* float4 of weight and of bias a thread that shared memory has room for */
constexpr int HELD = 8;  /* float4 of x a thread that registers hold */
constexpr int IN = 4, OUT = 2; /* float4 of the others that are read at a time, and read again */

/* Barriers: of each team, and the one at which weight and bias are there. */
constexpr int OF_TEAM = 1, KEPT_IS_THERE = 3;
__device__ __forceinline__ void meet(int team) {
    asm volatile("bar.sync %0, %1;" ::"r"(OF_TEAM + team), "n"(TEAM) : "memory");
}

__device__ __forceinline__ Moments warp_moments(const Moments &m) {
    return {warp_reduce(m.sum, Add()), warp_reduce(m.square, Add())};
}

/* What the blocks tell each other: the moments of each slice of each row, and of how many slices
 * they are there. */
template <int ROWS> struct Told {
    Moments part[ROWS][SLICES];
    unsigned count[ROWS];
};

/* Mean and scale of a row of COUNT values, from what the threads of this team have summed of it and
 * what the other blocks tell. All threads of the team call it. */
template <int COUNT>
__device__ __forceinline__ Standard join_row(Moments m, Moments *part, unsigned *count, int team,
                                             double eps) {
    __shared__ Moments of_warp[2][TEAM / 32];
    __shared__ Standard standard_of[2];
    const int warp = threadIdx.x % TEAM / 32, lane = threadIdx.x % 32;
    m = warp_moments(m);
    if (lane == 0) of_warp[team][warp] = m;
    meet(team);
    if (warp == 0) {
        unsigned n;
        m = lane < TEAM / 32 ? of_warp[team][lane] : Moments{0, 0};
        m = warp_moments(m);
        if (lane == 0) {
            part[blockIdx.x] = m;
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(count) : "memory");
        }
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(n) : "l"(count) : "memory");
        while (n < SLICES);
        m = {0, 0};
        for (int i = lane; i < SLICES; i += 32) {
            const double2 p = __ldcg((const double2 *)&part[i]);
            m = m + Moments{p.x, p.y};
        }
        m = warp_moments(m);
        if (lane == 0) standard_of[team] = standard(m, COUNT, eps);
    }
    meet(team);
    return standard_of[team];
}

/* Grid: SLICES blocks, all at once. A thread has FOURS float4 of a row. */
template <int ROWS, int FOURS>
__global__ void __launch_bounds__(2 * TEAM, 1)
    layer_norm_once_kernel(const float4 *__restrict__ x, const float4 *__restrict__ weight,
                           const float4 *__restrict__ bias, float4 *__restrict__ y,
                           Told<ROWS> *told, double eps) {
    constexpr int REST = FOURS - HELD, ROW = SLICES * FOURS * TEAM, COUNT = 4 * ROW;
    static_assert(REST % IN == 0 && REST % OUT == 0, "whole batches");
    static_assert(FOURS >= KEPT, "what is kept of weight and bias is the slice's");
    extern __shared__ float4 kept[]; /* weight[KEPT][TEAM], bias[KEPT][TEAM] */
    const int team = threadIdx.x / TEAM, thread = threadIdx.x % TEAM;
    const int slice = blockIdx.x * (FOURS * TEAM) + thread;
    if (team == 1) { /* while the other reads its first row */
#pragma unroll
        for (int j = 0; j < KEPT; j++) {
            kept[j * TEAM + thread] = __ldcs(weight + slice + j * TEAM);
            kept[(KEPT + j) * TEAM + thread] = __ldcs(bias + slice + j * TEAM);
        }
        asm volatile("bar.arrive %0, %1;" ::"n"(KEPT_IS_THERE), "n"(2 * TEAM) : "memory");
    }
    float4 v[HELD];
#pragma unroll
    for (int j = 0; j < HELD; j++) v[j] = __ldcs(x + (team * ROW + slice) + j * TEAM);
#pragma unroll 1
    for (int r = team; r < ROWS; r += 2) {
        const unsigned at = (unsigned)(r * ROW + slice); /* 32 bits: registers are scarce */
        Moments m = {0, 0};
        take(m, v);
#pragma unroll
        for (int k = HELD; k < FOURS; k += IN) {
            float4 u[IN];
#pragma unroll
            for (int j = 0; j < IN; j++) u[j] = __ldcg(x + (at + (k + j) * TEAM));
            take(m, u);
        }
        const Standard s = join_row<COUNT>(m, told->part[r], &told->count[r], team, eps);
        if (r == 0) asm volatile("bar.sync %0, %1;" ::"n"(KEPT_IS_THERE), "n"(2 * TEAM) : "memory");
        auto put = [&](int j, float4 value) {
            const float4 w = j < KEPT ? kept[j * TEAM + thread] : __ldg(weight + slice + j * TEAM);
            const float4 b =
                j < KEPT ? kept[(KEPT + j) * TEAM + thread] : __ldg(bias + slice + j * TEAM);
            __stcs(y + (at + j * TEAM), normalize(value, s, w, b));
        };
#pragma unroll
        for (int k = FOURS - OUT; k >= HELD; k -= OUT) { /* what was read last, first */
            float4 u[OUT];
#pragma unroll
            for (int j = 0; j < OUT; j++) u[j] = __ldcs(x + (at + (k + j) * TEAM));
#pragma unroll
            for (int j = 0; j < OUT; j++) put(k + j, u[j]);
        }
#pragma unroll
        for (int j = 0; j < HELD; j++) {
            put(j, v[j]);
            if (r + 2 < ROWS) v[j] = __ldcs(x + (at + 2 * ROW + j * TEAM)); /* of the next row */
        }
    }
}

/* Bytes of scratch that layer_norm_once() needs. */
template <int ROWS, int COLUMNS> static inline size_t layer_norm_once_scratch(void) {
    const size_t plain = layer_norm_scratch(ROWS, COLUMNS);
    return sizeof(Told<ROWS>) > plain ? sizeof(Told<ROWS>) : plain;
}

/* Enqueues the layer norm of ROWS rows of COLUMNS values each. A GPU that has too few
 * multiprocessors for it takes layer_norm(). */
template <int ROWS, int COLUMNS>
static void layer_norm_once(const float *x, const float *weight, const float *bias, float *y,
                            double eps, void *scratch, cudaStream_t stream) {
    constexpr int FOURS = COLUMNS / 4 / SLICES / TEAM, SHARED = 2 * KEPT * TEAM * sizeof(float4);
    static_assert(COLUMNS == FOURS * 4 * SLICES * TEAM && ROWS >= 2, "whole slices");
    static_assert(COLUMNS < 1 << 26, "what layer_norm() can do");
    int device = 0, processors = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (processors < SLICES) {
        layer_norm<ROWS>(x, weight, bias, y, COLUMNS, eps, scratch, stream);
        return;
    }
    const auto kernel = layer_norm_once_kernel<ROWS, FOURS>;
    Told<ROWS> *told = (Told<ROWS> *)scratch;
    void *arguments[] = {&x, &weight, &bias, &y, &told, &eps};
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
    cudaMemsetAsync(told->count, 0, sizeof told->count, stream);
    cudaLaunchCooperativeKernel((const void *)kernel, dim3(SLICES), dim3(2 * TEAM), arguments,
                                SHARED, stream);
}
