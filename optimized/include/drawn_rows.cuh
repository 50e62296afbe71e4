/* drawn_rows.cuh: rows that are reduced, then mapped, in pieces that multiprocessors draw (sm_90a).
 *
 * Idea: the tensor is pieces of 32 KB, which blocks, one a multiprocessor, draw in the order of
 * memory from a counter. So a multiprocessor that gets less of the memory takes fewer pieces and
 * makes nobody wait, what the chip has under way lies close together, and a block has always asked
 * for as much as it has room for: seven pieces in shared memory, which come by bulk copies, and
 * four in registers. A piece that has come is summed by eight warps; one tells the sum to the other
 * blocks (told_words.cuh); a team of four warps takes the piece into registers, so that its slot is
 * free for the next; another hears what all have told of its row; then the team maps and writes it.
 * Each of these is a role of its own warps, which hand pieces over (pieces.cuh), and none but the
 * one that hears ever looks at memory to wait.
 *
 * Contract: ROWS of COLUMNS floats, whole pieces; an Op of row_ops.cuh, whose NEUTRAL it does not
 * need, with a State of 8 or 16 bytes. Results do not depend on who draws what.
 *
 * It ends: let R be the first row of which not all is told. Of earlier rows all will be mapped. If
 * all of R is drawn, it has slots, and will come, be summed and be told. If not, all that is drawn
 * belongs to R or before it, so that a block that draws no more holds pieces of R alone, as many as
 * it has room for. They are fewer than R has, so there is a block that draws, if only the blocks
 * that run have room for a row together: 24 for rows of 8 MB, one for 256 KB. Others may come when
 * they can, so the launch is not cooperative. A GPU with too few takes row_passes.cuh.
 *
 * Floor: 8 bytes a value over the copy bandwidth. Reaches the speed of a copy of as many bytes:
 * l1_035 took 3646 us on an H200, outside the harness, where a copy took 3637 (in it: 3653). In
 * turns, not drawn: 3912; two teams: 3673; pieces of 16 KB: 3982; stores by bulk copies: 3895; with
 * a fence before telling: 4313. Two warps that hear in turns: 3172 for l1_023, where one takes
 * 3103. */
#pragma once
#include <type_traits>
#include "pieces.cuh"
#include "row_ops.cuh"
#include "row_passes.cuh"
#include "told_words.cuh"

namespace kp {

constexpr int DRAWN_TEAM = 128;  /* threads that map a piece */
constexpr int DRAWN_SUMMERS = 8; /* warps that sum a piece */
constexpr int DRAWN_STEP = 8;    /* words from a row's counter to the next: another sector of L2 */

/* A piece is FOURS float4 a thread of a team; SLOTS of them are in shared memory, TEAMS in
 * registers. Where rows are long a counter says when all is told; else the states themselves do. */
template <int COLUMNS, int FOURS_ = 16, int SLOTS_ = 7,
          bool COUNTED_ = (COLUMNS / (4 * DRAWN_TEAM * FOURS_) > 64)>
struct DrawnShape {
    static constexpr int FOURS = FOURS_, SLOTS = SLOTS_, TEAMS = 4;
    static constexpr bool COUNTED = COUNTED_;
    static constexpr int PIECE = DRAWN_TEAM * FOURS; /* float4 */
    static constexpr int PER_ROW = COLUMNS / (4 * PIECE);
    static constexpr int ROOM = SLOTS + TEAMS;              /* pieces that a block holds */
    static constexpr int KNOWN = ROOM < 16 ? 16 : 32;       /* pieces of which something is known */
    static constexpr int MAPPERS = TEAMS * DRAWN_TEAM / 32; /* warps */
    static constexpr int OTHERS = 4; /* draw, tell, hear, and fill up a warpgroup */
    static constexpr int THREADS = (MAPPERS + DRAWN_SUMMERS + OTHERS) * 32;
    static_assert(COLUMNS % (4 * PIECE) == 0, "rows are whole pieces");
    static_assert(KNOWN > ROOM && SLOTS >= TEAMS, "see the roles");
    static_assert(MAPPERS % 4 == 0 && (DRAWN_SUMMERS + OTHERS) % 4 == 0,
                  "registers are a warpgroup's");
};

/* A block's shared memory. Slot i % SLOTS and what is known at i % KNOWN are of the i-th piece that
 * the block has drawn. */
template <class Op, class S> struct DrawnMemory {
    float4 slot[S::SLOTS][S::PIECE];
    uint64_t full[S::SLOTS], free[S::SLOTS];    /* the piece has come; it is in registers */
    uint64_t summed[S::KNOWN], heard[S::KNOWN]; /* its parts are there; it is told, its row heard */
    typename Op::State part[S::KNOWN][DRAWN_SUMMERS];
    typename Op::Row row[S::KNOWN];
    int piece[S::KNOWN]; /* its number in the tensor; -1: a team's end */
};

/* A warp draws pieces when there is a slot for them, not before: a piece that has been drawn and
 * has no slot could be what all wait for. Then come as many ends as teams, one each; nobody frees
 * their slots, and nobody needs to. */
template <int ROWS, class S, class M>
__device__ __forceinline__ void draw_pieces(M &m, const float4 *x, unsigned *drawn) {
    constexpr int TOTAL = ROWS * S::PER_ROW;
    int ends = 0;
#pragma unroll 1
    for (int i = 0; ends < S::TEAMS; i++) {
        const int s = i % S::SLOTS;
        if (i >= S::SLOTS) wait_phase(&m.free[s], i / S::SLOTS - 1);
        unsigned piece = TOTAL;
        if (threadIdx.x % 32 == 0) {
            if (ends == 0) piece = atomicAdd(drawn, 1u);
            m.piece[i % S::KNOWN] = piece < TOTAL ? (int)piece : -1;
        }
        piece = __shfl_sync(0xffffffffu, piece, 0);
        if (piece < TOTAL) {
            ask_piece<S::PIECE>(m.slot[s], x + (long long)piece * S::PIECE, &m.full[s]);
        } else {
            warp_arrive(&m.full[s]);
            ends++;
        }
    }
}

/* Eight warps sum each piece as it comes. */
template <class Op, class S, class M> __device__ __forceinline__ void sum_pieces(M &m, int warp) {
    constexpr int SUMMERS = DRAWN_SUMMERS * 32, OWN = S::PIECE / SUMMERS, AT_ONCE = 4;
    static_assert(OWN % AT_ONCE == 0, "whole steps");
    int ends = 0;
#pragma unroll 1
    for (int i = 0; ends < S::TEAMS; i++) {
        const int s = i % S::SLOTS, k = i % S::KNOWN;
        wait_phase(&m.full[s], i / S::SLOTS);
        if (m.piece[k] < 0) {
            ends++;
        } else {
            const float4 *from = m.slot[s] + warp * 32 + threadIdx.x % 32;
            auto sum = Op::none();
#pragma unroll 1
            for (int j = 0; j < OWN; j += AT_ONCE) {
                float4 v[AT_ONCE];
#pragma unroll
                for (int q = 0; q < AT_ONCE; q++) v[q] = from[(j + q) * SUMMERS];
                Op::take(sum, v);
            }
            sum = warp_join<Op>(sum);
            if (threadIdx.x % 32 == 0) m.part[k][warp] = sum;
        }
        warp_arrive(&m.summed[k]);
    }
}

/* A warp tells the states of the block's pieces. */
template <class Op, class S, class M>
__device__ __forceinline__ void tell_pieces(M &m, typename Op::State *told, unsigned *count) {
    const int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int i = 0;; i++) {
        const int k = i % S::KNOWN;
        wait_phase(&m.summed[k], i / S::KNOWN);
        const int piece = m.piece[k];
        if (piece < 0) return;
        const auto sum = warp_join<Op>(lane < DRAWN_SUMMERS ? m.part[k][lane] : Op::none());
        if (lane == 0) {
            tell_state(told + piece, sum);
            if (S::COUNTED) count_told(&count[piece / S::PER_ROW * DRAWN_STEP]);
        }
        warp_arrive(&m.heard[k]); /* it is told, and `part` is read */
    }
}

/* A warp hears all states of a row, and joins them in the same order whoever came first. */
template <class Op, class S>
__device__ __forceinline__ typename Op::State hear_row(const typename Op::State *told,
                                                       const unsigned *count) {
    using State = typename Op::State;
    constexpr int EACH = (S::PER_ROW + 31) / 32, AT_ONCE = EACH < 4 ? EACH : 4;
    const int lane = threadIdx.x % 32;
    if (S::COUNTED) {
        if (lane == 0)
            while (told_count(count) < S::PER_ROW) __nanosleep(20);
        __syncwarp();
    }
    State all = Op::none();
#pragma unroll
    for (int j = 0; j < EACH; j += AT_ONCE) {
        ToldState<State> t[AT_ONCE];
#pragma unroll
        for (int q = 0; q < AT_ONCE; q++)
            if ((j + q) * 32 + lane < S::PER_ROW) t[q] = told_state(told + (j + q) * 32 + lane);
#pragma unroll
        for (int q = 0; q < AT_ONCE; q++)
            if ((j + q) * 32 + lane < S::PER_ROW) {
                while (!t[q].there()) {
                    __nanosleep(20);
                    t[q] = told_state(told + (j + q) * 32 + lane);
                }
                all = Op::join(all, t[q].state());
            }
    }
    __syncwarp();
    return warp_join<Op>(all);
}

/* A warp hears of the rows of the block's pieces, of each once. */
template <int COLUMNS, class S, class Op, class M>
__device__ __forceinline__ void hear_pieces(const Op &op, M &m, const typename Op::State *told,
                                            const unsigned *count) {
    int known = -1;
    typename Op::Row of_known = {};
#pragma unroll 1
    for (int i = 0;; i++) {
        const int k = i % S::KNOWN;
        wait_phase(&m.summed[k], i / S::KNOWN);
        const int piece = m.piece[k], row = piece / S::PER_ROW;
        if (piece < 0) return;
        if (row != known) {
            const auto all = hear_row<Op, S>(told + (long long)row * S::PER_ROW,
                                             &count[S::COUNTED ? row * DRAWN_STEP : 0]);
            of_known = op.row(all, COLUMNS);
            known = row;
        }
        if (threadIdx.x % 32 == 0) m.row[k] = of_known;
        warp_arrive(&m.heard[k]);
    }
}

/* Values in a row, from a multiple of their number on, that have one mapper. */
template <class Op> struct Alike { static constexpr int VALUES = 4; };
template <int CHANNELS, int PLANE> struct Alike<Standardize<CHANNELS, PLANE>> {
    static constexpr int VALUES = PLANE;
};

/* A team maps pieces team, team + TEAMS and so on; a warp has a quarter of them. */
template <class S, class Op, class M>
__device__ __forceinline__ void map_pieces(const Op &op, M &m, int warp, float4 *y) {
    const int part = warp % 4 * (S::FOURS * 32) + threadIdx.x % 32;
#pragma unroll 1
    for (int i = warp / 4;; i += S::TEAMS) {
        const int s = i % S::SLOTS, k = i % S::KNOWN;
        wait_phase(&m.summed[k], i / S::KNOWN);
        wait_phase(&m.full[s], i / S::SLOTS); /* it is over; this shows what was copied */
        const int piece = m.piece[k];
        if (piece < 0) return;
        const float4 *from = m.slot[s] + part;
        float4 v[S::FOURS];
#pragma unroll
        for (int j = 0; j < S::FOURS; j++) v[j] = from[j * 32];
        free_piece(&m.free[s]);
        wait_phase(&m.heard[k], i / S::KNOWN);
        const auto row = m.row[k];
        const long long at = (long long)piece * S::PIECE + part;
        auto f = op.mapper(row, 4 * at);
#pragma unroll
        for (int j = 0; j < S::FOURS; j++) {
            if (Alike<Op>::VALUES % (S::FOURS * 128) != 0) f = op.mapper(row, 4 * (at + j * 32));
            y[at + j * 32] = make_float4(f(v[j].x), f(v[j].y), f(v[j].z), f(v[j].w));
        }
    }
}

/* Makes the barriers, by one thread. */
template <class S, class M> __device__ __forceinline__ void init_drawn(M &m) {
    for (int s = 0; s < S::SLOTS; s++) {
        bar_init(shared_address(&m.full[s]), WARP_ARRIVALS);
        bar_init(shared_address(&m.free[s]), DRAWN_TEAM / 32 * WARP_ARRIVALS);
    }
    for (int k = 0; k < S::KNOWN; k++) {
        bar_init(shared_address(&m.summed[k]), DRAWN_SUMMERS * WARP_ARRIVALS);
        bar_init(shared_address(&m.heard[k]), 2 * WARP_ARRIVALS); /* who tells, and who hears */
    }
    bar_init_done();
}

/* Grid: any number of blocks that have room for a row together. told: [ROWS][PER_ROW], all ones;
 * count: [ROWS][DRAWN_STEP] if COUNTED, and drawn, zero. The registers that a team holds its piece
 * in come from the other warps. */
template <int ROWS, int COLUMNS, class S, class Op>
__global__ void __launch_bounds__(S::THREADS, 1)
    drawn_rows_kernel(Op op, const float *__restrict__ x, float *__restrict__ y,
                      typename Op::State *told, unsigned *count, unsigned *drawn) {
    extern __shared__ __align__(128) unsigned char drawn_rows_memory[];
    auto &m = *(DrawnMemory<Op, S> *)drawn_rows_memory;
    if (threadIdx.x == 0) init_drawn<S>(m);
    __syncthreads();
    const int warp = threadIdx.x / 32, job = warp - S::MAPPERS - DRAWN_SUMMERS;
    if (warp < S::MAPPERS) {
        registers_take<96>();
        map_pieces<S>(op, m, warp, (float4 *)y);
        return;
    }
    registers_give<40>();
    if (job < 0)
        sum_pieces<Op, S>(m, warp - S::MAPPERS);
    else if (job == 0)
        draw_pieces<ROWS, S>(m, (const float4 *)x, drawn);
    else if (job == 1)
        tell_pieces<Op, S>(m, told, count);
    else if (job == 2)
        hear_pieces<COLUMNS, S>(op, m, told, count);
}

/* Bytes of scratch that drawn_rows() needs. */
template <int ROWS, int COLUMNS, class Op, class S = DrawnShape<COLUMNS>>
constexpr size_t drawn_rows_scratch() {
    const size_t drawn = (size_t)ROWS * S::PER_ROW * sizeof(typename Op::State) +
                         ((S::COUNTED ? ROWS : 0) + 1) * DRAWN_STEP * sizeof(unsigned);
    const size_t passes = row_passes_scratch<ROWS, 1, COLUMNS, Op>();
    return drawn > passes ? drawn : passes;
}

/* Enqueues y = x mapped by its rows. Both, and scratch, are aligned to 16 bytes. */
template <int ROWS, int COLUMNS, class S_ = void, class Op>
static void drawn_rows(cudaStream_t stream, const Op &op, const float *x, float *y, void *scratch) {
    using S = std::conditional_t<std::is_void<S_>::value, DrawnShape<COLUMNS>, S_>;
    using State = typename Op::State;
    static_assert((long long)ROWS * S::PER_ROW < 1 << 30, "draws are counted in 32 bits");
    constexpr size_t shared = sizeof(DrawnMemory<Op, S>);
    static_assert(shared <= 227 * 1024, "what a block can have");
    const auto kernel = drawn_rows_kernel<ROWS, COLUMNS, S, Op>;
    int device = 0, processors = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (processors * S::ROOM < S::PER_ROW) {
        row_passes<ROWS, 1, COLUMNS>(stream, op, x, y, scratch);
        return;
    }
    constexpr size_t states = (size_t)ROWS * S::PER_ROW * sizeof(State);
    constexpr size_t counters = S::COUNTED ? ROWS * DRAWN_STEP : 0;
    auto *count = (unsigned *)((char *)scratch + states), *drawn = count + counters;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    cudaMemsetAsync(scratch, 0xff, states, stream);
    cudaMemsetAsync(count, 0, (counters + 1) * sizeof(unsigned), stream);
    kernel<<<processors, S::THREADS, shared, stream>>>(op, x, y, (State *)scratch, count, drawn);
}

} // namespace kp
