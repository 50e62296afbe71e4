// provenance: shipped
/* LeNet-5 on 4096 images of 32 x 32: two convolutions with ReLU and 2 x 2 pooling, three linear
 * layers.
 *
 * Idea: one kernel. A block takes sixteen images through the convolutions in two groups of eight,
 * then all sixteen through the linear layers, on chip throughout. Registers hold much, so that a
 * read of shared memory feeds many products: a patch that serves all filters of the first
 * convolution; two rows of sums of two filters in the second; sums of eight images x six outputs in
 * the linear layers. Neighbouring threads take different images, so few reads conflict.
 * Floor: 3.4 Gflop over the fp32 rate, 67 us; 17 MB are small.
 * Measured on an H200: 95 us, 0.70 of the floor's speed. */
#include "task.h"
#include "async.cuh"

constexpr int IMAGES = X_DIM0, SIDE = X_DIM2, TAPS = 5;
constexpr int C1 = CONV1_WEIGHT_DIM0, P1 = (SIDE - TAPS + 1) / 2; /* 6 planes of 14 x 14 */
constexpr int C2 = CONV2_WEIGHT_DIM0, P2 = (P1 - TAPS + 1) / 2;   /* 16 planes of 5 x 5 */
constexpr int FEATURES = C2 * P2 * P2;
constexpr int F1 = FC1_WEIGHT_DIM0, F2 = FC2_WEIGHT_DIM0, F3 = FC3_WEIGHT_DIM0;
constexpr int THREADS = 320, GROUP = 8, GROUPS = 2, BATCH = GROUP * GROUPS;
static_assert(C1 == CONV2_WEIGHT_DIM1 && FEATURES == FC1_WEIGHT_DIM1 && F3 == OUT_DIM1, "sizes");
static_assert(FEATURES % 4 == 0 && F1 % 4 == 0 && F2 % 4 == 0, "rows of whole float4");
static_assert(GROUP * P2 * C2 / 2 == THREADS && IMAGES % BATCH == 0, "a thread a unit; no rest");

/* Shared memory, in words. The images of a group are 4 modulo 32 apart, so that eight threads that
 * read a float4 each, of eight images, use all banks. The features of the last group lie over its
 * image, which is used up by then, those of the linear layers over the planes. */
constexpr int PITCH = 16, W1_PITCH = 28, W2_PITCH = 12; /* a plane row; filter; 2 filter rows */
constexpr int IMAGE_SIZE = SIDE * SIDE + 4, PLANES_SIZE = C1 * P1 * PITCH + 4;
constexpr int IMAGE_AT = GROUP * FEATURES, PLANES_AT = IMAGE_AT + GROUP * IMAGE_SIZE;
constexpr int W1_AT = PLANES_AT + GROUP * PLANES_SIZE, W2_AT = W1_AT + C1 * W1_PITCH;
constexpr int SHARED = W2_AT + C2 / 2 * C1 * TAPS * W2_PITCH;
static_assert(IMAGE_SIZE % 32 == 4 && PLANES_SIZE % 32 == 4, "no bank conflicts");
static_assert((GROUPS - 1) * GROUP * FEATURES <= PLANES_AT - IMAGE_AT, "features over the images");
static_assert(BATCH * (F1 + F2) <= GROUP * PLANES_SIZE, "linear layers over the planes");

/* v[0..COUNT) = p[0..COUNT), 16 bytes at a time. */
template <int COUNT> __device__ __forceinline__ void load(float (&v)[COUNT], const float *p) {
    static_assert(COUNT % 4 == 0, "whole float4");
#pragma unroll
    for (int i = 0; i < COUNT; i += 4) {
        const float4 q = *(const float4 *)(p + i);
        v[i] = q.x, v[i + 1] = q.y, v[i + 2] = q.z, v[i + 3] = q.w;
    }
}

/* The largest of the four sums in columns x and x + 1, at least zero: pooling and ReLU. */
template <int N> __device__ __forceinline__ float pool(const float (&sum)[2][N], int x) {
    return fmaxf(fmaxf(fmaxf(sum[0][x], sum[0][x + 1]), fmaxf(sum[1][x], sum[1][x + 1])), 0.0f);
}

__device__ __forceinline__ void start_images(float *image, const float *x) {
    for (int i = threadIdx.x; i < GROUP * SIDE * SIDE / 4; i += THREADS)
        copy_async(image + i / (SIDE * SIDE / 4) * IMAGE_SIZE + i % (SIDE * SIDE / 4) * 4,
                   x + 4 * i);
    copy_commit();
}

/* Asks L2 for `count` words, by the grid: they are wanted late, by all blocks at once. */
__device__ __forceinline__ void prefetch(const float *p, int count) {
    const int i = (blockIdx.x * THREADS + threadIdx.x) * 32;
    if (i < count) asm volatile("prefetch.global.L2 [%0];" ::"l"(p + i));
}

/* w1[filter][its taps, bias]; w2[pair of filters][plane][row][tap][filter of the pair]. */
__device__ __forceinline__ void load_filters(float *w1, float *w2, const struct Inputs &in) {
    constexpr int SIZE = TAPS * TAPS;
    for (int i = threadIdx.x; i < C1 * (SIZE + 1); i += THREADS) {
        const int c = i / (SIZE + 1), t = i % (SIZE + 1);
        w1[c * W1_PITCH + t] = t < SIZE ? in.conv1_weight[c * SIZE + t] : in.conv1_bias[c];
    }
    for (int i = threadIdx.x; i < C2 * C1 * SIZE; i += THREADS) {
        const int c = i / (C1 * SIZE), row = i / TAPS % (C1 * TAPS), t = i % TAPS;
        w2[(c / 2 * C1 * TAPS + row) * W2_PITCH + 2 * t + c % 2] = in.conv2_weight[i];
    }
}

/* First convolution: a thread two neighbouring pooled values of every plane, from one patch. */
__device__ __forceinline__ void convolve1(float *planes, const float *image, const float *w1) {
    for (int i = threadIdx.x; i < GROUP * P1 * P1 / 2; i += THREADS) {
        const int b = i % GROUP, y = i / GROUP / (P1 / 2), x = i / GROUP % (P1 / 2);
        float patch[TAPS + 1][8];
#pragma unroll
        for (int r = 0; r <= TAPS; r++)
            load(patch[r], image + b * IMAGE_SIZE + (2 * y + r) * SIDE + 4 * x);
        float *to = planes + b * PLANES_SIZE + y * PITCH + 2 * x;
#pragma unroll 1
        for (int c = 0; c < C1; c++) {
            float w[W1_PITCH], sum[2][4];
            load(w, w1 + c * W1_PITCH);
#pragma unroll
            for (int j = 0; j < 8; j++) sum[j / 4][j % 4] = w[TAPS * TAPS];
#pragma unroll
            for (int t = 0; t < TAPS * TAPS; t++)
#pragma unroll
                for (int j = 0; j < 8; j++)
                    sum[j / 4][j % 4] += w[t] * patch[t / TAPS + j / 4][t % TAPS + j % 4];
            *(float2 *)(to + c * P1 * PITCH) = make_float2(pool(sum, 0), pool(sum, 2));
        }
    }
}

/* Second convolution: a thread a pooled row of two planes. A row of the input adds to both rows of
 * sums, with different rows of the filters. */
__device__ __forceinline__ void convolve2(float *feature, const float *planes, const float *w2,
                                          const float *bias) {
    const int b = threadIdx.x % GROUP, y = threadIdx.x / GROUP % P2,
              pair = threadIdx.x / GROUP / P2;
    const float *from = planes + b * PLANES_SIZE + 2 * y * PITCH;
    w2 += pair * C1 * TAPS * W2_PITCH;
    float sum[2][2][2 * P2];
#pragma unroll
    for (int j = 0; j < 4 * P2; j++)
        sum[0][j % 2][j / 2] = bias[2 * pair], sum[1][j % 2][j / 2] = bias[2 * pair + 1];
#pragma unroll 1
    for (int k = 0; k < C1; k++, from += P1 * PITCH, w2 += TAPS * W2_PITCH) {
#pragma unroll
        for (int r = 0; r <= TAPS; r++) {
            float v[PITCH], w[W2_PITCH];
            load(v, from + r * PITCH);
#pragma unroll
            for (int h = 0; h < 2; h++) {
                if (r - h < 0 || r - h >= TAPS) continue;
                load(w, w2 + (r - h) * W2_PITCH);
#pragma unroll
                for (int t = 0; t < 2 * TAPS; t++)
#pragma unroll
                    for (int x = 0; x < 2 * P2; x++) sum[t % 2][h][x] += w[t] * v[x + t / 2];
            }
        }
    }
    float *to = feature + b * FEATURES + 2 * pair * P2 * P2 + y * P2;
#pragma unroll
    for (int x = 0; x < P2; x++) to[x] = pool(sum[0], 2 * x), to[x + P2 * P2] = pool(sum[1], 2 * x);
}

/* to[BATCH][TO] = bias + x[BATCH][FROM] times transpose(weight). Eight threads share ROWS outputs
 * of the odd or even images: each takes every eighth float4 of the depth. */
template <int FROM, int TO, int ROWS, bool RELU>
__device__ __forceinline__ void linear(float *to, const float *x, const float *weight,
                                       const float *bias) {
    static_assert(TO % (2 * ROWS) == 0 && TO / ROWS * 16 <= THREADS, "whole warps, one round");
    const int lane = threadIdx.x % 8, odd = threadIdx.x / 8 % 2, first = threadIdx.x / 16 * ROWS;
    if (first >= TO) return;
    float sum[8][ROWS] = {}; /* [i]: of the (i ^ lane)th image */
    weight += first * FROM;
#pragma unroll 1
    for (int k = 4 * lane; k < FROM; k += 32) {
        float4 w[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) w[r] = __ldg((const float4 *)(weight + r * FROM + k));
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const float4 v = *(const float4 *)(x + (2 * (i ^ lane) + odd) * FROM + k);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                sum[i][r] += w[r].x * v.x;
                sum[i][r] += w[r].y * v.y;
                sum[i][r] += w[r].z * v.z;
                sum[i][r] += w[r].w * v.w;
            }
        }
    }
    /* Give away half of the images, thrice; the lane-th is left. */
#pragma unroll
    for (int half = 4; half > 0; half /= 2)
#pragma unroll
        for (int i = 0; i < half; i++)
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                sum[i][r] += __shfl_xor_sync(~0u, sum[i + half][r], half);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const float y = sum[0][r] + __ldg(bias + first + r);
        to[(2 * lane + odd) * TO + first + r] = RELU ? fmaxf(y, 0.0f) : y;
    }
}

__global__ void __launch_bounds__(THREADS, 2)
    lenet_kernel(const struct Inputs in, float *__restrict__ out) {
    extern __shared__ __align__(16) float feature[]; /* [BATCH][FEATURES], and the rest */
    float *image = feature + IMAGE_AT, *planes = feature + PLANES_AT;
    float *w1 = feature + W1_AT, *w2 = feature + W2_AT, *hidden = planes + BATCH * F1;
    const float *x = in.x + (long long)blockIdx.x * BATCH * SIDE * SIDE;
    start_images(image, x);
    load_filters(w1, w2, in);
    prefetch(in.fc1_weight, F1 * FEATURES);
    prefetch(in.fc2_weight, F2 * F1);
#pragma unroll 1
    for (int g = 0; g < GROUPS; g++) {
        copy_wait(0);
        __syncthreads();
        convolve1(planes, image, w1);
        __syncthreads();
        if (g + 1 < GROUPS) start_images(image, x + (g + 1) * GROUP * SIDE * SIDE);
        convolve2(feature + g * GROUP * FEATURES, planes, w2, in.conv2_bias);
    }
    __syncthreads();
    linear<FEATURES, F1, 6, true>(planes, feature, in.fc1_weight, in.fc1_bias);
    __syncthreads();
    linear<F1, F2, 6, true>(hidden, planes, in.fc2_weight, in.fc2_bias);
    __syncthreads();
    linear<F2, F3, 1, false>(out + blockIdx.x * BATCH * F3, hidden, in.fc3_weight, in.fc3_bias);
}

extern "C" size_t scratch_bytes(void) {
    return 0;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    constexpr int BYTES = SHARED * (int)sizeof(float);
    cudaFuncSetAttribute(lenet_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
    lenet_kernel<<<IMAGES / BATCH, THREADS, BYTES, stream>>>(*in, out->out);
}
