/* line_windows.cuh: pools (pools.cuh) of one axis and stride 1, windows of 2^n values: rows of
 * whole float4 to rows of any length.
 *
 * A warp makes a tile of 384 results of a row, alone: it copies what lies under it to shared
 * memory, joins, and stores. No barrier makes it wait for other warps, so that some of them read
 * while others store; and blocks are small and end after one tile, so that what the chip reads at a
 * time lies close together. A tile begins where a line of memory does, at or before its row's first
 * result, so that all stores are whole float4. Its windows then begin anywhere in a float4 of the
 * input: a branch of the code for each of the four places. What neighbouring tiles share comes from
 * L2. Bytes over the copy bandwidth limit it. Reaches 95 % of the floor (l1_041, l1_044).
 *
 * A thread joins the windows of twelve neighbours by doubling: pairs of values, pairs of pairs and
 * so on. It reads few float4 for that: nine where windows reach over 22 values. As it has three
 * float4 of results, an odd number, lanes meet in no bank. Results go through shared memory in the
 * tile's place, so that a warp stores neighbours. */
#pragma once
#include "async.cuh"
#include "pools.cuh"

namespace kp {
namespace line_windows {

constexpr int WARPS = 4, OWN = 3; /* of a block; float4 of results a thread, odd */
constexpr int TILE = 32 * 4 * OWN, LINE = 32;

/* ROWS rows with windows W. */
template <class W_, int ROWS> struct Lines {
    using W = W_;
    static_assert(W::SIZE % 4 == 0, "rows are whole float4: each is all padding or none");
    static_assert(W::STRIDE == 1 && (W::KERNEL & (W::KERNEL - 1)) == 0, "windows double");
    static constexpr int TILES = (W::OUT + LINE - 1 + TILE - 1) / TILE; /* of a row, at most */
    static_assert((long long)ROWS * TILES < 1LL << 30, "tiles have numbers");
    static constexpr int ALL = ROWS * TILES, BLOCKS = (ALL + WARPS - 1) / WARPS;
    static constexpr int READ = (3 + W::under(4 * OWN) + 3) / 4; /* float4 that a thread reads */
    static constexpr int LENGTH = 31 * OWN + READ;               /* and a warp */

    long long row, begin; /* of a tile; where in y the row begins */
    int first;            /* result of the row; negative before it */
    __device__ __forceinline__ Lines(int tile) {
        row = tile / TILES, begin = row * W::OUT;
        first = tile % TILES * TILE - (int)(begin % LINE);
    }
};

/* Copies what lies under a tile, padding included. */
template <class P, class L>
__device__ __forceinline__ void fetch(const float *__restrict__ x, const L &at, float4 *tile) {
    constexpr int FOURS = L::W::SIZE / 4;
    const int from = (at.first - L::W::PAD) >> 2;
    const float4 *row = (const float4 *)x + at.row * FOURS;
#pragma unroll
    for (int k = 0; k < L::LENGTH; k += 32) {
        const int j = k + threadIdx.x % 32, four = from + j;
        if (j >= L::LENGTH) break;
        if ((unsigned)four < (unsigned)FOURS)
            ::copy_async(tile + j, row + four);
        else
            tile[j] = make_float4(P::none(), P::none(), P::none(), P::none());
    }
    ::copy_commit();
    ::copy_wait(0);
    __syncwarp(); /* what the other lanes copied is there, too */
}

/* Joins this thread's windows of a tile, the first of which begins at value AT of a float4. */
template <class P, class L, int AT>
__device__ __forceinline__ void join(const float4 *tile, float (&results)[4 * OWN]) {
    using W = typename L::W;
    float v[4 * L::READ];
#pragma unroll
    for (int j = 0; j < L::READ; j++) {
        const float4 a = tile[threadIdx.x % 32 * OWN + j];
        v[4 * j] = a.x, v[4 * j + 1] = a.y, v[4 * j + 2] = a.z, v[4 * j + 3] = a.w;
    }
#pragma unroll
    for (int taps = 1; taps < W::KERNEL; taps *= 2)
#pragma unroll
        for (int i = AT; i + taps * W::DILATION < 4 * L::READ; i++)
            v[i] = P::join(v[i], v[i + taps * W::DILATION]);
#pragma unroll
    for (int i = 0; i < 4 * OWN; i++) results[i] = P::template result<W::KERNEL>(v[AT + i]);
}

/* Stores a tile of results, which overwrites what they were made of. */
template <class L>
__device__ __forceinline__ void store(const float (&results)[4 * OWN], const L &at, float4 *tile,
                                      float *__restrict__ y) {
    const int lane = threadIdx.x % 32;
    __syncwarp(); /* all lanes have read */
#pragma unroll
    for (int j = 0; j < OWN; j++) {
        const float *const r = results + 4 * j;
        tile[lane * OWN + j] = make_float4(r[0], r[1], r[2], r[3]);
    }
    __syncwarp();
#pragma unroll
    for (int j = 0; j < OWN; j++) {
        const float4 r = tile[j * 32 + lane];
        const float w[4] = {r.x, r.y, r.z, r.w};
        store_results<L::W::OUT>(y + at.begin, at.first + 4 * (j * 32 + lane), w);
    }
}

/* Grid: BLOCKS. Up to 56 registers a thread. */
template <class P, class L>
__global__ void __launch_bounds__(WARPS * 32, 9)
    kernel(const float *__restrict__ x, float *__restrict__ y) {
    __shared__ float4 tiles[WARPS][L::LENGTH];
    const int number = blockIdx.x * WARPS + threadIdx.x / 32;
    float4 *const tile = tiles[threadIdx.x / 32];
    if (L::ALL % WARPS && number >= L::ALL) return;
    const L at(number);
    float results[4 * OWN];
    fetch<P>(x, at, tile);
    switch ((at.first - L::W::PAD) & 3) {
    case 0: join<P, L, 0>(tile, results); break;
    case 1: join<P, L, 1>(tile, results); break;
    case 2: join<P, L, 2>(tile, results); break;
    default: join<P, L, 3>(tile, results); break;
    }
    store(results, at, tile, y);
}

} // namespace line_windows

/* Enqueues y = P of the windows W of each of ROWS rows of x. x is aligned to 16 bytes, y to 128. */
template <class P, class W, int ROWS>
static void pool_lines(const float *x, float *y, cudaStream_t stream) {
    using L = line_windows::Lines<W, ROWS>;
    line_windows::kernel<P, L><<<L::BLOCKS, line_windows::WARPS * 32, 0, stream>>>(x, y);
}

} // namespace kp
