// expect: wrong
// task: l1_040_layer_norm
// reason: elements are off
/* Adds its sums into scratch without clearing it first: right only where memory happens to be
 * zero. */
#include "task.h"

constexpr int ROWS = X_DIM0, THREADS = 256, CHUNKS = 256;
constexpr long long COLUMNS = X_ELEMENTS / ROWS, CHUNK = COLUMNS / CHUNKS;
static_assert(COLUMNS % CHUNKS == 0 && CHUNKS == THREADS, "whole chunks, one a thread");

/* The sums of v.x and of v.y over the block, in all its threads. */
__device__ double2 block_sum(double2 v) {
    __shared__ double2 part[THREADS];
    part[threadIdx.x] = v;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            part[threadIdx.x].x += part[threadIdx.x + half].x;
            part[threadIdx.x].y += part[threadIdx.x + half].y;
        }
    }
    __syncthreads();
    v = part[0];
    __syncthreads();
    return v;
}

/* The sum and the sum of squares of this block's chunk. */
__device__ double2 chunk_sum(const float *x) {
    double2 v = {0, 0};
    for (long long i = threadIdx.x; i < CHUNK; i += THREADS) {
        double value = x[blockIdx.y * COLUMNS + blockIdx.x * CHUNK + i];
        v.x += value;
        v.y += value * value;
    }
    return block_sum(v);
}

/* Normalise this block's chunk, given the sums of its row. */
__device__ void write_chunk(double2 sum, const float *x, const float *w, const float *b,
                            float *out) {
    double mean = sum.x / COLUMNS;
    float shift = (float)mean, scale = (float)rsqrt(sum.y / COLUMNS - mean * mean + 1e-5);
    for (long long i = threadIdx.x; i < CHUNK; i += THREADS) {
        long long column = blockIdx.x * CHUNK + i, at = blockIdx.y * COLUMNS + column;
        out[at] = (x[at] - shift) * scale * w[column] + b[column];
    }
}

__global__ void sums(const float *x, double2 *row) {
    double2 v = chunk_sum(x);
    if (threadIdx.x == 0) {
        atomicAdd(&row[blockIdx.y].x, v.x);
        atomicAdd(&row[blockIdx.y].y, v.y);
    }
}

__global__ void normalise(const float *x, const float *w, const float *b, const double2 *row,
                          float *out) {
    write_chunk(row[blockIdx.y], x, w, b, out);
}

extern "C" size_t scratch_bytes(void) {
    return ROWS * sizeof(double2);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    dim3 grid(CHUNKS, ROWS);
    double2 *row = (double2 *)scratch;
    sums<<<grid, THREADS, 0, stream>>>(in->x, row);
    normalise<<<grid, THREADS, 0, stream>>>(in->x, in->ln_weight, in->ln_bias, row, out->out);
}
