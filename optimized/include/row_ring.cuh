/* row_ring.cuh: rows that are reduced, then mapped; read once, because they wait on chip.
 *
 * A row belongs to a group of blocks, each of which has a slice of it, 32 KB for 256 threads. The
 * blocks take turns at the row's float4, a block's width each, so that what the group has in
 * flight lies side by side in memory, as DRAM likes it. Four slices of a block are under way: two
 * arrive in shared memory, the state of the third has been published to the group, the fourth waits
 * in registers to be mapped and written. So a state is published two whole rows before the others'
 * are needed. A warp of its own publishes states, as a fence also waits for what its warp has
 * stored, and another waits for them: this barrier takes about 3 us, and more where messages queue
 * behind reads. It goes through counters in memory, so that any GPU can do it that runs all blocks
 * of a group at once; others take row_passes.cuh. The launch is cooperative: what has begun to wait
 * is known to be met.
 *
 * A thread copies into shared memory only what it will itself read: its own wait is enough.
 * Floor: 8 bytes a value over the copy bandwidth. Reaches 90 % of it (l1_035). A barrier must be
 * shorter than twice the time in which the chip moves a slice of each block: 8 us on an H200.
 *
 * The tensor is [ROWS][COLUMNS] floats, the Op one of row_ops.cuh. Rows that are not whole
 * slices need a NEUTRAL value; they may begin anywhere, if only the tensor is whole float4. */
#pragma once
#include "async.cuh"
#include "row_passes.cuh"
#include "states.cuh"

namespace kp {

constexpr int RING_FOURS = 8; /* float4 of a slice that a thread has */
constexpr int RING_DEPTH = 3; /* slices in shared memory */
constexpr int RING_TALK = 64; /* threads of a block that tell and hear */

/* How a row lies in slices: from the line of 128 bytes in which it begins. */
template <int COLUMNS, int THREADS, int FOURS = RING_FOURS> struct Slices {
    static constexpr int SLICE = THREADS * FOURS;
    static constexpr bool WHOLE = COLUMNS % (4 * SLICE) == 0;
    static constexpr int LINE = 32; /* floats */
    static constexpr int BLOCKS = (COLUMNS + 4 * SLICE - 1) / (4 * SLICE);
    static constexpr int WIDTH = BLOCKS * THREADS; /* float4 from one of a thread's to its next */
    static constexpr int COVER = WHOLE ? COLUMNS / 4 : (COLUMNS + LINE + 2) / 4; /* at most */
    static constexpr int MORE = COVER - BLOCKS * SLICE;
    static constexpr int EXTRA = MORE > 0 ? MORE : 0; /* float4 of the first block */
    static_assert(EXTRA <= THREADS, "one float4 a thread beyond the slice at most");
};

/* The float4 of a row that a thread has: OWN, the group's width apart. */
template <int COLUMNS, int THREADS, int FOURS = RING_FOURS> struct Owned {
    using S = Slices<COLUMNS, THREADS, FOURS>;
    static constexpr int OWN = FOURS + (S::EXTRA > 0);
    long long first; /* in the tensor */
    int column;      /* of the row; negative before it */

    __device__ __forceinline__ Owned(long long row, int slice) {
        const int before = S::WHOLE ? 0 : (int)(row * COLUMNS % S::LINE);
        const int at = slice * THREADS + threadIdx.x;
        first = (row * COLUMNS - before) / 4 + at;
        column = 4 * at - before;
    }
    /* The first column of the j-th. */
    __device__ __forceinline__ int column_of(int j) const { return column + j * (4 * S::WIDTH); }
    /* Whether every thread's j-th is the row's; known when the loop is unrolled. */
    static __device__ __forceinline__ bool sure(int j) {
        return S::WHOLE || (j > 0 && (j + 1) * (4 * S::WIDTH) <= COLUMNS);
    }
    /* Whether any of the j-th is the row's. */
    __device__ __forceinline__ bool has(int j) const {
        return sure(j) || (column_of(j) > -4 && column_of(j) < COLUMNS);
    }
    __device__ __forceinline__ bool has_all(int j) const {
        return sure(j) || (column_of(j) >= 0 && column_of(j) + 4 <= COLUMNS);
    }
    /* v, with `other` in place of what is not the row's. */
    __device__ __forceinline__ float4 only(int j, float4 v, float other) const {
        const int c = column_of(j);
        if (c < 0 || c >= COLUMNS) v.x = other;
        if (c < -1 || c + 1 >= COLUMNS) v.y = other;
        if (c < -2 || c + 2 >= COLUMNS) v.z = other;
        if (c < -3 || c + 3 >= COLUMNS) v.w = other;
        return v;
    }
    /* Stores what is the row's. */
    __device__ __forceinline__ void store(float *y, int j, float4 v) const {
        const int c = column_of(j);
        float *to = y + 4 * (first + j * S::WIDTH);
        if (has_all(j)) {
            *(float4 *)to = v;
            return;
        }
        if (c >= 0 && c < COLUMNS) to[0] = v.x;
        if (c >= -1 && c + 1 < COLUMNS) to[1] = v.y;
        if (c >= -2 && c + 2 < COLUMNS) to[2] = v.z;
        if (c >= -3 && c + 3 < COLUMNS) to[3] = v.w;
    }
};

/* A block's shared memory. */
template <class Op, class S, int WARPS> struct Ring {
    float4 slice[RING_DEPTH][S::SLICE + S::EXTRA];
    typename Op::State part[2][WARPS]; /* of the warps; of two rows in turn */
    typename Op::Row row[2];
};

/* Starts to copy one float4 of a row, or nothing. */
template <int COLUMNS, int THREADS>
__device__ __forceinline__ void fetch(float4 *slice, const float *x,
                                      const Owned<COLUMNS, THREADS> &own, int j) {
    const float4 *from = (const float4 *)x + own.first;
    if (own.has(j))
        ::copy_async(&slice[j * THREADS + threadIdx.x],
                     from + j * Owned<COLUMNS, THREADS>::S::WIDTH);
}

/* The warp's state of a slice that is there; lane 0 leaves it in `part`. */
template <class Op, int COLUMNS, int THREADS>
__device__ __forceinline__ void take_slice(const float4 *slice, const Owned<COLUMNS, THREADS> &own,
                                           typename Op::State *part) {
    constexpr int OWN = Owned<COLUMNS, THREADS>::OWN;
    float4 v[OWN];
#pragma unroll
    for (int j = 0; j < OWN; j++) {
        constexpr float none = Op::NEUTRAL;
        v[j] = make_float4(none, none, none, none);
        if (own.has(j)) {
            v[j] = slice[j * THREADS + threadIdx.x];
            if (!own.has_all(j)) v[j] = own.only(j, v[j], none);
        }
    }
    typename Op::State s = Op::none();
    Op::take(s, v);
    s = warp_join<Op>(s);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
}

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
template <int WARPS, class Op>
__device__ __forceinline__ void tell(const typename Op::State *part, typename Op::State *told,
                                     unsigned *count) {
    const int lane = threadIdx.x % 32;
    const auto s = warp_join<Op>(lane < WARPS ? part[lane] : Op::none());
    if (lane) return;
    *told = s;
    __threadfence();
    atomicAdd(count, 1u);
}

/* What the warps that work do: rows r, r + groups and so on. */
template <int ROWS, int COLUMNS, int THREADS, class Op, class R>
__device__ __forceinline__ void work(const Op &op, R &ring, const float *x, float *y, int r,
                                     int groups, int slice) {
    using Own = Owned<COLUMNS, THREADS>;
    /* Takes row `row`, which lies in slice s; the next warp tells its state. */
    auto take = [&](int row, int s, int odd) {
        if (row < ROWS) take_slice<Op>(ring.slice[s], Own(row, slice), ring.part[odd]);
        __syncthreads();
    };
    float4 v[Own::OWN];
    /* Puts row `from`, which lies in slice s, into registers, and asks for row `to` in its place.
     */
    auto renew = [&](int from, int to, int s) {
        const Own own(from, slice), later(to, slice);
#pragma unroll
        for (int j = 0; j < Own::OWN; j++) {
            if (own.has(j)) v[j] = ring.slice[s][j * THREADS + threadIdx.x];
            if (to < ROWS) fetch(ring.slice[s], x, later, j);
        }
        ::copy_commit();
    };
#pragma unroll
    for (int d = 0; d < RING_DEPTH; d++) {
        const Own own(r + d * groups, slice);
        for (int j = 0; j < Own::OWN; j++)
            if (r + d * groups < ROWS) fetch(ring.slice[d], x, own, j);
        ::copy_commit();
    }
    ::copy_wait(RING_DEPTH - 1);
    take(r, 0, 0);
    ::copy_wait(RING_DEPTH - 2);
    take(r + groups, 1, 1);
    renew(r, r + RING_DEPTH * groups, 0);
    int s = 1, odd = 0; /* where row r + groups lies; of row r */
#pragma unroll 1
    for (; r < ROWS; r += groups, odd ^= 1) {
        const int next_s = s == RING_DEPTH - 1 ? 0 : s + 1;
        ::copy_wait(RING_DEPTH - 2);
        take(r + 2 * groups, next_s, odd);
        const Own own(r, slice);
#pragma unroll
        for (int j = 0; j < Own::OWN; j++) {
            const auto f = op.mapper(ring.row[odd], 4 * (own.first + j * Own::S::WIDTH));
            if (own.has(j))
                own.store(y, j, make_float4(f(v[j].x), f(v[j].y), f(v[j].z), f(v[j].w)));
        }
        if (r + groups < ROWS) renew(r + groups, r + (RING_DEPTH + 1) * groups, s);
        s = next_s;
    }
}

/* Grid: BLOCKS blocks for each group, all at once; group g takes rows g, g + groups and so on.
 * Block: THREADS that work, a warp that tells and one that hears; they meet once a row, and twice
 * before. told: [ROWS][BLOCKS]; count: [ROWS], zero. */
template <int ROWS, int COLUMNS, int THREADS, class Op>
__global__ void __launch_bounds__(THREADS + RING_TALK, 512 / THREADS)
    row_ring_kernel(Op op, const float *__restrict__ x, float *__restrict__ y,
                    typename Op::State *told, unsigned *count) {
    using S = Slices<COLUMNS, THREADS>;
    extern __shared__ float4 shared_memory[];
    auto &ring = *(Ring<Op, S, THREADS / 32> *)shared_memory;
    const int groups = gridDim.x / S::BLOCKS, slice = blockIdx.x % S::BLOCKS;
    const int warp = threadIdx.x / 32;
    int r = blockIdx.x / S::BLOCKS, odd = 0;
    if (warp < THREADS / 32) {
        work<ROWS, COLUMNS, THREADS>(op, ring, x, y, r, groups, slice);
    } else if (warp == THREADS / 32) {
        const int end = ROWS + 2 * groups; /* as many meetings as the others have */
        for (; r < end; r += groups, odd ^= 1) {
            __syncthreads();
            if (r < ROWS)
                tell<THREADS / 32, Op>(ring.part[odd], &told[(long long)r * S::BLOCKS + slice],
                                       &count[r]);
        }
    } else {
        __syncthreads();
        __syncthreads();
        for (; r < ROWS; r += groups, odd ^= 1) {
            const auto row =
                hear<S::BLOCKS>(op, &told[(long long)r * S::BLOCKS], &count[r], COLUMNS);
            if (threadIdx.x % 32 == 0) ring.row[odd] = row;
            __syncthreads();
        }
    }
}

/* Bytes of scratch that rows_once() needs. */
template <int ROWS, int COLUMNS, int THREADS, class Op> constexpr size_t rows_once_scratch() {
    const size_t ring =
        (size_t)ROWS * Slices<COLUMNS, THREADS>::BLOCKS * sizeof(typename Op::State) +
        ROWS * sizeof(unsigned);
    const size_t passes = row_passes_scratch<ROWS, 1, COLUMNS, Op>();
    return ring > passes ? ring : passes;
}

/* Enqueues y = x mapped by its rows; THREADS of a block work. Both are aligned to 16 bytes. */
template <int ROWS, int COLUMNS, int THREADS, class Op>
static void rows_once(cudaStream_t stream, const Op &op, const float *x, float *y, void *scratch) {
    using S = Slices<COLUMNS, THREADS>;
    static_assert((long long)ROWS * COLUMNS % 4 == 0, "the tensor is whole float4");
    static_assert(S::WHOLE || Op::NEUTRAL == Op::NEUTRAL,
                  "rows are whole slices, or there is a neutral value");
    const auto kernel = row_ring_kernel<ROWS, COLUMNS, THREADS, Op>;
    constexpr size_t shared = sizeof(Ring<Op, S, THREADS / 32>);
    int device = 0, processors = 0, room = 0, each = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (shared <= (size_t)room) {
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, THREADS + RING_TALK, shared);
    }
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
    config.blockDim = dim3(THREADS + RING_TALK);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &together;
    config.numAttrs = 1;
    cudaMemsetAsync(count, 0, ROWS * sizeof(unsigned), stream);
    cudaLaunchKernelEx(&config, kernel, op, x, y, told, count);
}

} // namespace kp
