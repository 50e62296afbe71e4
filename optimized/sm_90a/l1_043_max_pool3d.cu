// provenance: shipped
/* Maxima of 3 x 3 x 3 windows, values 3 apart, stride 2, 1 of padding: 16 x 32 volumes of 128 x 128
 * x 128 -> 62 x 62 x 62.
 *
 * Idea: a block goes down a whole volume, so that each value is read once, from L2 too. Slices come
 * by bulk copies, 64 KB each: two are on their way while a third is worked on. A warp makes four
 * rows of 62 maxima of each slice: a lane joins down its four columns, and along the rows with what
 * its neighbours send. Windows along the depth that are open stay in registers.
 * Floor: 4 bytes an output element and as much of the input over the copy bandwidth, the remaining
 * input over the read bandwidth (4.68 TB/s), 1042 us.
 * Measured: 1091 us on an H200, 96 % of the floor. */
#include "task.h"
#include "extremes.cuh"
#include "hopper.cuh"
#include <math.h>

constexpr int DEPTH = X_DIM2, HEIGHT = X_DIM3, WIDTH = X_DIM4, VOLUMES = X_DIM0 * X_DIM1;
constexpr int SLICE = HEIGHT * WIDTH;
constexpr int ROWS = 4, WARPS = (OUT_DIM3 + ROWS - 1) / ROWS; /* rows of results of a warp */
constexpr int RING = 3;                                       /* slices in shared memory */
static_assert(OUT_DIM2 == DEPTH / 2 - 2 && DEPTH % 2 == 0, "windows reach 7, from -1 on");
static_assert(OUT_DIM3 == HEIGHT / 2 - 2 && HEIGHT % 2 == 0, "the same");
static_assert(OUT_DIM4 == WIDTH / 2 - 2 && WIDTH == 128, "a row is a float4 a lane");

struct Memory {
    float4 slice[RING][HEIGHT][32];
    uint64_t full[RING], empty[RING];
};
static_assert(sizeof(Memory) <= 227 * 1024, "shared memory");

/* A lane's maxima: of columns 2 lane and 2 lane + 1 of the warp's rows. */
struct Maxima {
    float at[ROWS][2];
};

__device__ __forceinline__ Maxima larger_of(const Maxima &a, const Maxima &b) {
    Maxima c;
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int i = 0; i < 2; i++) c.at[r][i] = kp::larger(a.at[r][i], b.at[r][i]);
    return c;
}

__device__ __forceinline__ float4 larger_of(const float4 &a, const float4 &b) {
    return make_float4(kp::larger(a.x, b.x), kp::larger(a.y, b.y), kp::larger(a.z, b.z),
                       kp::larger(a.w, b.w));
}

/* Maxima of a slice, for rows `row` to row + ROWS - 1. Result r is of rows 2 r - 1, 2 r + 2 and
 * 2 r + 5, of columns alike. Rows behind the slice are under no results. */
__device__ __forceinline__ Maxima pool(const float4 (*slice)[32], int row, int lane) {
    constexpr float NONE = -INFINITY;
    float4 odd[ROWS + 3];
    Maxima all;
#pragma unroll
    for (int r = 0; r < ROWS + 3; r++)
        odd[r] = slice[min(max(2 * (row + r) - 1, 0), HEIGHT - 1)][lane];
    if (row == 0) odd[0] = make_float4(NONE, NONE, NONE, NONE);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const float4 even = slice[min(2 * (row + r) + 2, HEIGHT - 1)][lane];
        const float4 v = larger_of(larger_of(odd[r], odd[r + 3]), even);
        const float left = __shfl_up_sync(~0u, v.w, 1);
        const float first = __shfl_down_sync(~0u, v.y, 1);
        const float second = __shfl_down_sync(~0u, kp::larger(v.x, v.w), 1);
        all.at[r][0] = kp::larger(kp::larger(lane ? left : NONE, v.z), first);
        all.at[r][1] = kp::larger(v.y, second);
    }
    return all;
}

/* One thread: copies the slices of a volume into the ring. */
__device__ __forceinline__ void fetch_slices(Memory &memory, const float *volume) {
    for (int d = 0; d < DEPTH; d++) {
        const int slot = d % RING;
        const uint32_t full = kp::shared_address(&memory.full[slot]);
        kp::bar_wait(kp::shared_address(&memory.empty[slot]), (d / RING + 1) % 2);
        kp::bar_expect(full, SLICE * 4);
        kp::copy_bulk<1>(kp::shared_address(memory.slice[slot]), volume + (long long)d * SLICE,
                         SLICE * 4, full);
    }
}

/* One warp: its rows of a volume's results. Result d is of slices 2 d - 1, 2 d + 2 and 2 d + 5. */
__device__ __forceinline__ void join_slices(Memory &memory, int row, int lane, float *y) {
    int slot = 0, parity = 0;
    const auto next = [&] {
        kp::bar_wait(kp::shared_address(&memory.full[slot]), parity);
        const Maxima m = pool(memory.slice[slot], row, lane);
        __syncwarp();
        kp::bar_arrive_warp<1>(kp::shared_address(&memory.empty[slot]));
        if (++slot == RING) slot = 0, parity ^= 1;
        return m;
    };
    Maxima now, one, two; /* windows that begin at the last odd slice, the one before, and so on */
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int i = 0; i < 2; i++) now.at[r][i] = one.at[r][i] = two.at[r][i] = -INFINITY;
#pragma unroll 1
    for (int d = -2; d < OUT_DIM2; d++) {
        const Maxima three = two;
        two = larger_of(one, next());
        one = now;
        now = next();
        const Maxima all = larger_of(three, now);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (d >= 0 && row + r < OUT_DIM3 && 2 * lane < OUT_DIM4)
                *(float2 *)(y + (d * OUT_DIM3 + row + r) * OUT_DIM4 + 2 * lane) =
                    make_float2(all.at[r][0], all.at[r][1]);
    }
}

/* A block makes a volume of results; its last warp fetches. */
__global__ void __launch_bounds__(32 * (WARPS + 1))
    max_pool(const float *__restrict__ x, float *__restrict__ y) {
    extern __shared__ float4 shared_memory[];
    auto &memory = *(Memory *)shared_memory;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int i = 0; i < RING; i++) {
            kp::bar_init(kp::shared_address(&memory.full[i]), 1);
            kp::bar_init(kp::shared_address(&memory.empty[i]), WARPS * kp::WARP_ARRIVALS);
        }
        kp::bar_init_done();
    }
    __syncthreads();
    if (warp < WARPS)
        join_slices(memory, warp * ROWS, lane,
                    y + (long long)blockIdx.x * OUT_DIM2 * OUT_DIM3 * OUT_DIM4);
    else if (lane == 0)
        fetch_slices(memory, x + (long long)blockIdx.x * DEPTH * SLICE);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    kp::launch_cluster<1>(max_pool, VOLUMES, 32 * (WARPS + 1), stream, in->x, out->out);
}
