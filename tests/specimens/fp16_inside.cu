// expect: wrong
// task: l1_040_layer_norm
// reason: elements are off
/* A layer norm that is right but for rounding each input to half precision: errors of 1e-4
 * where fp32 has 1e-7. */
#include "task.h"
#include <cuda_fp16.h>

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

__global__ void sums(const float *x, double2 *part) {
    double2 v = chunk_sum(x);
    if (threadIdx.x == 0) part[blockIdx.y * CHUNKS + blockIdx.x] = v;
}

__global__ void normalise(const float *x, const float *w, const float *b, const double2 *part,
                          float *out) {
    double2 sum = block_sum(part[blockIdx.y * CHUNKS + threadIdx.x]);
    double mean = sum.x / COLUMNS, variance = sum.y / COLUMNS - mean * mean;
    __half shift = __double2half(mean), scale = __double2half(rsqrt(variance + 1e-5));
    for (long long i = threadIdx.x; i < CHUNK; i += THREADS) {
        long long column = blockIdx.x * CHUNK + i, at = blockIdx.y * COLUMNS + column;
        __half value = __hmul(__hsub(__float2half(x[at]), shift), scale);
        out[at] = __half2float(__hfma(value, __float2half(w[column]), __float2half(b[column])));
    }
}

extern "C" size_t scratch_bytes(void) {
    return ROWS * CHUNKS * sizeof(double2);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    dim3 grid(CHUNKS, ROWS);
    double2 *part = (double2 *)scratch;
    sums<<<grid, THREADS, 0, stream>>>(in->x, part);
    normalise<<<grid, THREADS, 0, stream>>>(in->x, in->ln_weight, in->ln_bias, part, out->out);
}
