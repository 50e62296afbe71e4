/* cluster_softmax.cuh: softmax over rows that fit on chip when a cluster shares one (sm_90).
 *
 * Every block of a cluster holds its part of a row in registers, while its shared memory fills with
 * the same part of the cluster's next row: each value is read once, and reads go on while others
 * are written. The blocks take turns at a row's float4, THREADS each, so that what the cluster has
 * in flight lies side by side in memory, as DRAM likes it. Half of the next row is asked for before
 * the blocks have met, the rest as results leave: a longer queue of reads would delay the meeting.
 * A thread copies only what it will itself read, so that its own wait is enough. A warp takes
 * exponentials relative to its own maximum and tells maximum and sum to all warps of the cluster:
 * one cluster barrier a row. */
#pragma once
#include <math_constants.h>
#include "async.cuh"
#include "reduce.cuh"

/* This block's position in its cluster. */
__device__ __forceinline__ unsigned cluster_rank() {
    unsigned r;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}

/* All threads of all blocks of the cluster meet; what they stored before is seen after. */
__device__ __forceinline__ void cluster_meet() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n\t"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

/* Stores `v` where `to` lies, but in the shared memory of block `rank` of the cluster. */
__device__ __forceinline__ void store_remote(float2 *to, unsigned rank, float2 v) {
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("mapa.shared::cluster.u32 %0, %0, %1;\n\t"
                 "st.shared::cluster.v2.f32 [%0], {%2, %3};"
                 : "+r"(at)
                 : "r"(rank), "f"(v.x), "f"(v.y)
                 : "memory");
}

/* What all warps of the cluster found: the largest `top`, and the sums relative to it. Every lane
 * gets them. */
template <int STATES> __device__ __forceinline__ float2 join_states(const float2 *state) {
    const int lane = threadIdx.x % 32;
    float top = -CUDART_INF_F, sum = 0;
#pragma unroll
    for (int i = lane; i < STATES; i += 32) top = fmaxf(top, state[i].x);
    top = warp_reduce(top, Max());
#pragma unroll
    for (int i = lane; i < STATES; i += 32) sum += state[i].y * expf(state[i].x - top);
    return make_float2(top, warp_reduce(sum, Add()));
}

/* Grid: as many clusters as run at once; each takes every so manyth row. */
template <int COLUMNS, int CLUSTER, int THREADS>
__global__ void __launch_bounds__(THREADS, 1)
    cluster_softmax_kernel(const float *__restrict__ x, float *__restrict__ y, int rows) {
    constexpr int FOURS = COLUMNS / CLUSTER / 4 / THREADS, BATCH = 4, BATCHES = FOURS / BATCH;
    constexpr int EARLY = BATCHES / 2 * BATCH, WARPS = THREADS / 32, STATES = CLUSTER * WARPS;
    static_assert(COLUMNS % (CLUSTER * THREADS * BATCH * 4) == 0, "whole batches");
    static_assert(STATES % 32 == 0 && CLUSTER <= 32, "whole lanes");
    extern __shared__ float4 next[];    /* [FOURS][THREADS] */
    __shared__ float2 state[2][STATES]; /* maximum and sum of a warp; of two rows in turn */
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const unsigned rank = cluster_rank();
    constexpr int WIDTH = CLUSTER * THREADS; /* float4 from one of a thread's to its next */
    const long long part = rank * THREADS + threadIdx.x;
    const int clusters = gridDim.x / CLUSTER;
    const float4 *in; /* of the row that is copied */
    auto copy = [&](int j) { copy_async(&next[j * THREADS + threadIdx.x], in + j * WIDTH); };

    int row = blockIdx.x / CLUSTER, odd = 0;
    in = (const float4 *)x + (long long)row * (COLUMNS / 4) + part;
#pragma unroll
    for (int j = 0; j < FOURS; j++) {
        if (row < rows) copy(j);
        if (j % BATCH == BATCH - 1) copy_commit();
    }
    cluster_meet(); /* all blocks run: their shared memory may be written */
    for (; row < rows; row += clusters, odd ^= 1) {
        const bool more = row + clusters < rows;
        in += (long long)clusters * (COLUMNS / 4);
        float4 v[FOURS];
        float top = -CUDART_INF_F;
#pragma unroll
        for (int j = 0; j < FOURS; j++) {
            if (j % BATCH == 0) copy_wait(BATCHES - 1 - j / BATCH);
            v[j] = next[j * THREADS + threadIdx.x];
            top = fmaxf(top, fmaxf(fmaxf(v[j].x, v[j].y), fmaxf(v[j].z, v[j].w)));
            if (more && j < EARLY) copy(j);
        }
        top = warp_reduce(top, Max());
        const float origin = top == -CUDART_INF_F ? 0.0f : top; /* -inf - -inf is no number */
        float sum = 0;
#pragma unroll
        for (int j = 0; j < FOURS; j++) {
            v[j] = make_float4(expf(v[j].x - origin), expf(v[j].y - origin), expf(v[j].z - origin),
                               expf(v[j].w - origin));
            sum += (v[j].x + v[j].y) + (v[j].z + v[j].w);
        }
        sum = warp_reduce(sum, Add());
        if (lane < CLUSTER)
            store_remote(&state[odd][rank * WARPS + warp], lane, make_float2(top, sum));
        cluster_meet();
        const float2 all = join_states<STATES>(state[odd]);
        const float factor = expf(top - all.x) / all.y;
        float4 *out = (float4 *)y + (long long)row * (COLUMNS / 4) + part;
#pragma unroll
        for (int j = 0; j < FOURS; j++) {
            out[j * WIDTH] =
                make_float4(v[j].x * factor, v[j].y * factor, v[j].z * factor, v[j].w * factor);
            if (more && j >= EARLY) copy(j);
            if (j % BATCH == BATCH - 1) copy_commit();
        }
    }
}

/* Enqueues the softmax of each of `rows` rows, a cluster of CLUSTER blocks a row. */
template <int COLUMNS, int CLUSTER, int THREADS>
static void cluster_softmax(const float *x, float *y, int rows, cudaStream_t stream) {
    const auto kernel = cluster_softmax_kernel<COLUMNS, CLUSTER, THREADS>;
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = CLUSTER;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(CLUSTER);
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = COLUMNS / CLUSTER * sizeof(float);
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = 1;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         (int)config.dynamicSmemBytes);
    int clusters = 0;
    cudaOccupancyMaxActiveClusters(&clusters, kernel, &config);
    config.gridDim = dim3((clusters < 1 ? 1 : clusters) * CLUSTER);
    cudaLaunchKernelEx(&config, kernel, x, y, rows);
}
