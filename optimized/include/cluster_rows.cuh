/* cluster_rows.cuh: rows that are reduced, then mapped, by a cluster that holds them (sm_90a).
 *
 * Each block of a cluster reads its part of a row into registers, publishes what its warps have
 * found to the others, and writes its part when it has all of theirs. Nothing is fetched ahead:
 * while some clusters wait at this barrier, others read and write, as blocks follow each other. So
 * what the chip has under way lies in few rows, close together in memory, and what one block waits
 * for never queues behind its own next reads. Rows go to the clusters that are free: where each
 * takes every so manyth row, the slowest makes the others wait at the end.
 * Floor: 8 bytes a value over the copy bandwidth. Reaches 97 to 98 % of it (crfm_softmax, l1_039).
 * Long rows of whole pieces take drawn_rows.cuh.
 *
 * Rows lie in blocks as in row_ring.cuh, FOURS float4 a thread: they may begin anywhere, if the Op,
 * one of row_ops.cuh, has a NEUTRAL value. Its State has 8 or 16 bytes. */
#pragma once
#include <type_traits>
#include "cluster_words.cuh"
#include "row_ops.cuh"
#include "row_ring.cuh"

namespace kp {

/* A block's shared memory. */
template <class State, int STATES> struct ClusterStates {
    alignas(16) State told[STATES]; /* of the warps of the cluster */
    uint64_t all_told;              /* the barrier at which they count */
};

/* The blocks that share a multiprocessor: each thread has registers for its FOURS and 32 more. */
template <int THREADS, int FOURS> constexpr int blocks_that_hold() {
    return (FOURS <= 8 ? 1024 : 512) / THREADS;
}

/* The state of a warp's values, which an Op that Keeps something changes. */
template <class Op, int N>
__device__ __forceinline__ typename Op::State warp_state(float4 (&v)[N]) {
    if constexpr (std::is_base_of<Keeps, Op>::value) {
        return Op::keep(v);
    } else {
        typename Op::State s = Op::none();
        Op::take(s, v);
        return warp_join<Op>(s);
    }
}

/* What the state `all` of a row of `columns` means, for the warp whose state is `mine`. */
template <class Op>
__device__ __forceinline__ typename Op::Row row_of(const Op &op, typename Op::State all,
                                                   typename Op::State mine, int columns) {
    if constexpr (std::is_base_of<Keeps, Op>::value)
        return op.row(all, mine);
    else
        return op.row(all, columns);
}

/* Tells the warp's state to the blocks of the cluster, and returns that of all their warps. Lanes'
 * states may differ in rounding, from lane to lane the same in every run. */
template <class Op, int BLOCKS, int WARPS>
__device__ __forceinline__ typename Op::State
tell_cluster(typename Op::State s, ClusterStates<typename Op::State, BLOCKS * WARPS> &memory) {
    using State = typename Op::State;
    using Words = typename std::conditional<sizeof(State) == 8, float2, float4>::type;
    static_assert(sizeof(State) == sizeof(Words) && BLOCKS * WARPS % 32 == 0,
                  "whole lanes of two or four words");
    const uint32_t bar = shared_address(&memory.all_told);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    Words words;
    memcpy(&words, &s, sizeof words);
    if (lane < BLOCKS) {
        const uint32_t to = shared_address(&memory.told[cluster_rank() * WARPS + warp]);
        store_words(address_in_block(to, lane), words, address_in_block(bar, lane));
    }
    bar_wait(bar, 0);
    s = Op::none();
#pragma unroll
    for (int i = lane; i < BLOCKS * WARPS; i += 32) {
        State t;
        memcpy(&t, &memory.told[i], sizeof t);
        s = Op::join(s, t);
    }
    return warp_join<Op>(s);
}

/* Grid: a cluster of BLOCKS blocks a row. */
template <int COLUMNS, int THREADS, int FOURS, class Op>
__global__ void __launch_bounds__(THREADS, (blocks_that_hold<THREADS, FOURS>()))
    cluster_rows_kernel(Op op, const float *__restrict__ x, float *__restrict__ y) {
    using Own = Owned<COLUMNS, THREADS, FOURS>;
    constexpr int BLOCKS = Own::S::BLOCKS, WARPS = THREADS / 32;
    using Memory = ClusterStates<typename Op::State, BLOCKS * WARPS>;
    extern __shared__ __align__(16) unsigned char cluster_rows_memory[];
    auto &memory = *(Memory *)cluster_rows_memory;
    const Own own(blockIdx.x / BLOCKS, cluster_rank());
    if (threadIdx.x == 0) {
        bar_init(shared_address(&memory.all_told), 1);
        bar_init_done();
        bar_expect(shared_address(&memory.all_told), sizeof memory.told);
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
    const auto mine = warp_state<Op>(v);
    const auto row = row_of<Op>(op, tell_cluster<Op, BLOCKS, WARPS>(mine, memory), mine, COLUMNS);
#pragma unroll
    for (int j = 0; j < Own::OWN; j++) {
        const auto f = op.mapper(row, 4 * (own.first + j * Own::S::WIDTH));
        if (own.has(j)) own.store(y, j, make_float4(f(v[j].x), f(v[j].y), f(v[j].z), f(v[j].w)));
    }
}

/* Enqueues y = x mapped by its rows, [ROWS][COLUMNS]. Both are aligned to 16 bytes. */
template <int ROWS, int COLUMNS, int THREADS, int FOURS = RING_FOURS, class Op>
static void cluster_rows(cudaStream_t stream, const Op &op, const float *x, float *y) {
    using S = Slices<COLUMNS, THREADS, FOURS>;
    constexpr int BLOCKS = S::BLOCKS;
    static_assert(BLOCKS <= 16,
                  "a cluster that Hopper can run; others with clusters have 8 blocks");
    static_assert((long long)ROWS * COLUMNS % 4 == 0, "the tensor is whole float4");
    static_assert(S::WHOLE || Op::NEUTRAL == Op::NEUTRAL,
                  "rows are whole slices, or there is a neutral value");
    const auto kernel = cluster_rows_kernel<COLUMNS, THREADS, FOURS, Op>;
    if (BLOCKS > 8) cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = BLOCKS;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(ROWS * BLOCKS);
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = sizeof(ClusterStates<typename Op::State, BLOCKS * THREADS / 32>);
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, kernel, op, x, y);
}

} // namespace kp
