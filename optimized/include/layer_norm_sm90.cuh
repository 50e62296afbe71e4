/* layer_norm_sm90.cuh: layer norm of few, very long rows that reads x once (sm_90: 227 KB of shared
 * memory).
 *
 * Idea: a block owns slices of the columns, in all rows: pieces of 16 KB, the blocks in turns, so
 * that what the chip has under way lies close together. x comes by bulk copies into a ring of 13
 * pieces in shared memory, a row (8) and most of the next. Four warps sum each piece as it comes;
 * one tells the row's sum to the other blocks and hears theirs (told_words.cuh); eight warps, which
 * keep the slice's weight in registers, map the row and make room in the ring. The bias has no room
 * but for a piece; the rest is read again for each row, from the L2 cache, which is told to keep
 * it, and to drop x and y first (kept_in_l2.cuh).
 *
 * Contract: COLUMNS are BLOCKS times up to 8 pieces. All blocks run at once.
 * Reaches 88 % of the bytes' floor (l1_040, crfm_layernorm), 95 % of a copy of as many bytes. */
#pragma once
#include "layer_norm.cuh"
#include "pieces.cuh"
#include "told_words.cuh"

constexpr int SLICES = 128; /* blocks */
constexpr int PIECE = 1024; /* float4 */
constexpr int RING = 13;    /* pieces of x in shared memory */
constexpr int KEPT = 1;     /* pieces of the bias there */
constexpr int MAPPERS = 256, SUMMERS = 128, ONCE_THREADS = 512;
constexpr int EACH = PIECE / MAPPERS; /* float4 of a piece that a thread maps */

/* What the blocks tell each other: the moments of each slice of each row, all ones until they are
 * told, and how many are, less one. */
template <int ROWS, int BLOCKS = SLICES> struct Told {
    Moments part[ROWS][BLOCKS];
    unsigned count[ROWS];
};

/* A block's shared memory. Row r has places r % 2; so much later all are done with it. */
struct OnceMemory {
    float4 slot[RING][PIECE], bias[KEPT][PIECE];
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

/* Where the p-th piece of this block begins in a row. */
template <int BLOCKS> __device__ __forceinline__ int piece_at(int p) {
    return (p * BLOCKS + (int)blockIdx.x) * PIECE;
}

__device__ __forceinline__ Moments warp_moments(const Moments &m) {
    return {warp_reduce(m.sum, Add()), warp_reduce(m.square, Add())};
}

/* A warp asks for all pieces in turn. */
template <int ROWS, int PIECES, int BLOCKS>
__device__ __forceinline__ void ask_rows(OnceMemory &m, const float4 *x) {
    RingPlace place;
#pragma unroll 1
    for (int i = 0; i < ROWS * PIECES; i++, place.next()) {
        if (place.turn > 0) kp::wait_phase(&m.free[place.at], place.turn - 1);
        const float4 *from = x + i / PIECES * (BLOCKS * PIECES * PIECE);
        kp::ask_piece<PIECE, true>(m.slot[place.at], from + piece_at<BLOCKS>(i % PIECES),
                                   &m.full[place.at]);
    }
}

/* Four warps sum a row's pieces as they come. */
template <int ROWS, int PIECES> __device__ __forceinline__ void sum_rows(OnceMemory &m) {
    const int thread = threadIdx.x % SUMMERS;
    RingPlace place;
#pragma unroll 1
    for (int r = 0; r < ROWS; r++) {
        Moments sum = {0, 0};
#pragma unroll 1
        for (int p = 0; p < PIECES; p++, place.next()) {
            kp::wait_phase(&m.full[place.at], place.turn);
            const float4 *from = m.slot[place.at] + thread;
#pragma unroll
            for (int j = 0; j < PIECE / SUMMERS; j += 2)
                sum.take(from[j * SUMMERS], from[(j + 1) * SUMMERS]);
        }
        sum = warp_moments(sum);
        if (threadIdx.x % 32 == 0) m.part[r % 2][thread / 32] = sum;
        kp::warp_arrive(&m.summed[r % 2]);
    }
}

/* A warp: the moments of a row, from those of all its slices. */
template <int BLOCKS>
__device__ __forceinline__ Moments hear_moments(const Moments *told, const unsigned *count) {
    constexpr int OWN = (BLOCKS + 31) / 32;
    const int lane = threadIdx.x % 32;
    kp::ToldState<Moments> heard[OWN];
    Moments all = {0, 0};
    while (kp::told_count(count) != BLOCKS - 1u) __nanosleep(20);
#pragma unroll
    for (int j = 0; j < OWN; j++)
        if (j * 32 + lane < BLOCKS) heard[j] = kp::told_state(told + j * 32 + lane);
#pragma unroll
    for (int j = 0; j < OWN; j++)
        if (j * 32 + lane < BLOCKS) {
            while (!heard[j].there()) heard[j] = kp::told_state(told + j * 32 + lane);
            all = all + heard[j].state();
        }
    __syncwarp();
    return warp_moments(all);
}

/* A warp tells of each row, and hears. */
template <int ROWS, int PIECES, int BLOCKS>
__device__ __forceinline__ void tell_rows(OnceMemory &m, Told<ROWS, BLOCKS> *told, double eps) {
    const int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int r = 0; r < ROWS; r++) {
        kp::wait_phase(&m.summed[r % 2], r / 2);
        const Moments own = warp_moments(lane < SUMMERS / 32 ? m.part[r % 2][lane] : Moments{0, 0});
        if (lane == 0) {
            kp::tell_state(&told->part[r][blockIdx.x], own);
            kp::count_told(&told->count[r]);
        }
        const Moments all = hear_moments<BLOCKS>(told->part[r], &told->count[r]);
        if (lane == 0) m.row[r % 2] = standard(all, 4.0 * BLOCKS * PIECES * PIECE, eps);
        kp::warp_arrive(&m.heard[r % 2]);
    }
}

/* Eight warps map the rows. The next piece's bias is asked for before a piece is stored. */
template <int ROWS, int PIECES, int BLOCKS>
__device__ __forceinline__ void map_rows(OnceMemory &m, const float4 *weight, const float4 *bias,
                                         float4 *y) {
    const int thread = threadIdx.x;
    float4 w[PIECES][EACH], next[EACH];
#pragma unroll
    for (int p = 0; p < PIECES; p++)
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const int at = piece_at<BLOCKS>(p) + e * MAPPERS + thread;
            w[p][e] = __ldcs(weight + at);
            if (p < KEPT) m.bias[p][e * MAPPERS + thread] = __ldcs(bias + at);
        }
    auto bias_of = [&](int p, int e) {
        return p < KEPT ? m.bias[p][e * MAPPERS + thread]
                        : kp::load_kept(bias + piece_at<BLOCKS>(p) + e * MAPPERS + thread);
    };
#pragma unroll
    for (int e = 0; e < EACH; e++) next[e] = bias_of(0, e);
    RingPlace place;
#pragma unroll 1
    for (int r = 0; r < ROWS; r++) {
        kp::wait_phase(&m.heard[r % 2], r / 2);
        const Standard s = m.row[r % 2];
#pragma unroll
        for (int p = 0; p < PIECES; p++, place.next()) {
            float4 v[EACH], b[EACH];
            kp::wait_phase(&m.full[place.at], place.turn); /* it is over; this shows the copy */
#pragma unroll
            for (int e = 0; e < EACH; e++) v[e] = m.slot[place.at][e * MAPPERS + thread];
            kp::free_piece(&m.free[place.at]);
#pragma unroll
            for (int e = 0; e < EACH; e++) b[e] = next[e], next[e] = bias_of((p + 1) % PIECES, e);
            float4 *to = y + r * (BLOCKS * PIECES * PIECE) + piece_at<BLOCKS>(p) + thread;
#pragma unroll
            for (int e = 0; e < EACH; e++)
                __stcs(to + e * MAPPERS, normalize(v[e], s, w[p][e], b[e]));
        }
    }
}

/* Makes the barriers, by one thread. */
__device__ __forceinline__ void init_once(OnceMemory &m) {
    for (int s = 0; s < RING; s++) {
        kp::bar_init(kp::shared_address(&m.full[s]), kp::WARP_ARRIVALS);
        kp::bar_init(kp::shared_address(&m.free[s]), MAPPERS / 32 * kp::WARP_ARRIVALS);
    }
    for (int i = 0; i < 2; i++) {
        kp::bar_init(kp::shared_address(&m.summed[i]), SUMMERS / 32 * kp::WARP_ARRIVALS);
        kp::bar_init(kp::shared_address(&m.heard[i]), kp::WARP_ARRIVALS);
    }
    kp::bar_init_done();
}

/* Grid: BLOCKS blocks of ONCE_THREADS, all at once; told is all ones. The registers that hold the
 * weight come from the other warps. */
template <int ROWS, int PIECES, int BLOCKS = SLICES>
__global__ void __launch_bounds__(ONCE_THREADS, 1)
    layer_norm_once_kernel(const float4 *__restrict__ x, const float4 *__restrict__ weight,
                           const float4 *__restrict__ bias, float4 *__restrict__ y,
                           Told<ROWS, BLOCKS> *told, double eps) {
    static_assert(PIECES >= KEPT && PIECES < RING && PIECES * EACH <= 32, "what there is room for");
    extern __shared__ __align__(128) unsigned char once_memory[];
    auto &m = *(OnceMemory *)once_memory;
    if (threadIdx.x == 0) init_once(m);
    __syncthreads();
    const int job = (int)threadIdx.x / 32 - (MAPPERS + SUMMERS) / 32;
    if (threadIdx.x < MAPPERS) {
        kp::registers_take<208>();
        map_rows<ROWS, PIECES, BLOCKS>(m, weight, bias, y);
        return;
    }
    kp::registers_give<48>();
    if (job < 0)
        sum_rows<ROWS, PIECES>(m);
    else if (job == 0)
        ask_rows<ROWS, PIECES, BLOCKS>(m, x);
    else if (job == 1)
        tell_rows<ROWS, PIECES, BLOCKS>(m, told, eps);
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
    static_assert(COLUMNS == PIECES * 4 * SLICES * PIECE, "whole pieces");
    static_assert((long long)ROWS * COLUMNS / 4 < 1ll << 31, "float4 are counted in 32 bits");
    int device = 0, processors = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (processors < SLICES) {
        layer_norm<ROWS>(x, weight, bias, y, COLUMNS, eps, scratch, stream);
        return;
    }
    const auto kernel = layer_norm_once_kernel<ROWS, PIECES>;
    Told<ROWS> *told = (Told<ROWS> *)scratch;
    void *arguments[] = {&x, &weight, &bias, &y, &told, &eps};
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(OnceMemory));
    cudaMemsetAsync(told, 0xff, sizeof *told, stream);
    cudaLaunchCooperativeKernel((const void *)kernel, dim3(SLICES), dim3(ONCE_THREADS), arguments,
                                sizeof(OnceMemory), stream);
}
