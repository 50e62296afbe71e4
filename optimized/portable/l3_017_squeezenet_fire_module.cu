// provenance: shipped
/* A fire module: relu(1 x 1 and 3 x 3 convolutions), side by side, of s = relu(1 x 1 convolution of
 * x): x [128][3][256][256], s of 6 channels, -> [128][64 + 64][256][256].
 *
 * Idea: a block has the s of a tile of pixels in shared memory. A thread has eight pixels along y
 * of sixteen filters at a time: a read of four weights, which all lanes share, is used 32 times. In
 * fp32, as depths of 6 and 54 would leave tensor cores half empty.
 * Floor: 4.29 GB written, 1.0 ms; 65 GFLOP in fp32, 1.3 ms.
 * Measured: 2109 us on an H200, 62 % of the floor. */
#include "task.h"
#include "activations.cuh"

constexpr int CHANNELS = X_DIM1, SQUEEZED = SQUEEZE_WEIGHT_DIM0, FILTERS = EXPAND1X1_WEIGHT_DIM0;
constexpr int Y = X_DIM2, X = X_DIM3, PLANE = Y * X, THREADS = 128;
constexpr int PIXELS = 8, ROWS = THREADS / 32 * PIXELS, COLUMNS = 32; /* of a tile */
constexpr int TOGETHER = 16;                                          /* filters at a time */
static_assert(Y % ROWS == 0 && X % COLUMNS == 0 && FILTERS % TOGETHER == 0, "whole tiles");
static_assert(EXPAND3X3_WEIGHT_DIM0 == FILTERS, "two halves");

struct Weights { /* of four filters each */
    float4 three[SQUEEZED * 9][FILTERS / 4], one[SQUEEZED][FILTERS / 4];
};

/* s of the tile and of the pixels around it; outside of the image 0. */
using Squeezed = float[SQUEEZED][ROWS + 2][COLUMNS + 2];

__device__ __forceinline__ void squeeze(const float *__restrict__ x,
                                        const float *__restrict__ weight,
                                        const float *__restrict__ bias, int y0, int x0,
                                        Squeezed &to) {
    for (int i = threadIdx.x; i < (ROWS + 2) * (COLUMNS + 2); i += THREADS) {
        const int row = i / (COLUMNS + 2), column = i % (COLUMNS + 2);
        const int y = y0 + row - 1, at = x0 + column - 1;
        const bool inside = y >= 0 && y < Y && at >= 0 && at < X;
        float v[CHANNELS];
#pragma unroll
        for (int c = 0; c < CHANNELS; c++)
            v[c] = inside ? __ldg(x + (long long)c * PLANE + y * X + at) : 0.0f;
#pragma unroll
        for (int s = 0; s < SQUEEZED; s++) {
            float sum = __ldg(bias + s);
#pragma unroll
            for (int c = 0; c < CHANNELS; c++)
                sum = fmaf(v[c], __ldg(weight + s * CHANNELS + c), sum);
            to[s][row][column] = inside ? kp::Relu()(sum) : 0.0f;
        }
    }
}

/* weight [FILTERS][count] by four filters. */
__device__ __forceinline__ void load(const float *__restrict__ weight, int count,
                                     float4 (*to)[FILTERS / 4]) {
    for (int i = threadIdx.x; i < FILTERS * count; i += THREADS)
        ((float *)to[i % count])[i / count] = weight[i];
}

/* sum[p][f] += v[p] times four weights, of filters f to f + 3. */
__device__ __forceinline__ void add(float (&sum)[PIXELS][TOGETHER], const float *v, const float4 &w,
                                    int f) {
#pragma unroll
    for (int p = 0; p < PIXELS; p++) {
        sum[p][f] = fmaf(v[p], w.x, sum[p][f]), sum[p][f + 1] = fmaf(v[p], w.y, sum[p][f + 1]);
        sum[p][f + 2] = fmaf(v[p], w.z, sum[p][f + 2]),
                   sum[p][f + 3] = fmaf(v[p], w.w, sum[p][f + 3]);
    }
}

__device__ __forceinline__ void begin(float (&sum)[PIXELS][TOGETHER], const float *bias) {
#pragma unroll
    for (int f = 0; f < TOGETHER; f++)
#pragma unroll
        for (int p = 0; p < PIXELS; p++) sum[p][f] = __ldg(bias + f);
}

/* to: the first pixel of the first filter. */
__device__ __forceinline__ void store(const float (&sum)[PIXELS][TOGETHER], float *to) {
#pragma unroll
    for (int f = 0; f < TOGETHER; f++)
#pragma unroll
        for (int p = 0; p < PIXELS; p++) to[(long long)f * PLANE + p * X] = kp::Relu()(sum[p][f]);
}

/* Grid: x over tiles, y over images. */
__global__ void __launch_bounds__(THREADS, 2)
    fire(const float *__restrict__ x, const float *__restrict__ squeeze_weight,
         const float *__restrict__ squeeze_bias, const float *__restrict__ one_weight,
         const float *__restrict__ one_bias, const float *__restrict__ three_weight,
         const float *__restrict__ three_bias, float *__restrict__ out) {
    __shared__ Weights weights;
    __shared__ Squeezed squeezed;
    const int y0 = blockIdx.x / (X / COLUMNS) * ROWS, x0 = blockIdx.x % (X / COLUMNS) * COLUMNS;
    load(three_weight, SQUEEZED * 9, weights.three);
    load(one_weight, SQUEEZED, weights.one);
    squeeze(x + (long long)blockIdx.y * CHANNELS * PLANE, squeeze_weight, squeeze_bias, y0, x0,
            squeezed);
    __syncthreads();
    const int row = threadIdx.x / 32 * PIXELS, column = threadIdx.x % 32;
    float *to = out + (long long)blockIdx.y * 2 * FILTERS * PLANE + (y0 + row) * X + x0 + column;
#pragma unroll 1
    for (int g = 0; g < FILTERS; g += TOGETHER, to += (long long)TOGETHER * PLANE) {
        float sum[PIXELS][TOGETHER];
        begin(sum, three_bias + g);
#pragma unroll 1
        for (int s = 0; s < SQUEEZED; s++) {
            float v[3][PIXELS + 2];
#pragma unroll
            for (int i = 0; i < 3 * (PIXELS + 2); i++)
                v[i % 3][i / 3] = squeezed[s][row + i / 3][column + i % 3];
#pragma unroll
            for (int tap = 0; tap < 9; tap++)
#pragma unroll
                for (int f = 0; f < TOGETHER; f += 4)
                    add(sum, &v[tap % 3][tap / 3], weights.three[s * 9 + tap][(g + f) / 4], f);
        }
        store(sum, to + (long long)FILTERS * PLANE);
        begin(sum, one_bias + g);
#pragma unroll 1
        for (int s = 0; s < SQUEEZED; s++) {
            float v[PIXELS];
#pragma unroll
            for (int p = 0; p < PIXELS; p++) v[p] = squeezed[s][row + p + 1][column + 1];
#pragma unroll
            for (int f = 0; f < TOGETHER; f += 4) add(sum, v, weights.one[s][(g + f) / 4], f);
        }
        store(sum, to);
    }
}

extern "C" size_t scratch_bytes(void) {
    return 0;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    fire<<<dim3(PLANE / ROWS / COLUMNS, X_DIM0), THREADS, 0, stream>>>(
        in->x, in->squeeze_weight, in->squeeze_bias, in->expand1x1_weight, in->expand1x1_bias,
        in->expand3x3_weight, in->expand3x3_bias, out->out);
}
