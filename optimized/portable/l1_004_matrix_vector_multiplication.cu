// provenance: shipped
/* Matrix times vector: out = A * B, A 2048 x 1 M (2^31 elements), B one column.
 *
 * Idea: a block sums one eighth of four rows, so that a float4 of the vector, which stays in L2,
 * serves four float4 of the matrix; a second kernel adds the eighths of a row.
 * Floor: 4 M K bytes over the read bandwidth (A is 8.6 GB, read once, at 4.68 TB/s), 1836 us; flops
 * are nothing.
 * Measured: 1857 us on an H200, 99 % of the floor. */
#include "task.h"
#include "reduce.cuh"

constexpr int ROWS = A_DIM0, DEPTH = A_DIM1;
constexpr int THREADS = 256, GROUP = 4, PARTS = 8;
constexpr int PART = DEPTH / PARTS; /* elements of a row that one block sums */
static_assert(ROWS % GROUP == 0 && DEPTH % (PARTS * THREADS * 4) == 0, "whole float4, no tails");

/* sum += a * b, componentwise. */
__device__ __forceinline__ void fma4(float4 *sum, float4 a, float4 b) {
    sum->x += a.x * b.x;
    sum->y += a.y * b.y;
    sum->z += a.z * b.z;
    sum->w += a.w * b.w;
}

/* part[row][p] = part p of row times part p of the vector. Grid: x the parts, y groups of rows. */
__global__ void __launch_bounds__(THREADS)
    part_kernel(const float *__restrict__ a, const float *__restrict__ b,
                float *__restrict__ part) {
    const int row = blockIdx.y * GROUP;
    const float4 *vector = (const float4 *)(b + blockIdx.x * PART);
    const float4 *rows = (const float4 *)(a + (long long)row * DEPTH + blockIdx.x * PART);
    float4 sum[GROUP] = {};
#pragma unroll 2
    for (int i = threadIdx.x; i < PART / 4; i += THREADS) {
        float4 v[GROUP];
#pragma unroll
        for (int r = 0; r < GROUP; r++) v[r] = __ldcs(rows + r * (DEPTH / 4) + i);
        const float4 x = vector[i];
#pragma unroll
        for (int r = 0; r < GROUP; r++) fma4(&sum[r], v[r], x);
    }
#pragma unroll
    for (int r = 0; r < GROUP; r++) {
        const float s = (sum[r].x + sum[r].y) + (sum[r].z + sum[r].w);
        const float total = block_reduce<THREADS>(s, Add());
        if (threadIdx.x == 0) part[(row + r) * PARTS + blockIdx.x] = total;
    }
}

/* out[row] = the sum of its parts. */
__global__ void join_kernel(const float *__restrict__ part, float *__restrict__ out) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= ROWS) return;
    float s = 0;
    for (int p = 0; p < PARTS; p++) s += part[row * PARTS + p];
    out[row] = s;
}

extern "C" size_t scratch_bytes(void) {
    return ROWS * PARTS * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *part = (float *)scratch;
    part_kernel<<<dim3(PARTS, ROWS / GROUP), THREADS, 0, stream>>>(in->A, in->B, part);
    join_kernel<<<(ROWS + 127) / 128, 128, 0, stream>>>(part, out->out);
}
