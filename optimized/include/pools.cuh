/* pools.cuh: maxima and means of windows over one to three axes, of any size, stride, padding and
 * dilation. An axis that a pool does not have is Windows<1, 1>.
 *
 * A block makes some rows of each slice of the result, and goes down the depth. A thread owns some
 * columns: it reads all rows of a slice that lie under the block's results at once, joins them down
 * each column, and joins that to the windows along the depth that are open. The next slices are
 * read while it works on the last. A window along the depth that is complete leaves one row for
 * each row of results. It goes to shared memory, where a thread joins the windows of four
 * neighbours along it. There each row is shifted, so that what a thread reads and what it stores
 * are whole float4, however long the rows are. An element comes from DRAM once, and from L2 as
 * often as strips of rows overlap. Bytes over the copy bandwidth limit it. Reaches 96 % of the
 * floor (l1_045, l1_046).
 *
 * A pool P has
 *   float none()            what padding counts as
 *   float join(a, b)        associative and commutative
 *   float result<TAPS>(v)   of a whole window of TAPS values, padding included */
#pragma once
#include "extremes.cuh"
#include "windows.cuh"
#include <math.h>

namespace kp {

/* The largest value; NaN if there is one. Padding does not take part. */
struct MaxOfWindow {
    static __device__ __forceinline__ float none() { return -INFINITY; }
    static __device__ __forceinline__ float join(float a, float b) { return larger(a, b); }
    template <int TAPS> static __device__ __forceinline__ float result(float v) { return v; }
};

/* The mean; padding counts as zeros. A division would take longer where v is subnormal. */
struct MeanOfWindow {
    static __device__ __forceinline__ float none() { return 0.0f; }
    static __device__ __forceinline__ float join(float a, float b) { return a + b; }
    template <int TAPS> static __device__ __forceinline__ float result(float v) {
        return v * (1.0f / TAPS);
    }
};

/* The constants of a pool over D, H and W (Windows), and what a block does of it: ROWS rows of
 * DEPTH slices of the result, by THREADS threads that own COLUMNS columns of the input each. Where
 * rows are longer than that it does a part of each row, a TILE. */
template <class D_, class H_, class W_, int THREADS_, int COLUMNS_, int ROWS_ = 1, int DEPTH_ = 1>
struct PoolShape {
    using D = D_;
    using H = H_;
    using W = W_;
    static constexpr int THREADS = THREADS_, COLUMNS = COLUMNS_, ROWS = ROWS_, DEPTH = DEPTH_;
    static constexpr int TAPS = D::KERNEL * H::KERNEL * W::KERNEL;
    static constexpr long long PLANE = (long long)D::SIZE * H::SIZE * W::SIZE;
    static_assert(PLANE < 1LL << 31, "a plane has fewer than 2^31 elements");

    /* Results before a tile's first that share its 32 bytes of memory: at most so many. */
    static constexpr int SHIFT = W::OUT % 8 == 0   ? 0
                                 : W::OUT % 4 == 0 ? 4
                                 : W::OUT % 2 == 0 ? 6
                                                   : 7;
    static constexpr bool WHOLE = W::SIZE <= THREADS * COLUMNS; /* rows are not cut */
    static constexpr int ROOM = THREADS * COLUMNS - 31 - SHIFT * W::STRIDE - W::REACH;
    static_assert(WHOLE || ROOM >= 7 * W::STRIDE,
                  "more threads or columns: none is left for a tile");
    static constexpr int TILE =
        WHOLE ? (W::OUT + SHIFT + 7) / 8 * 8 : (ROOM / W::STRIDE + 1) / 8 * 8;
    static constexpr int FOURS = TILE / 4, SPAN = W::under(TILE);
    static constexpr int READ = (W::under(4) + 3) / 4;          /* float4 under four results */
    static constexpr int LINE = (FOURS - 1) * W::STRIDE + READ; /* float4 of a row when shared */

    static constexpr int BEYOND = W::under(W::OUT) - W::PAD - W::SIZE; /* places behind a row */
    static constexpr int PADDING = W::PAD + (BEYOND > 0 ? BEYOND : 0); /* and all of a row's */

    static constexpr int TILES = (W::OUT + SHIFT + TILE - 1) / TILE;
    static constexpr int STRIPS = (H::OUT + ROWS - 1) / ROWS;
    static constexpr int SEGMENTS = (D::OUT + DEPTH - 1) / DEPTH;
    static constexpr int UNDER = H::under(ROWS);                /* rows of the input */
    static constexpr int OPEN = (D::REACH - 1) / D::STRIDE + 1; /* windows along the depth */
    static constexpr int LINES = DEPTH > 1 ? 2 : 1;             /* buffers, in turns */
    static_assert(LINES * ROWS * LINE * 16 <= 48 * 1024, "fewer rows: shared memory has 48 KB");

    /* Step s reads slices s * STRIDE - PAD + i of the input, i < STRIDE, and window s - q is open,
     * q < OPEN. Whether slice i belongs to it. */
    static __host__ __device__ constexpr bool taps(int q, int i) {
        const int at = q * D::STRIDE + i;
        return at % D::DILATION == 0 && at < D::REACH;
    }
};

/* A block's place. */
struct PoolPlace {
    int plane, depth, row, tile; /* of the result */
};

/* Reads the slices of a step for windows from place.depth on, `results` of them. */
template <class P, class S>
__device__ __forceinline__ void pool_read(const float *__restrict__ x, const PoolPlace &place,
                                          int first, int step, int results,
                                          float (&v)[S::D::STRIDE][S::UNDER][S::COLUMNS]) {
    using D = typename S::D;
    using H = typename S::H;
    using W = typename S::W;
    const int top = place.row * H::STRIDE - H::PAD;
    const int slice = (place.depth + step) * D::STRIDE - D::PAD;
    const float *in =
        x + place.plane * S::PLANE + (slice * H::SIZE + top) * (long long)W::SIZE + first;
#pragma unroll
    for (int i = 0; i < D::STRIDE; i++) {
        bool wanted = false;
#pragma unroll
        for (int q = 0; q < S::OPEN; q++)
            if (S::taps(q, i)) wanted = wanted || (unsigned)(step - q) < (unsigned)results;
        wanted = wanted && (unsigned)(slice + i) < (unsigned)D::SIZE;
#pragma unroll
        for (int r = 0; r < S::UNDER; r++)
#pragma unroll
            for (int c = 0; c < S::COLUMNS; c++) {
                const bool inside =
                    (unsigned)(top + r) < (unsigned)H::SIZE && first + c * S::THREADS < W::SIZE;
                const int at = (i * H::SIZE + r) * W::SIZE + c * S::THREADS;
                v[i][r][c] = wanted && inside ? __ldg(in + at) : P::none();
            }
    }
}

/* Joins what a step read to the windows that are open. */
template <class P, class S>
__device__ __forceinline__ void pool_join(const float (&v)[S::D::STRIDE][S::UNDER][S::COLUMNS],
                                          float (&open)[S::OPEN][S::ROWS][S::COLUMNS]) {
    using H = typename S::H;
#pragma unroll
    for (int i = 0; i < S::D::STRIDE; i++)
#pragma unroll
        for (int r = 0; r < S::ROWS; r++)
#pragma unroll
            for (int c = 0; c < S::COLUMNS; c++) {
                float all = v[i][r * H::STRIDE][c];
#pragma unroll
                for (int k = 1; k < H::KERNEL; k++)
                    all = P::join(all, v[i][r * H::STRIDE + k * H::DILATION][c]);
#pragma unroll
                for (int q = 0; q < S::OPEN; q++)
                    if (S::taps(q, i)) open[q][r][c] = P::join(open[q][r][c], all);
            }
}

/* Makes room for the next windows along the depth. */
template <class P, class S>
__device__ __forceinline__ void pool_next(float (&open)[S::OPEN][S::ROWS][S::COLUMNS]) {
#pragma unroll
    for (int r = 0; r < S::ROWS; r++)
#pragma unroll
        for (int c = 0; c < S::COLUMNS; c++) {
#pragma unroll
            for (int q = S::OPEN - 1; q > 0; q--) open[q][r][c] = open[q - 1][r][c];
            open[0][r][c] = P::none();
        }
}

/* How far the tiles of a row whose first result is y[at] are shifted to the left. */
template <class S> __device__ __forceinline__ int pool_shift(long long at) {
    return S::SHIFT ? (int)at & 7 : 0;
}

/* The column under the first place of such a row's tile. */
template <class S> __device__ __forceinline__ int pool_start(long long at, int tile) {
    return (tile * S::TILE - pool_shift<S>(at)) * S::W::STRIDE - S::W::PAD;
}

/* Writes rows to shared memory; the first window of a line begins at its first place. */
template <class P, class S>
__device__ __forceinline__ void pool_keep(const float (&row)[S::ROWS][S::COLUMNS], long long at,
                                          int tile, int first, float4 (*line)[S::LINE]) {
    using W = typename S::W;
#pragma unroll
    for (int r = 0; r < S::ROWS; r++) {
        const int start = pool_start<S>(at + r * W::OUT, tile);
        float *const to = (float *)line[r];
#pragma unroll
        for (int c = 0; c < S::COLUMNS; c++) {
            const int column = first + c * S::THREADS;
            if (column < W::SIZE && (unsigned)(column - start) < (unsigned)S::SPAN)
                to[column - start] = row[r][c];
        }
    }
    if constexpr (S::PADDING > 0)
        for (int i = threadIdx.x; i < S::ROWS * S::PADDING; i += S::THREADS) {
            const int r = i / S::PADDING, j = i % S::PADDING;
            const int start = pool_start<S>(at + r * W::OUT, tile);
            const int place = (j < W::PAD ? j - W::PAD : W::SIZE + j - W::PAD) - start;
            if ((unsigned)place < (unsigned)S::SPAN) ((float *)line[r])[place] = P::none();
        }
}

/* Joins windows along the lines, and stores `rows` rows of results from y[at] on. */
template <class P, class S>
__device__ __forceinline__ void pool_store(const float4 (*line)[S::LINE], long long at, int tile,
                                           int rows, float *__restrict__ y) {
    using W = typename S::W;
    for (int unit = threadIdx.x; unit < S::ROWS * S::FOURS; unit += S::THREADS) {
        const int r = unit / S::FOURS, four = unit % S::FOURS;
        const long long begin = at + r * W::OUT;
        const int column = tile * S::TILE - pool_shift<S>(begin) + four * 4;
        if (r >= rows) break;
        float v[S::READ * 4], w[4];
#pragma unroll
        for (int j = 0; j < S::READ; j++) {
            const float4 a = line[r][four * W::STRIDE + j];
            v[4 * j] = a.x, v[4 * j + 1] = a.y, v[4 * j + 2] = a.z, v[4 * j + 3] = a.w;
        }
#pragma unroll
        for (int e = 0; e < 4; e++) {
            w[e] = v[e * W::STRIDE];
#pragma unroll
            for (int k = 1; k < W::KERNEL; k++)
                w[e] = P::join(w[e], v[e * W::STRIDE + k * W::DILATION]);
            w[e] = P::template result<S::TAPS>(w[e]);
        }
        if (column >= 0 && column + 4 <= W::OUT)
            *(float4 *)(y + begin + column) = make_float4(w[0], w[1], w[2], w[3]);
        else
#pragma unroll
            for (int e = 0; e < 4; e++)
                if ((unsigned)(column + e) < (unsigned)W::OUT) y[begin + column + e] = w[e];
    }
}

/* Blocks are numbered along tiles, strips of rows, segments of the depth, planes. 128 registers a
 * thread: without a bound the compiler saves some and moves loads down to their use. */
template <class P, class S>
__global__ void __launch_bounds__(S::THREADS, S::THREADS < 512 ? 512 / S::THREADS : 1)
    pool_windows_kernel(const float *__restrict__ x, float *__restrict__ y) {
    using W = typename S::W;
    __shared__ float4 line[S::LINES][S::ROWS][S::LINE];
    const int strip = blockIdx.x / S::TILES, segment = strip / S::STRIPS;
    const PoolPlace place = {segment / S::SEGMENTS, segment % S::SEGMENTS * S::DEPTH,
                             strip % S::STRIPS * S::ROWS, (int)(blockIdx.x % S::TILES)};
    const int results = S::D::OUT % S::DEPTH ? min(S::DEPTH, S::D::OUT - place.depth) : S::DEPTH;
    const int steps = results + S::OPEN - 1, rows = S::H::OUT - place.row;
    int first = threadIdx.x; /* this thread's first column: tiles begin at whole lines of memory */
    if (!S::WHOLE)
        first += max(0, (place.tile * S::TILE - S::SHIFT) * W::STRIDE - W::PAD) / 32 * 32;
    float v[S::D::STRIDE][S::UNDER][S::COLUMNS], open[S::OPEN][S::ROWS][S::COLUMNS];
#pragma unroll
    for (int q = 0; q < S::OPEN; q++) pool_next<P, S>(open);
    pool_read<P, S>(x, place, first, 0, results, v);
    for (int step = 0; step < steps; step++) {
        pool_join<P, S>(v, open);
        if (step + 1 < steps) pool_read<P, S>(x, place, first, step + 1, results, v);
        if (step >= S::OPEN - 1) {
            const int depth = place.depth + step - (S::OPEN - 1);
            const long long slice = (long long)place.plane * S::D::OUT + depth;
            const long long at = (slice * S::H::OUT + place.row) * W::OUT;
            pool_keep<P, S>(open[S::OPEN - 1], at, place.tile, first, line[step % S::LINES]);
            __syncthreads();
            pool_store<P, S>(line[step % S::LINES], at, place.tile, rows, y);
        }
        pool_next<P, S>(open);
    }
}

/* Enqueues y = P of the windows of each of `planes` planes of x; y is aligned to 32 bytes. */
template <class P, class S>
static void pool_windows(const float *x, float *y, int planes, cudaStream_t stream) {
    const long long blocks = (long long)planes * S::SEGMENTS * S::STRIPS * S::TILES;
    pool_windows_kernel<P, S><<<(unsigned)blocks, S::THREADS, 0, stream>>>(x, y);
}

} // namespace kp
