// provenance: shipped
/* Maxima of 4 x 4 windows, 1 of padding: 32 x 64 planes of 512 x 512 -> 511 x 511.
 *
 * Idea: a block makes 16 rows of a plane, a float4 of columns a thread, and reads the 19 rows under
 * them at once. It joins down the columns in registers; along a row a lane gets what it lacks from
 * its neighbours, a warp through shared memory. The results, one run of memory, go to shared
 * memory, and a bulk copy takes them away (strips.cuh). A row of 511 results begins one float
 * earlier than the one before: a strip begins at a row that begins at a whole sector, and then the
 * code of each row knows where its results are whole float4. Strips overlap: the L2 sends 1.19
 * times the input, the memory once.
 * Floor: 4 bytes an input and 4 an output element over the copy bandwidth, 1000 us.
 * Measured: 1015 us on an H200, 98 % of the floor (the portable kernel: 1121); 1413 us on an
 * H100. */
#include "task.h"
#include "row_windows.cuh"
#include "strips.cuh"
#include <math.h>

constexpr int ROWS = X_DIM2, COLUMNS = X_DIM3, PLANES = X_DIM0 * X_DIM1;
constexpr int PLANE = OUT_DIM2 * OUT_DIM3;         /* results */
constexpr int STRIP = 16;                          /* rows of results that a block makes */
constexpr int STRIPS = (OUT_DIM2 + 6) / STRIP + 1; /* the first begins up to 7 rows early */
constexpr int THREADS = COLUMNS / 4, WARPS = THREADS / 32;
static_assert(OUT_DIM2 == ROWS - 1 && OUT_DIM3 == COLUMNS - 1, "4 x 4 windows, 1 of padding");
static_assert(COLUMNS % 128 == 0, "rows are whole float4 of warps");
static_assert(STRIP % 8 == 0, "strips begin at a whole sector, as planes do");

struct Memory {
    float results[STRIP * OUT_DIM3]; /* first: aligned for the bulk copy */
    float4 first[WARPS + 1][STRIP];  /* the rows' float4 of each warp's first lane; padding */
    float4 last[WARPS + 1][STRIP];   /* padding; and of each warp's last lane */
};

__device__ __forceinline__ float4 larger_of(const float4 &a, const float4 &b) {
    return make_float4(kp::larger(a.x, b.x), kp::larger(a.y, b.y), kp::larger(a.z, b.z),
                       kp::larger(a.w, b.w));
}

/* Maxima down the columns: m[r] is of rows row + r - 1 to row + r + 2 of the input. Rows of padding
 * are copies of the nearest: these are in the same windows. */
__device__ __forceinline__ void join_columns(const float *__restrict__ x, int row,
                                             float4 (&m)[STRIP + 3]) {
#pragma unroll
    for (int r = 0; r < STRIP + 3; r++)
        m[r] = __ldg((const float4 *)(x + min(max(row + r - 1, 0), ROWS - 1) * COLUMNS));
#pragma unroll
    for (int r = 0; r < STRIP + 2; r++) m[r] = larger_of(m[r], m[r + 1]);
#pragma unroll
    for (int r = 0; r < STRIP; r++) m[r] = larger_of(m[r], m[r + 2]);
}

/* Shows the other warps what they need of this one. The whole block calls it. */
__device__ __forceinline__ void share_edges(const float4 (&m)[STRIP + 3], Memory &memory) {
    const float4 none = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int r = 0; r < STRIP; r++) {
        if (lane == 0) memory.first[warp][r] = m[r];
        if (lane == 31) memory.last[warp + 1][r] = m[r];
    }
    if (threadIdx.x < STRIP) memory.first[WARPS][threadIdx.x] = memory.last[0][threadIdx.x] = none;
    __syncthreads();
}

/* Joins along a row, and stores it at y, which is `shift` floats behind a whole float4. `other` is
 * what lies next to the warp: for lane 0 behind its last lane, for lane 31 before its first. */
__device__ __forceinline__ void join_row(const float4 &own, const float4 &other, int shift,
                                         float *y) {
    const float m[4] = {own.x, own.y, own.z, own.w}, o[4] = {other.x, other.y, other.z, other.w};
    kp::store_windows<OUT_DIM3>([&](int i) { return kp::near(m, o, o, i); },
                                4 * (int)threadIdx.x - shift, shift, y);
    if (threadIdx.x + 1 >= THREADS) kp::store_last_windows<OUT_DIM3>(m, shift, y);
}

/* Row r of results is of rows r - 1 to r + 2. Five blocks an SM: 100 registers a thread. */
__global__ void __launch_bounds__(THREADS, 640 / THREADS)
    max_pool(const float *__restrict__ x, float *__restrict__ y) {
    __shared__ __align__(128) Memory memory;
    const int plane = blockIdx.x / STRIPS, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = (int)(blockIdx.x % STRIPS) * STRIP - (-(plane * (PLANE % 8)) & 7);
    if (row >= OUT_DIM2) return;
    float4 m[STRIP + 3];
    join_columns(x + (long long)plane * ROWS * COLUMNS + threadIdx.x * 4, row, m);
    share_edges(m, memory);
    const float4 *const edge = lane ? memory.last[warp] : memory.first[warp + 1];
#pragma unroll
    for (int r = 0; r < STRIP; r++) {
        float4 other = m[r];
        if (lane == 0 || lane == 31) other = edge[r];
        join_row(m[r], other, (4 - r % 4) % 4, memory.results + r * OUT_DIM3);
    }
    kp::strip_store(y + (long long)plane * PLANE + row * OUT_DIM3, memory.results,
                    max(-row, 0) * OUT_DIM3, min(STRIP, OUT_DIM2 - row) * OUT_DIM3);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    max_pool<<<PLANES * STRIPS, THREADS, 0, stream>>>(in->x, out->out);
}
