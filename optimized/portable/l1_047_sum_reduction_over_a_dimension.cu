// provenance: shipped
/* Sum over the middle axis: x [128][4096][4095] -> out [128][1][4095].
 *
 * Idea: a warp reads 1 KB of a row, eight columns a lane; sixteen warps share 256 columns, four
 * rows each in flight, and join through shared memory. Few columns a block make neighbouring blocks
 * read the same rows at the same time. Rows have odd length, so that float4 would not be aligned.
 * Floor: 4 bytes an element over the read bandwidth (4.68 TB/s), 1835 us.
 * Measured on an H200: 1893 us, 0.97 of the floor's speed. */
#include "task.h"

constexpr int ROWS = X_DIM1, COLUMNS = X_DIM2, TILE = 256;
constexpr int WARPS = 16, WIDE = TILE / 32, DEEP = 4; /* columns a lane; rows in flight */
constexpr int TILES = (COLUMNS + TILE - 1) / TILE;
static_assert(ROWS % (WARPS * DEEP) == 0, "whole batches of rows");

/* Grid: x the tiles of columns, y the batch. One block at least: else the compiler saves registers
 * and keeps fewer loads in flight. */
__global__ void __launch_bounds__(32 * WARPS, 1)
    sum_kernel(const float *__restrict__ x, float *__restrict__ y) {
    __shared__ float part[WARPS][TILE];
    const float *in = x + ((long long)blockIdx.y * ROWS + threadIdx.y) * COLUMNS;
    int column[WIDE]; /* past the edge: the last, not stored */
    float sum[WIDE] = {};
#pragma unroll
    for (int c = 0; c < WIDE; c++)
        column[c] = min((int)(blockIdx.x * TILE + c * 32 + threadIdx.x), COLUMNS - 1);
    for (int r = 0; r < ROWS; r += WARPS * DEEP) {
        float v[DEEP][WIDE];
#pragma unroll
        for (int d = 0; d < DEEP; d++)
#pragma unroll
            for (int c = 0; c < WIDE; c++) v[d][c] = in[(r + d * WARPS) * COLUMNS + column[c]];
#pragma unroll
        for (int c = 0; c < WIDE; c++) sum[c] += (v[0][c] + v[2][c]) + (v[1][c] + v[3][c]);
    }
#pragma unroll
    for (int c = 0; c < WIDE; c++) part[threadIdx.y][c * 32 + threadIdx.x] = sum[c];
    __syncthreads();
    const int i = threadIdx.y * 32 + threadIdx.x, to = blockIdx.x * TILE + i;
    if (i >= TILE || to >= COLUMNS) return;
#pragma unroll
    for (int step = WARPS / 2; step > 0; step /= 2)
#pragma unroll
        for (int w = 0; w < step; w++) part[w][i] += part[w + step][i];
    y[blockIdx.y * COLUMNS + to] = part[0][i];
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    sum_kernel<<<dim3(TILES, X_DIM0), dim3(32, WARPS), 0, stream>>>(in->x, out->out);
}
