/* row_passes.cuh: rows that are reduced, then mapped; read twice.
 *
 * One kernel takes the states of chunks in the order of memory, a small one joins those of a row,
 * a third maps the tensor from its end, which may still be in the L2 cache, to its beginning, as
 * map.cuh does. The floor is 4 bytes a value over the reading bandwidth and 8 over that of copies:
 * for rows larger than the chip, or where row_ring.cuh finds too few multiprocessors. Reaches 101 %
 * of it, 69 % of the task's, which reads once (l1_033).
 *
 * The tensor is [SEGMENTS][ROWS][RUN] floats; row r is what has r as its middle index: batch norm's
 * channel, or with one segment a plain row. The Op is one of row_ops.cuh; without a NEUTRAL value
 * it needs runs of whole chunks. */
#pragma once
#include "states.cuh"

namespace kp {

constexpr int PASS_THREADS = 256, PASS_FOURS = 8;        /* float4 a thread, all in flight */
constexpr int PASS_STEP = PASS_THREADS * PASS_FOURS * 4; /* values that a block takes at a time */
constexpr int PASS_JOIN_THREADS = 512;
constexpr int PASS_MAP_THREADS = 128, PASS_MAP_TILE = PASS_MAP_THREADS * 4;

/* The chunks of a run: as long as the run is whole chunks, up to four steps. */
template <long long RUN> struct Chunks {
    static constexpr int STEPS = RUN % (4 * PASS_STEP) == 0   ? 4
                                 : RUN % (2 * PASS_STEP) == 0 ? 2
                                                              : 1;
    static constexpr int SIZE = STEPS * PASS_STEP, COUNT = (int)((RUN + SIZE - 1) / SIZE);
    static constexpr bool WHOLE = RUN % SIZE == 0;
    static constexpr int TILES = (int)((RUN + PASS_MAP_TILE - 1) / PASS_MAP_TILE); /* of the map */
};

/* Four values of a run that begins at `run`, from place `at`; `beyond` stands for what is past its
 * end. */
template <long long RUN>
__device__ __forceinline__ float4 read_four(const float *run, long long at, float beyond) {
    if (RUN % 4 == 0 && at < RUN) return __ldg((const float4 *)(run + at));
    float v[4];
#pragma unroll
    for (int e = 0; e < 4; e++) v[e] = at + e < RUN ? __ldg(run + at + e) : beyond;
    return make_float4(v[0], v[1], v[2], v[3]);
}

/* part[run][chunk] = the state of a chunk. */
template <long long RUN, class Op>
__global__ void __launch_bounds__(PASS_THREADS, 1)
    chunk_states_kernel(const float *__restrict__ x, typename Op::State *__restrict__ part) {
    using C = Chunks<RUN>;
    const float *run = x + blockIdx.x / C::COUNT * RUN;
    const long long first = (long long)(blockIdx.x % C::COUNT) * C::SIZE + threadIdx.x * 4;
    typename Op::State s = Op::none();
#pragma unroll 1
    for (int i = 0; i < C::SIZE; i += PASS_STEP) {
        float4 v[PASS_FOURS];
#pragma unroll
        for (int j = 0; j < PASS_FOURS; j++) {
            const long long at = first + i + j * (PASS_THREADS * 4);
            v[j] =
                C::WHOLE ? __ldg((const float4 *)(run + at)) : read_four<RUN>(run, at, Op::NEUTRAL);
        }
        Op::take(s, v);
    }
    s = block_join<Op, PASS_THREADS>(s);
    if (threadIdx.x == 0) part[blockIdx.x] = s;
}

/* row[r] = what the states of its chunks mean. A block a row. */
template <int ROWS, int SEGMENTS, long long RUN, class Op>
__global__ void __launch_bounds__(PASS_JOIN_THREADS)
    join_chunks_kernel(Op op, const typename Op::State *__restrict__ part,
                       typename Op::Row *__restrict__ row) {
    using C = Chunks<RUN>;
    typename Op::State s = Op::none();
#pragma unroll 4
    for (int i = threadIdx.x; i < SEGMENTS * C::COUNT; i += PASS_JOIN_THREADS)
        s = Op::join(s, part[(i / C::COUNT * ROWS + blockIdx.x) * C::COUNT + i % C::COUNT]);
    s = block_join<Op, PASS_JOIN_THREADS>(s);
    if (threadIdx.x == 0) row[blockIdx.x] = op.row(s, (double)SEGMENTS * RUN);
}

/* y = x mapped, from the end to the beginning. */
template <int ROWS, long long RUN, class Op>
__global__ void __launch_bounds__(PASS_MAP_THREADS)
    map_rows_kernel(Op op, const float *__restrict__ x, const typename Op::Row *__restrict__ row,
                    float *__restrict__ y) {
    using C = Chunks<RUN>;
    const unsigned tile = gridDim.x - 1 - blockIdx.x, run = tile / C::TILES;
    const long long at = (long long)(tile % C::TILES) * PASS_MAP_TILE + threadIdx.x * 4;
    const long long place = run * RUN + at;
    if (RUN % PASS_MAP_TILE != 0 && at >= RUN) return;
    if constexpr (RUN % 4 == 0) {
        const float4 v = __ldg((const float4 *)x + place / 4);
        const auto f = op.mapper(row[run % ROWS], place);
        ((float4 *)y)[place / 4] = make_float4(f(v.x), f(v.y), f(v.z), f(v.w));
    } else {
        const auto f = op.mapper(row[run % ROWS], place);
        for (int e = 0; e < 4 && at + e < RUN; e++) y[place + e] = f(x[place + e]);
    }
}

/* Bytes of scratch that row_passes() needs. */
template <int ROWS, int SEGMENTS, long long RUN, class Op> constexpr size_t row_passes_scratch() {
    using C = Chunks<RUN>;
    return (size_t)ROWS * SEGMENTS * C::COUNT * sizeof(typename Op::State) +
           ROWS * sizeof(typename Op::Row);
}

/* Enqueues y = x mapped by its rows; both are aligned to 16 bytes. */
template <int ROWS, int SEGMENTS, long long RUN, class Op>
static void row_passes(cudaStream_t stream, const Op &op, const float *x, float *y, void *scratch) {
    using C = Chunks<RUN>;
    constexpr long long chunks = (long long)ROWS * SEGMENTS * C::COUNT;
    constexpr long long tiles = (long long)ROWS * SEGMENTS * C::TILES;
    static_assert(tiles < 1LL << 31, "at most 2^31 blocks");
    static_assert(C::WHOLE || Op::NEUTRAL == Op::NEUTRAL,
                  "runs are whole chunks, or there is a neutral value");
    auto *part = (typename Op::State *)scratch;
    auto *row = (typename Op::Row *)(part + chunks);
    chunk_states_kernel<RUN, Op><<<(unsigned)chunks, PASS_THREADS, 0, stream>>>(x, part);
    join_chunks_kernel<ROWS, SEGMENTS, RUN><<<ROWS, PASS_JOIN_THREADS, 0, stream>>>(op, part, row);
    map_rows_kernel<ROWS, RUN><<<(unsigned)tiles, PASS_MAP_THREADS, 0, stream>>>(op, x, row, y);
}

} // namespace kp
