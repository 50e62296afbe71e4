// provenance: shipped
/* Maxima of 4 x 4 windows, 1 of padding: 32 x 64 planes of 512 x 512 -> 511 x 511.
 *
 * Idea: a warp goes down a third of a plane, and has each row whole, four float4 a lane, so that
 * nothing waits for another warp. Three rows are on their way while one is worked on. Down the
 * columns a maximum is of two pairs of rows, in registers; along a row a lane gets what it lacks
 * from its neighbours. A row of 511 results begins one float earlier than the one before, modulo
 * 4: a warp begins at a row that begins at a whole float4, and then the code of each of four rows
 * knows where its row lies. Strips overlap: 1.012 times the input is read.
 * Floor: 4 bytes an input and 4 an output element over the copy bandwidth, 1000 us.
 * Measured: 1121 us on an H200, 89 % of the floor (with pools.cuh 1291). */
#include "task.h"
#include "row_windows.cuh"
#include <math.h>

constexpr int ROWS = X_DIM2, COLUMNS = X_DIM3, PLANES = X_DIM0 * X_DIM1;
constexpr int FOURS = COLUMNS / 128;               /* float4 of a row that a lane has */
constexpr int PLANE = OUT_DIM2 * OUT_DIM3;         /* results */
constexpr int STRIP = 172;                         /* rows of results that a warp makes */
constexpr int STRIPS = (OUT_DIM2 + 2) / STRIP + 1; /* the first begins up to 3 rows early */
constexpr int WARPS = 4;                           /* of a block */
static_assert(OUT_DIM2 == ROWS - 1 && OUT_DIM3 == COLUMNS - 1, "4 x 4 windows, 1 of padding");
static_assert(COLUMNS % 128 == 0, "rows are whole float4 of a warp");
static_assert(STRIP % 4 == 0, "strips begin at a whole float4, as planes do");

/* A lane's part of a row: column 4 (32 j + lane) + i is at[j][i]. */
struct Part {
    float at[FOURS][4];
};

__device__ __forceinline__ void read(const float *__restrict__ row, int lane, Part &to) {
#pragma unroll
    for (int j = 0; j < FOURS; j++) {
        const float4 v = __ldg((const float4 *)row + 32 * j + lane);
        to.at[j][0] = v.x, to.at[j][1] = v.y, to.at[j][2] = v.z, to.at[j][3] = v.w;
    }
}

__device__ __forceinline__ Part larger_of(const Part &a, const Part &b) {
    Part c;
#pragma unroll
    for (int j = 0; j < FOURS; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) c.at[j][i] = kp::larger(a.at[j][i], b.at[j][i]);
    return c;
}

/* Joins along a row, and stores it at y, which is `shift` floats behind a whole float4. Lane 0 has
 * what follows lane 31's j-th float4 in its next one, and lane 31 what precedes lane 0's in the one
 * before. */
__device__ __forceinline__ void store(const Part &m, int lane, int shift, float *__restrict__ y) {
    const float none[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
#pragma unroll
    for (int j = 0; j < FOURS; j++) {
        const auto &before = j > 0 ? m.at[j - 1] : none;
        const auto &behind = j + 1 < FOURS ? m.at[j + 1] : none;
        kp::store_windows<OUT_DIM3>([&](int i) { return kp::near(m.at[j], before, behind, i); },
                                    4 * (32 * j + lane) - shift, shift, y);
    }
    if (lane == 31) kp::store_last_windows<OUT_DIM3>(m.at[FOURS - 1], shift, y);
}

/* Row r of results is of rows r - 1 to r + 2. Rows of padding are copies of the nearest: these are
 * in the same windows. */
__global__ void __launch_bounds__(32 * WARPS, 12 / WARPS)
    max_pool(const float *__restrict__ x, float *__restrict__ y) {
    const int lane = threadIdx.x % 32, unit = blockIdx.x * WARPS + threadIdx.x / 32;
    const int plane = unit / STRIPS;
    if (plane >= PLANES) return;
    x += (long long)plane * ROWS * COLUMNS, y += (long long)plane * PLANE;
    /* A row begins three floats later than the one before, modulo 4. */
    int row = unit % STRIPS * STRIP - (-(plane * (PLANE % 4)) & 3);
    const int end = min(row + STRIP, OUT_DIM2), last = min(end + 1, ROWS - 1);
    const auto at = [&](int r) { return x + min(max(r, 0), last) * COLUMNS; };
    Part v[4], pair[2]; /* row r + 2 of the input is v[r % 4], r from the first on */
    read(at(row - 1), lane, v[1]);
    read(at(row), lane, v[2]);
    read(at(row + 1), lane, v[3]);
    read(at(row + 2), lane, v[0]);
    pair[0] = larger_of(v[1], v[2]), pair[1] = larger_of(v[2], v[3]);
    read(at(row + 3), lane, v[1]);
    read(at(row + 4), lane, v[2]);
#pragma unroll 1
    for (; row < end; row += 4)
#pragma unroll
        for (int u = 0; u < 4; u++) {
            const int r = row + u;
            const Part now = larger_of(v[(u + 3) % 4], v[u]);
            const Part all = larger_of(pair[u % 2], now);
            pair[u % 2] = now;
            read(at(r + 5), lane, v[(u + 3) % 4]);
            if (r >= 0 && r < end) store(all, lane, (4 - u) % 4, y + r * OUT_DIM3);
        }
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    max_pool<<<(PLANES * STRIPS + WARPS - 1) / WARPS, 32 * WARPS, 0, stream>>>(in->x, out->out);
}
