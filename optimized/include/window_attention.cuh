/* window_attention.cuh: attention in windows of 7 x 7 places, heads of 32 features, by the cosine
 * of queries and keys, as in Swin transformers V2; and its biases for pairs of places.
 *
 * Idea: a block of 64 threads has a head of a window; a thread computes 7 x 7 scores in registers.
 * The weights pass through shared memory to 7 x 4 sums of values a thread. Windows and how far they
 * are rolled are what loads and stores go by. The biases depend on parameters only: two kernels
 * compute those of all blocks of a network. What limits it: FMA, 128 flops for each pair. Reaches:
 * see l3_030 (no share of its own was measured). */
#pragma once
#include <math.h>
#include "activations.cuh"
#include "swin_rows.cuh"

namespace kp {

constexpr int OFFSETS = (2 * WINDOW - 1) * (2 * WINDOW - 1); /* of two places */

/* ---- biases of pairs ---- */

/* The layers by which offsets become biases; `first` of all heads, and how many a block has. */
template <int N> struct Offsets {
    struct Of {
        const float *weight1, *bias1, *weight2;
        int first, heads;
    } of[N];
};

/* to[head][offset] = 16 sigmoid(linear(relu(linear(coordinates)))). A block an offset of a block.
 */
template <int HIDDEN, int N>
__global__ void __launch_bounds__(128)
    offset_kernel(Offsets<N> offsets, const float *__restrict__ coordinates,
                  float *__restrict__ to) {
    __shared__ float hidden[HIDDEN];
    const auto &own = offsets.of[blockIdx.y];
    const float x = coordinates[blockIdx.x * 2], y = coordinates[blockIdx.x * 2 + 1];
    for (int i = threadIdx.x; i < HIDDEN; i += 128) {
        const float2 w = __ldg((const float2 *)own.weight1 + i);
        hidden[i] = Relu()(w.x * x + w.y * y + __ldg(own.bias1 + i));
    }
    __syncthreads();
    for (int head = threadIdx.x / 32; head < own.heads; head += 4) {
        float sum = 0.0f;
#pragma unroll
        for (int i = threadIdx.x % 32; i < HIDDEN; i += 32)
            sum += hidden[i] * __ldg(own.weight2 + head * HIDDEN + i);
        sum = lanes_sum(sum);
        if (threadIdx.x % 32 == 0)
            to[(own.first + head) * OFFSETS + blockIdx.x] = 16.0f * Sigmoid()(sum);
    }
}

/* pairs[head][pair] = offsets[head][index[pair]]. A block a head. */
static __global__ void __launch_bounds__(256)
    pair_kernel(const float *__restrict__ offsets, const long long *__restrict__ index,
                float *__restrict__ pairs) {
    for (int i = threadIdx.x; i < IN_WINDOW * IN_WINDOW; i += 256)
        pairs[blockIdx.x * IN_WINDOW * IN_WINDOW + i] =
            __ldg(offsets + blockIdx.x * OFFSETS + (int)index[i]);
}

/* ---- attention ---- */

constexpr int WINDOW_LINES = 56,
              HEAD_PITCH = HEAD + 4; /* of queries, keys and values in shared memory */

/* score[j][i] = the sum of query[j] * key[8 i]. */
__device__ __forceinline__ void score_window(const float *query, const float *key,
                                             float (&score)[WINDOW][WINDOW]) {
#pragma unroll 2
    for (int d = 0; d < HEAD; d += 4) {
        float4 q[WINDOW];
#pragma unroll
        for (int j = 0; j < WINDOW; j++) q[j] = *(const float4 *)(query + j * HEAD_PITCH + d);
#pragma unroll
        for (int i = 0; i < WINDOW; i++) {
            const float4 k = *(const float4 *)(key + 8 * i * HEAD_PITCH + d);
#pragma unroll
            for (int j = 0; j < WINDOW; j++)
                score[j][i] += (q[j].x * k.x + q[j].y * k.y) + (q[j].z * k.z + q[j].w * k.w);
        }
    }
}

/* out = attention of qkv [places][3][heads][HEAD]; mask [windows][49][49] may be null. Grid: x
 * windows, y heads. A thread has the queries of a line of the window, every eighth key, and four
 * columns of the result. The eight beyond do the last line again. */
template <class Of>
__global__ void __launch_bounds__(64)
    attend_kernel(const float *__restrict__ qkv, const float *__restrict__ logit_scale,
                  const float *__restrict__ pairs, const float *__restrict__ mask,
                  float *__restrict__ out, int shift) {
    constexpr int SIDE = Of::SIDE, C = Of::C, ACROSS = SIDE / WINDOW, ALL = ACROSS * ACROSS;
    __shared__ __align__(16) float lines[3][WINDOW_LINES][HEAD_PITCH];
    float *weight = lines[0][0]; /* of keys; once the scores are computed */
    const int head = blockIdx.y, window = blockIdx.x % ALL, image = blockIdx.x / ALL;
    const int lane = threadIdx.x % 8, line = min((int)threadIdx.x / 8, WINDOW - 1);
    auto place_of = [=](int p) {
        const int x = (window % ACROSS * WINDOW + p % WINDOW + shift) % SIDE;
        const int y = (window / ACROSS * WINDOW + p / WINDOW + shift) % SIDE;
        return (image * SIDE + y) * SIDE + x;
    };
#pragma unroll
    for (int i = 0; i < WINDOW_LINES / 8; i++) {
        const int p = threadIdx.x / 8 + 8 * i;
        const float4 *from = (const float4 *)(qkv + (size_t)place_of(p) * 3 * C + head * HEAD);
#pragma unroll
        for (int t = 0; t < 3; t++) {
            float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (p < IN_WINDOW) v = __ldg(from + t * (C / 4) + lane);
            if (t < 2) {
                const float square = (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
                const float by = 1.0f / fmaxf(sqrtf(lanes_sum<8>(square)), 1e-12f);
                v.x *= by, v.y *= by, v.z *= by, v.w *= by;
            }
            *(float4 *)&lines[t][p][lane * 4] = v;
        }
    }
    __syncthreads();
    float score[WINDOW][WINDOW] = {};
    score_window(lines[0][line * WINDOW], lines[1][lane], score);
    __syncthreads();
    const float scale = expf(fminf(__ldg(logit_scale + head), 4.60517024993896f));
#pragma unroll
    for (int j = 0; j < WINDOW; j++) {
        const int at = (line * WINDOW + j) * IN_WINDOW + lane;
        float top = -INFINITY, sum = 0.0f;
#pragma unroll
        for (int i = 0; i < WINDOW; i++) {
            float &v = score[j][i];
            const bool inside = 8 * i + lane < IN_WINDOW;
            if (inside) v = v * scale + __ldg(pairs + head * IN_WINDOW * IN_WINDOW + at + 8 * i);
            if (inside && mask) v += __ldg(mask + window * IN_WINDOW * IN_WINDOW + at + 8 * i);
            if (!inside) v = -INFINITY;
            top = fmaxf(top, v);
        }
        top = lanes_max<8>(top);
#pragma unroll
        for (int i = 0; i < WINDOW; i++) sum += score[j][i] = expf(score[j][i] - top);
        const float share = 1.0f / lanes_sum<8>(sum);
#pragma unroll
        for (int i = 0; i < WINDOW; i++)
            if (8 * i + lane < WINDOW_PITCH && threadIdx.x < 8 * WINDOW)
                weight[(line * WINDOW + j) * WINDOW_PITCH + 8 * i + lane] = score[j][i] * share;
    }
    __syncthreads();
    float4 sum[WINDOW] = {};
    mix_window<HEAD_PITCH>(weight + line * WINDOW * WINDOW_PITCH, lines[2][0] + lane * 4, sum);
#pragma unroll
    for (int j = 0; j < WINDOW; j++)
        if (threadIdx.x < 8 * WINDOW)
            *(float4 *)(out + (size_t)place_of(line * WINDOW + j) * C + head * HEAD + lane * 4) =
                sum[j];
}

} // namespace kp
