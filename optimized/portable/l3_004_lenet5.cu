// provenance: shipped
/* LeNet-5 on 4096 images of 32 x 32: two convolutions with ReLU and 2 x 2 pooling, three linear
 * layers.
 *
 * Idea: two kernels. A block takes one image through both convolutions in shared memory, each
 * thread making a pooled value from the four it covers; then a block takes eight images through the
 * linear layers, so that a weight read serves eight.
 * Floor: 3.4 Gflop over the fp32 rate and 17 MB are small; much of the time is launch and latency.
 * Measured: see results/. */
#include "task.h"

constexpr int IMAGES = X_DIM0, SIDE = X_DIM2, TAPS = 5;
constexpr int C1 = CONV1_WEIGHT_DIM0, P1 = (SIDE - TAPS + 1) / 2; /* 6 planes of 14 x 14 */
constexpr int C2 = CONV2_WEIGHT_DIM0, P2 = (P1 - TAPS + 1) / 2;   /* 16 planes of 5 x 5 */
constexpr int FEATURES = C2 * P2 * P2;
constexpr int F1 = FC1_WEIGHT_DIM0, F2 = FC2_WEIGHT_DIM0, F3 = FC3_WEIGHT_DIM0;
constexpr int CONV_THREADS = 416, LINEAR_THREADS = 128, BATCH = 8;
static_assert(FEATURES == FC1_WEIGHT_DIM1 && F3 == OUT_DIM1, "sizes agree");
static_assert(FEATURES % 4 == 0 && F1 % 4 == 0 && F2 % 4 == 0, "rows of whole float4");
static_assert(F1 <= LINEAR_THREADS && IMAGES % BATCH == 0, "a thread an output; whole batches");

/* sum[y][x] += the filter at position (y, x) of the 6 x 6 patch whose corner is p. */
__device__ __forceinline__ void filter_patch(const float *p, int pitch, const float *w,
                                             float (&sum)[2][2]) {
    float v[TAPS + 1][TAPS + 1];
#pragma unroll
    for (int r = 0; r <= TAPS; r++)
#pragma unroll
        for (int c = 0; c <= TAPS; c++) v[r][c] = p[r * pitch + c];
#pragma unroll
    for (int t = 0; t < TAPS * TAPS; t++) {
        const int r = t / TAPS, c = t % TAPS;
        sum[0][0] += w[t] * v[r][c];
        sum[0][1] += w[t] * v[r][c + 1];
        sum[1][0] += w[t] * v[r + 1][c];
        sum[1][1] += w[t] * v[r + 1][c + 1];
    }
}

/* The largest of the four sums with bias, at least zero: ReLU and pooling. */
__device__ __forceinline__ float pool(const float (&sum)[2][2], float bias) {
    const float top = fmaxf(fmaxf(sum[0][0], sum[0][1]), fmaxf(sum[1][0], sum[1][1]));
    return fmaxf(top + bias, 0.0f);
}

/* to[i] = from[i] for `count` words, by the whole block. */
__device__ __forceinline__ void copy_words(float *to, const float *from, int count) {
    for (int i = threadIdx.x; i < count; i += blockDim.x) to[i] = from[i];
}

/* feature[image][C2][P2][P2]. An image a block. */
__global__ void __launch_bounds__(CONV_THREADS)
    conv_kernel(const struct Inputs in, float *__restrict__ feature) {
    __shared__ float image[SIDE * SIDE], plane[C1 * P1 * P1];
    __shared__ float w1[C1 * TAPS * TAPS], w2[C2 * C1 * TAPS * TAPS];
    copy_words(image, in.x + (long long)blockIdx.x * SIDE * SIDE, SIDE * SIDE);
    copy_words(w1, in.conv1_weight, C1 * TAPS * TAPS);
    copy_words(w2, in.conv2_weight, C2 * C1 * TAPS * TAPS);
    __syncthreads();
    for (int i = threadIdx.x; i < C1 * P1 * P1; i += CONV_THREADS) {
        const int c = i / (P1 * P1), y = i / P1 % P1, x = i % P1;
        float sum[2][2] = {};
        filter_patch(image + 2 * y * SIDE + 2 * x, SIDE, w1 + c * TAPS * TAPS, sum);
        plane[i] = pool(sum, in.conv1_bias[c]);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < FEATURES; i += CONV_THREADS) {
        const int c = i / (P2 * P2), y = i / P2 % P2, x = i % P2;
        float sum[2][2] = {};
        for (int k = 0; k < C1; k++)
            filter_patch(plane + (k * P1 + 2 * y) * P1 + 2 * x, P1, w2 + (c * C1 + k) * TAPS * TAPS,
                         sum);
        feature[(long long)blockIdx.x * FEATURES + i] = pool(sum, in.conv2_bias[c]);
    }
}

/* One output of a linear layer for BATCH images: sum[b] = bias + weight row times x[b]. */
template <int FROM>
__device__ __forceinline__ void linear(const float *row, float bias, const float (*x)[FROM],
                                       float (&sum)[BATCH]) {
    for (int b = 0; b < BATCH; b++) sum[b] = bias;
#pragma unroll 4
    for (int k = 0; k < FROM; k += 4) {
        const float4 w = __ldg((const float4 *)(row + k));
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            const float4 v = *(const float4 *)&x[b][k];
            sum[b] += (w.x * v.x + w.y * v.y) + (w.z * v.z + w.w * v.w);
        }
    }
}

/* out[image][F3] from its features. BATCH images a block, a thread an output of each layer. */
__global__ void __launch_bounds__(LINEAR_THREADS)
    linear_kernel(const struct Inputs in, const float *__restrict__ feature,
                  float *__restrict__ out) {
    __shared__ __align__(16) float x0[BATCH][FEATURES], x1[BATCH][F1], x2[BATCH][F2];
    const int j = threadIdx.x, first = blockIdx.x * BATCH;
    float sum[BATCH];
    copy_words(&x0[0][0], feature + (long long)first * FEATURES, BATCH * FEATURES);
    __syncthreads();
    if (j < F1) {
        linear(in.fc1_weight + j * FEATURES, in.fc1_bias[j], x0, sum);
        for (int b = 0; b < BATCH; b++) x1[b][j] = fmaxf(sum[b], 0.0f);
    }
    __syncthreads();
    if (j < F2) {
        linear(in.fc2_weight + j * F1, in.fc2_bias[j], x1, sum);
        for (int b = 0; b < BATCH; b++) x2[b][j] = fmaxf(sum[b], 0.0f);
    }
    __syncthreads();
    if (j < F3) {
        linear(in.fc3_weight + j * F2, in.fc3_bias[j], x2, sum);
        for (int b = 0; b < BATCH; b++) out[(first + b) * F3 + j] = sum[b];
    }
}

extern "C" size_t scratch_bytes(void) {
    return (size_t)IMAGES * FEATURES * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *feature = (float *)scratch;
    conv_kernel<<<IMAGES, CONV_THREADS, 0, stream>>>(*in, feature);
    linear_kernel<<<IMAGES / BATCH, LINEAR_THREADS, 0, stream>>>(*in, feature, out->out);
}
