/* layer_norm_sm90.cuh: layer norm of few, very long rows that reads x once (sm_90: 227 KB of shared
 * memory).
 *
 * Idea: a block owns a slice of the columns, in all rows: pieces of 8 KB, the blocks in turns, so
 * that what the chip has under way lies close together. x comes by bulk copies into a ring in
 * shared memory, a row of the slice and most of the next. Eight warps sum each piece as it comes;
 * one tells the row's sum to the other blocks and hears theirs (told_words.cuh); eight, which keep
 * the slice's weight in registers, map the row and make room in the ring. The bias has no room on
 * chip: it comes from the L2 cache again for each row, in time.
 *
 * Until a row is heard, a block has at most AHEAD pieces of the next one under way. More would
 * queue at the memory and delay the blocks that are late with the row, and what the blocks tell
 * each other, until all rings are full and the memory is idle.
 *
 * Contract: COLUMNS are 12 or 16 pieces of each block. All blocks run at once.
 * Reaches 89 % of the bytes' floor (l1_040, crfm_layernorm). */
#pragma once
#include "layer_norm.cuh"
#include "pieces.cuh"
#include "told_words.cuh"
#include "wait_either.cuh"

constexpr int SLICES = 128;   /* blocks */
constexpr int PIECE = 512;    /* float4 */
constexpr int RING = 28;      /* pieces in shared memory */
constexpr int AHEAD = 4;      /* pieces under way while a row is not heard */
constexpr int BIAS_AHEAD = 4; /* pieces whose bias is under way */
constexpr int MAPPERS = 256, SUMMERS = 256, ONCE_THREADS = MAPPERS + SUMMERS + 128;
constexpr int OF_PIECE = PIECE / MAPPERS; /* float4 that a thread maps */

/* What the blocks tell each other: the moments of each slice of each row, all ones until they are
 * told, and how many are, less one. */
template <int ROWS> struct Told {
    Moments part[ROWS][SLICES];
    unsigned count[ROWS];
};

/* A block's shared memory. Row r has places r % 2: the ring has no room for three rows, so that r
 * is being mapped when r + 2 is summed. */
struct OnceMemory {
    float4 slot[RING][PIECE];
    uint64_t full[RING], free[RING], summed[2], heard[2];
    Moments part[2][SUMMERS / 32];
    Standard row[2];
};

/* A place in the ring: slot `at` is there for the turn-th time. */
struct RingPlace {
    int at = 0, turn = 0;
    __device__ __forceinline__ void next() {
        if (++at == RING) at = 0, turn++;
    }
};

/* Where this block's p-th piece of a row begins. */
__device__ __forceinline__ int piece_at(int p) {
    return (p * SLICES + (int)blockIdx.x) * PIECE;
}

__device__ __forceinline__ Moments warp_moments(const Moments &m) {
    return {warp_reduce(m.sum, Add()), warp_reduce(m.square, Add())};
}

/* A warp asks for the slice, row by row. */
template <int ROWS, int PIECES>
__device__ __forceinline__ void ask_rows(OnceMemory &m, const float4 *x) {
    RingPlace place, late; /* late: what was asked for AHEAD pieces ago */
    late.at = PIECES - AHEAD;
#pragma unroll 1
    for (int r = 0; r < ROWS; r++)
#pragma unroll 1
        for (int p = 0; p < PIECES; p++, place.next()) {
            if (place.turn > 0) kp::wait_phase(&m.free[place.at], place.turn - 1);
            if (r > 0) {
                kp::bar_wait_either(kp::shared_address(&m.heard[(r - 1) % 2]), (r - 1) / 2 & 1,
                                    kp::shared_address(&m.full[late.at]), late.turn & 1);
                late.next();
            }
            kp::ask_piece<PIECE, true>(m.slot[place.at],
                                       x + r * (PIECES * SLICES * PIECE) + piece_at(p),
                                       &m.full[place.at]);
        }
}

/* Eight warps sum a row's pieces as they come. */
template <int ROWS, int PIECES> __device__ __forceinline__ void sum_rows(OnceMemory &m) {
    const int thread = threadIdx.x - MAPPERS;
    RingPlace place;
#pragma unroll 1
    for (int r = 0; r < ROWS; r++) {
        Moments sum = {0, 0};
#pragma unroll 1
        for (int p = 0; p < PIECES; p++, place.next()) {
            kp::wait_phase(&m.full[place.at], place.turn);
            float4 v[PIECE / SUMMERS];
#pragma unroll
            for (int j = 0; j < PIECE / SUMMERS; j++) v[j] = m.slot[place.at][j * SUMMERS + thread];
            take(sum, v);
        }
        sum = warp_moments(sum);
        if (thread % 32 == 0) m.part[r % 2][thread / 32] = sum;
        kp::warp_arrive(&m.summed[r % 2]);
    }
}

/* A warp: the moments of a row, from those of all slices. Only when all have counted it looks for
 * them: to look all the time would keep them from being told. */
__device__ __forceinline__ Moments hear_moments(const Moments *told, const unsigned *count) {
    constexpr int OF_LANE = SLICES / 32;
    const int lane = threadIdx.x % 32;
    kp::ToldState<Moments> heard[OF_LANE];
    Moments all = {0, 0};
    while (kp::told_count(count) != SLICES - 1u) __nanosleep(20);
#pragma unroll
    for (int j = 0; j < OF_LANE; j++) heard[j] = kp::told_state(told + j * 32 + lane);
#pragma unroll
    for (int j = 0; j < OF_LANE; j++) {
        while (!heard[j].there()) { /* counting orders nothing */
            __nanosleep(20);
            heard[j] = kp::told_state(told + j * 32 + lane);
        }
        all = all + heard[j].state();
    }
    __syncwarp();
    return warp_moments(all);
}

/* A warp tells of each row of COUNT values, and hears. */
template <int ROWS, int COUNT>
__device__ __forceinline__ void tell_rows(OnceMemory &m, Told<ROWS> *told, double eps) {
    const int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int r = 0; r < ROWS; r++) {
        kp::wait_phase(&m.summed[r % 2], r / 2);
        const Moments own = warp_moments(lane < SUMMERS / 32 ? m.part[r % 2][lane] : Moments{0, 0});
        if (lane == 0) {
            kp::tell_state(&told->part[r][blockIdx.x], own);
            kp::count_told(&told->count[r]);
        }
        const Moments all = hear_moments(told->part[r], &told->count[r]);
        if (lane == 0) m.row[r % 2] = standard(all, COUNT, eps);
        kp::warp_arrive(&m.heard[r % 2]);
    }
}

/* Eight warps map the rows. */
template <int ROWS, int PIECES>
__device__ __forceinline__ void map_rows(OnceMemory &m, const float4 *weight, const float4 *bias,
                                         float4 *y) {
    const int thread = threadIdx.x;
    float4 w[PIECES][OF_PIECE], next[BIAS_AHEAD][OF_PIECE];
#pragma unroll
    for (int p = 0; p < PIECES; p++)
#pragma unroll
        for (int i = 0; i < OF_PIECE; i++) {
            const int at = piece_at(p) + i * MAPPERS + thread; /* 32 bits: else registers spill */
            w[p][i] = __ldcs(weight + at);
        }
#pragma unroll
    for (int p = 0; p < BIAS_AHEAD; p++)
#pragma unroll
        for (int i = 0; i < OF_PIECE; i++)
            next[p][i] = __ldcg(bias + piece_at(p) + i * MAPPERS + thread);
    RingPlace place;
#pragma unroll 1
    for (int r = 0; r < ROWS; r++) {
        kp::wait_phase(&m.heard[r % 2], r / 2);
        const Standard s = m.row[r % 2];
#pragma unroll
        for (int p = 0; p < PIECES; p++, place.next()) {
            float4 v[OF_PIECE], b[OF_PIECE];
            kp::wait_phase(&m.full[place.at], place.turn); /* it is over; this shows the copy */
#pragma unroll
            for (int i = 0; i < OF_PIECE; i++) v[i] = m.slot[place.at][i * MAPPERS + thread];
            kp::free_piece(&m.free[place.at]);
            const float4 *more = bias + piece_at((p + BIAS_AHEAD) % PIECES) + thread;
#pragma unroll
            for (int i = 0; i < OF_PIECE; i++) { /* loads before the stores, not behind them */
                b[i] = next[p % BIAS_AHEAD][i];
                next[p % BIAS_AHEAD][i] = __ldcg(more + i * MAPPERS);
            }
            float4 *to = y + r * (PIECES * SLICES * PIECE) + piece_at(p) + thread;
#pragma unroll
            for (int i = 0; i < OF_PIECE; i++)
                __stcs(to + i * MAPPERS, normalize(v[i], s, w[p][i], b[i]));
        }
    }
}

/* Makes the barriers, by one thread. */
__device__ __forceinline__ void init_once(OnceMemory &m) {
    auto init = [](uint64_t *bar, int n, int warps) {
        for (int i = 0; i < n; i++)
            kp::bar_init(kp::shared_address(bar + i), warps * kp::WARP_ARRIVALS);
    };
    init(m.full, RING, 1), init(m.free, RING, MAPPERS / 32);
    init(m.summed, 2, SUMMERS / 32), init(m.heard, 2, 1);
    kp::bar_init_done();
}

/* Grid: SLICES blocks of ONCE_THREADS, all at once; told is all ones. The registers that hold the
 * weight come from the other warps. */
template <int ROWS, int PIECES>
__global__ void __launch_bounds__(ONCE_THREADS, 1)
    layer_norm_once_kernel(const float4 *__restrict__ x, const float4 *__restrict__ weight,
                           const float4 *__restrict__ bias, float4 *__restrict__ y,
                           Told<ROWS> *told, double eps) {
    static_assert(PIECES <= 16 && PIECES % BIAS_AHEAD == 0, "what registers hold");
    static_assert(PIECES < RING && RING < 3 * PIECES, "a row and more, but not three rows");
    extern __shared__ __align__(128) unsigned char once_memory[];
    auto &m = *(OnceMemory *)once_memory;
    if (threadIdx.x == 0) init_once(m);
    __syncthreads();
    const int job = (int)threadIdx.x / 32 - (MAPPERS + SUMMERS) / 32;
    if (threadIdx.x < MAPPERS) {
        kp::registers_take<192>();
        map_rows<ROWS, PIECES>(m, weight, bias, y);
        return;
    }
    kp::registers_give<32>();
    if (job < 0)
        sum_rows<ROWS, PIECES>(m);
    else if (job == 0)
        ask_rows<ROWS, PIECES>(m, x);
    else if (job == 1)
        tell_rows<ROWS, PIECES * SLICES * PIECE * 4>(m, told, eps);
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
    constexpr int PIECES = COLUMNS / 4 / SLICES / PIECE;
    static_assert(COLUMNS == PIECES * PIECE * SLICES * 4, "whole pieces");
    static_assert((long long)ROWS * COLUMNS / 4 < 1ll << 31, "32 bits");
    int device = 0, processors = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (!kp::run_at_once<1>(SLICES, processors)) {
        layer_norm<ROWS>(x, weight, bias, y, COLUMNS, eps, scratch, stream);
        return;
    }
    Told<ROWS> *told = (Told<ROWS> *)scratch;
    cudaMemsetAsync(told, 0xff, sizeof *told, stream);
    kp::launch_sized<1>(layer_norm_once_kernel<ROWS, PIECES>, SLICES, ONCE_THREADS,
                        sizeof(OnceMemory), stream, true, (const float4 *)x, (const float4 *)weight,
                        (const float4 *)bias, (float4 *)y, told, eps);
}
