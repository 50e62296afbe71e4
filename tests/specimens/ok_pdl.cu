// expect: ok
// task: l1_040_layer_norm
/* A layer norm in two kernels, the second launched programmatically before the first has ended
 * (sm_90 and later; an ordinary pair before). */
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

__global__ void sums(const float *x, double2 *part) {
    double2 v = chunk_sum(x);
    if (threadIdx.x == 0) part[blockIdx.y * CHUNKS + blockIdx.x] = v;
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

__global__ void normalise(const float *x, const float *w, const float *b, const double2 *part,
                          float *out) {
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
    write_chunk(block_sum(part[blockIdx.y * CHUNKS + threadIdx.x]), x, w, b, out);
}

extern "C" size_t scratch_bytes(void) {
    return ROWS * CHUNKS * sizeof(double2);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    double2 *part = (double2 *)scratch;
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(CHUNKS, ROWS);
    config.blockDim = THREADS;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = 1;
    sums<<<config.gridDim, THREADS, 0, stream>>>(in->x, part);
    cudaLaunchKernelEx(&config, normalise, in->x, in->ln_weight, in->ln_bias, (const double2 *)part,
                       out->out);
}
