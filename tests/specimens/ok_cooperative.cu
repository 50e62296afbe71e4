// expect: ok
// task: l1_040_layer_norm
/* A layer norm in one cooperative launch with a barrier over the grid. */
#include "task.h"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

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

__global__ void layer_norm(const float *x, const float *w, const float *b, double2 *part,
                           float *out) {
    for (int c = blockIdx.x; c < ROWS * CHUNKS; c += gridDim.x) {
        double2 v = {0, 0};
        for (long long i = threadIdx.x; i < CHUNK; i += THREADS) {
            double value = x[c * CHUNK + i];
            v.x += value;
            v.y += value * value;
        }
        v = block_sum(v);
        if (threadIdx.x == 0) part[c] = v;
    }
    cg::this_grid().sync();
    for (int c = blockIdx.x; c < ROWS * CHUNKS; c += gridDim.x) {
        double2 sum = block_sum(part[c / CHUNKS * CHUNKS + threadIdx.x]);
        double mean = sum.x / COLUMNS;
        float shift = (float)mean, scale = (float)rsqrt(sum.y / COLUMNS - mean * mean + 1e-5);
        for (long long i = threadIdx.x; i < CHUNK; i += THREADS) {
            long long at = c * CHUNK + i, column = at % COLUMNS;
            out[at] = (x[at] - shift) * scale * w[column] + b[column];
        }
    }
}

extern "C" size_t scratch_bytes(void) {
    return ROWS * CHUNKS * sizeof(double2);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const float *x = in->x, *w = in->ln_weight, *b = in->ln_bias;
    double2 *part = (double2 *)scratch;
    float *y = out->out;
    void *arguments[] = {&x, &w, &b, &part, &y};
    int device, processors, each;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, layer_norm, THREADS, 0);
    cudaLaunchCooperativeKernel((const void *)layer_norm, dim3(processors * each), dim3(THREADS),
                                arguments, 0, stream);
}
