/* row_ring.cuh: rows that are reduced, then mapped; read once, because they wait on chip.
 *
 * A row belongs to a group of blocks, which hold a slice of 32 KB each in shared memory. A block
 * has a ring of three slices: while one is mapped and written, the states of the next are told to
 * the group, and the one after that arrives. So a block tells the state of a slice a whole row
 * before it needs the others', and seldom waits for them. The group meets through counters in
 * memory, so that any GPU can do it that runs all blocks of a group at once; others take
 * row_passes.cuh. The launch is cooperative: what has begun to wait is known to be met.
 *
 * A thread copies into shared memory only what it will itself read: its own wait is enough.
 * Floor: 8 bytes a value over the copy bandwidth. A group's meeting takes about 3 us and must be
 * shorter than the time in which the chip moves as many rows as there are groups.
 *
 * The tensor is [ROWS][COLUMNS] floats, the Op one of row_ops.cuh. Rows that are no whole slices
 * need a NEUTRAL value; they may begin anywhere, as long as the tensor is whole float4. */
#pragma once
#include "async.cuh"
#include "row_passes.cuh"
#include "states.cuh"

namespace kp {

constexpr int RING_THREADS = 256, RING_WARPS = RING_THREADS / 32;
constexpr int RING_FOURS = 8; /* float4 of a slice that a thread has */
constexpr int RING_SLICE = RING_THREADS * RING_FOURS;
constexpr int RING_DEPTH = 3; /* slices: mapped, told, arriving */

/* How a row lies in slices. The float4 that cover a row may begin before it and end behind it. */
template <int COLUMNS> struct Slices {
    static constexpr bool WHOLE = COLUMNS % (4 * RING_SLICE) == 0;
    static constexpr int BLOCKS = (COLUMNS + 4 * RING_SLICE - 1) / (4 * RING_SLICE);
    static constexpr int COVER = COLUMNS % 4 == 0 ? COLUMNS / 4 : (COLUMNS + 6) / 4;
    static constexpr int EXTRA = COVER > BLOCKS *RING_SLICE; /* of the last block */
    static_assert(COVER <= BLOCKS * RING_SLICE + 1, "one float4 too many at most");
};

/* A block's shared memory. */
template <class Op, int EXTRA> struct Ring {
    float4 slice[RING_DEPTH][RING_SLICE + EXTRA];
    typename Op::State part[2][RING_WARPS]; /* of the warps; of two rows in turn */
    typename Op::Row row[2];
};

/* One warp: what the states mean that all blocks of the group tell of a row of `columns`. */
template <int BLOCKS, class Op>
__device__ __forceinline__ typename Op::Row hear(const Op &op, const typename Op::State *told,
                                                 const unsigned *count, int columns) {
    const int lane = threadIdx.x % 32;
    if (lane == 0)
        while (*(const volatile unsigned *)count < BLOCKS) __nanosleep(40);
    __syncwarp();
    __threadfence();
    typename Op::State s = Op::none();
#pragma unroll
    for (int i = 0; i < BLOCKS; i += 32)
        if (i + lane < BLOCKS) s = Op::join(s, load_l2(told + i + lane));
    s = warp_join<Op>(s);
    return op.row(s, columns);
}

/* One warp: joins the states of the block's warps and tells them. */
template <class Op>
__device__ __forceinline__ void tell(const typename Op::State *part, typename Op::State *told,
                                     unsigned *count) {
    const int lane = threadIdx.x % 32;
    const auto s = warp_join<Op>(lane < RING_WARPS ? part[lane] : Op::none());
    if (lane) return;
    *told = s;
    __threadfence();
    atomicAdd(count, 1u);
}

/* Grid: BLOCKS blocks for each group, all at once; group g takes rows g, g + groups and so on.
 * told: [ROWS][BLOCKS]; count: [ROWS], zero. */
template <int ROWS, int COLUMNS, class Op>
__global__ void __launch_bounds__(RING_THREADS, 2)
    row_ring_kernel(Op op, const float *__restrict__ x, float *__restrict__ y,
                    typename Op::State *told, unsigned *count) {
    using S = Slices<COLUMNS>;
    constexpr int BLOCKS = S::BLOCKS, OWN = RING_FOURS + S::EXTRA;
    extern __shared__ float4 shared_memory[];
    auto &ring = *(Ring<Op, S::EXTRA> *)shared_memory;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int groups = gridDim.x / BLOCKS, slice = blockIdx.x % BLOCKS;

    /* The place of the float4 that cover a row, in the tensor and before the row. */
    auto before = [](int r) { return COLUMNS % 4 ? (int)((long long)r * COLUMNS % 4) : 0; };
    auto cover = [&](int r) { return ((long long)r * COLUMNS - before(r)) / 4; };
    /* Of the j-th float4 of this thread: its place in the slice, and the row's float before which
     * it begins. */
    auto mine = [&](int j) { return j * RING_THREADS + (int)threadIdx.x; };
    auto column = [&](int r, int j) { return 4 * (slice * RING_SLICE + mine(j)) - before(r); };
    auto inside = [&](int r, int j) { /* true if any of it is this thread's and the row's */
                                      if (S::WHOLE) return true;
                                      if (j == RING_FOURS && (threadIdx.x || slice != BLOCKS - 1))
                                          return false;
                                      return column(r, j) < COLUMNS;
    };
    auto fetch = [&](int r, int s) {
        if (r < ROWS) {
            const float4 *from = (const float4 *)x + cover(r) + slice * RING_SLICE;
#pragma unroll
            for (int j = 0; j < OWN; j++)
                if (inside(r, j)) copy_async(&ring.slice[s][mine(j)], from + mine(j));
        }
        copy_commit();
    };
    auto take = [&](int r, int s, int odd) { /* the warp's state of a slice that is there */
                                             float4 v[OWN];
#pragma unroll
                                             for (int j = 0; j < OWN; j++) {
                                                 if constexpr (S::WHOLE) {
                                                     v[j] = ring.slice[s][mine(j)];
                                                 } else {
                                                     constexpr float none = Op::NEUTRAL;
                                                     const int c = column(r, j);
                                                     v[j] = make_float4(none, none, none, none);
                                                     if (inside(r, j))
                                                         v[j] = ring.slice[s][mine(j)];
                                                     if (c < 0 || c + 4 > COLUMNS) {
                                                         if (c < 0 || c >= COLUMNS) v[j].x = none;
                                                         if (c < -1 || c + 1 >= COLUMNS)
                                                             v[j].y = none;
                                                         if (c < -2 || c + 2 >= COLUMNS)
                                                             v[j].z = none;
                                                         if (c + 3 >= COLUMNS) v[j].w = none;
                                                     }
                                                 }
                                             }
                                             typename Op::State state = Op::none();
                                             Op::take(state, v);
                                             state = warp_join<Op>(state);
                                             if (lane == 0) ring.part[odd][warp] = state;
    };

    int r = blockIdx.x / BLOCKS, s = 0, odd = 0;
#pragma unroll
    for (int d = 0; d < RING_DEPTH; d++) fetch(r + d * groups, d);
    copy_wait(RING_DEPTH - 1);
    take(r, 0, 0);
    __syncthreads();
    if (warp == 0) tell<Op>(ring.part[0], &told[(long long)r * BLOCKS + slice], &count[r]);
#pragma unroll 1
    for (; r < ROWS; r += groups, odd ^= 1, s = s == RING_DEPTH - 1 ? 0 : s + 1) {
        const int next = r + groups;
        if (warp == 1) {
            const auto row = hear<BLOCKS>(op, &told[(long long)r * BLOCKS], &count[r], COLUMNS);
            if (lane == 0) ring.row[odd] = row;
        }
        copy_wait(RING_DEPTH - 2);
        if (next < ROWS) take(next, s == RING_DEPTH - 1 ? 0 : s + 1, odd ^ 1);
        __syncthreads();
        if (warp == 0 && next < ROWS)
            tell<Op>(ring.part[odd ^ 1], &told[(long long)next * BLOCKS + slice], &count[next]);
        const long long first = cover(r) + slice * RING_SLICE;
        const int after = r + RING_DEPTH * groups;
        const float4 *from = (const float4 *)x + cover(after) + slice * RING_SLICE;
#pragma unroll
        for (int j = 0; j < OWN; j++) {
            if (inside(r, j)) {
                const float4 v = ring.slice[s][mine(j)];
                const auto f = op.mapper(ring.row[odd], 4 * (first + mine(j)));
                const float4 w = make_float4(f(v.x), f(v.y), f(v.z), f(v.w));
                const int c = column(r, j);
                float4 *to = (float4 *)y + first + mine(j);
                if (S::WHOLE || (c >= 0 && c + 4 <= COLUMNS)) {
                    *to = w;
                } else {
                    if (c >= 0) ((float *)to)[0] = w.x;
                    if (c >= -1 && c + 1 < COLUMNS) ((float *)to)[1] = w.y;
                    if (c >= -2 && c + 2 < COLUMNS) ((float *)to)[2] = w.z;
                    if (c + 3 < COLUMNS) ((float *)to)[3] = w.w;
                }
            }
            if (after < ROWS && inside(after, j))
                copy_async(&ring.slice[s][mine(j)], from + mine(j));
        }
        copy_commit();
    }
}

/* Bytes of scratch that rows_once() needs. */
template <int ROWS, int COLUMNS, class Op> constexpr size_t rows_once_scratch() {
    const size_t ring = (size_t)ROWS * Slices<COLUMNS>::BLOCKS * sizeof(typename Op::State) +
                        ROWS * sizeof(unsigned);
    const size_t passes = row_passes_scratch<ROWS, 1, COLUMNS, Op>();
    return ring > passes ? ring : passes;
}

/* Enqueues y = x mapped by its rows; both are aligned to 16 bytes. */
template <int ROWS, int COLUMNS, class Op>
static void rows_once(cudaStream_t stream, const Op &op, const float *x, float *y, void *scratch) {
    using S = Slices<COLUMNS>;
    static_assert((long long)ROWS * COLUMNS % 4 == 0, "the tensor is whole float4");
    const auto kernel = row_ring_kernel<ROWS, COLUMNS, Op>;
    constexpr size_t shared = sizeof(Ring<Op, S::EXTRA>);
    int device = 0, processors = 0, each = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, RING_THREADS, shared);
    int groups = processors * each / S::BLOCKS;
    if (groups > ROWS) groups = ROWS;
    if (groups == 0) {
        row_passes<ROWS, 1, COLUMNS>(stream, op, x, y, scratch);
        return;
    }
    auto *told = (typename Op::State *)scratch;
    auto *count = (unsigned *)(told + (size_t)ROWS * S::BLOCKS);
    cudaLaunchAttribute together = {};
    together.id = cudaLaunchAttributeCooperative;
    together.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(groups * S::BLOCKS);
    config.blockDim = dim3(RING_THREADS);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &together;
    config.numAttrs = 1;
    cudaMemsetAsync(count, 0, ROWS * sizeof(unsigned), stream);
    cudaLaunchKernelEx(&config, kernel, op, x, y, told, count);
}

} // namespace kp
