/* cluster_rows.cuh: rows that are reduced, then mapped, by a cluster that holds them (sm_90a).
 *
 * Each block of a cluster reads its part of a row into registers, tells the others what its warps
 * have found, and writes its part when it has heard all. Nothing is fetched ahead: while some
 * clusters meet, others read and write, as blocks follow each other. So what the chip has under way
 * lies in few rows, close together in memory, and what one block waits for never queues behind its
 * own next reads. Floor: 8 bytes a value over the copy bandwidth.
 *
 * Rows lie in blocks as in row_ring.cuh: they may begin anywhere. The Op is one of row_ops.cuh,
 * whose State has 8 bytes and which has a NEUTRAL value. */
#pragma once
#include "cluster_words.cuh"
#include "row_ring.cuh"

namespace kp {

/* A block's shared memory. */
template <int STATES> struct ClusterStates {
    float2 told[STATES]; /* of the warps of the cluster; each is a State */
    uint64_t all_told;   /* the barrier at which they count */
};

/* Grid: a cluster of BLOCKS blocks a row. */
template <int COLUMNS, int THREADS, class Op>
__global__ void __launch_bounds__(THREADS, 1024 / THREADS)
    cluster_rows_kernel(Op op, const float *__restrict__ x, float *__restrict__ y) {
    using Own = Owned<COLUMNS, THREADS>;
    using State = typename Op::State;
    constexpr int BLOCKS = Own::S::BLOCKS, WARPS = THREADS / 32, STATES = BLOCKS * WARPS;
    static_assert(sizeof(State) == sizeof(float2) && STATES % 32 == 0, "whole lanes of pairs");
    extern __shared__ __align__(16) unsigned char cluster_rows_memory[];
    auto &memory = *(ClusterStates<STATES> *)cluster_rows_memory;
    const uint32_t bar = shared_address(&memory.all_told);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, rank = cluster_rank();
    const Own own(blockIdx.x / BLOCKS, rank);
    if (threadIdx.x == 0) {
        bar_init(bar, 1);
        bar_init_done();
        bar_expect(bar, sizeof memory.told);
    }
    const float4 *from = (const float4 *)x + own.first;
    constexpr float none = Op::NEUTRAL;
    float4 v[Own::OWN];
#pragma unroll
    for (int j = 0; j < Own::OWN; j++) {
        v[j] = make_float4(none, none, none, none);
        if (own.has(j)) v[j] = __ldg(from + j * Own::S::WIDTH);
    }
    cluster_sync(); /* all blocks run, with their barriers */
#pragma unroll
    for (int j = 0; j < Own::OWN; j++)
        if (!own.has_all(j)) v[j] = own.only(j, v[j], none);
    State s = Op::none();
    Op::take(s, v);
    s = warp_join<Op>(s);
    float2 words;
    memcpy(&words, &s, sizeof words);
    if (lane < BLOCKS)
        store_words(address_in_block(shared_address(&memory.told[rank * WARPS + warp]), lane),
                    words, address_in_block(bar, lane));
    bar_wait(bar, 0);
    s = Op::none();
#pragma unroll
    for (int i = lane; i < STATES; i += 32) {
        State t;
        memcpy(&t, &memory.told[i], sizeof t);
        s = Op::join(s, t);
    }
    const auto row = op.row(warp_join<Op>(s), COLUMNS);
#pragma unroll
    for (int j = 0; j < Own::OWN; j++) {
        const auto f = op.mapper(row, 4 * (own.first + j * Own::S::WIDTH));
        if (own.has(j)) own.store(y, j, make_float4(f(v[j].x), f(v[j].y), f(v[j].z), f(v[j].w)));
    }
}

/* Enqueues y = x mapped by its rows, [ROWS][COLUMNS]. Both are aligned to 16 bytes. */
template <int ROWS, int COLUMNS, int THREADS, class Op>
static void cluster_rows(cudaStream_t stream, const Op &op, const float *x, float *y) {
    constexpr int BLOCKS = Slices<COLUMNS, THREADS>::BLOCKS, STATES = BLOCKS * THREADS / 32;
    static_assert(BLOCKS <= 8, "a cluster that any GPU with clusters can run");
    static_assert((long long)ROWS * COLUMNS % 4 == 0, "the tensor is whole float4");
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = BLOCKS;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(ROWS * BLOCKS);
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = sizeof(ClusterStates<STATES>);
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, cluster_rows_kernel<COLUMNS, THREADS, Op>, op, x, y);
}

} // namespace kp
