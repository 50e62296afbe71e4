/* attention.cuh: causal attention of short heads, in fp32; no score goes to memory.
 *
 * Idea: a block has 128 queries of a head and goes through the keys up to its last query, 64 at a
 * time. A thread computes 8 queries x 8 keys of the scores in registers, and 8 queries x WIDTH / 8
 * of the result. Maximum and sum of a query's row are kept as the keys pass; where the maximum
 * grows, what there is of the result is scaled down. Weights pass between the eight lanes that
 * share queries through shared memory. A warp leaves out keys beyond its last query.
 *
 * What limits it: FMA, 4 WIDTH flops for each query and key, and a share of keys beyond the
 * diagonal, 64 / LENGTH of the rest. Keys and values take turns in one buffer, so that two blocks
 * fit a multiprocessor: one computes while the other waits. A row with an infinite score is NaN,
 * but for -inf, whose weight is 0. With its linear layers it reaches 81 % of the floor (l3_043; no
 * share of its own was measured).
 *
 * The tensors: qkv [BATCH][LENGTH][3][HEADS][WIDTH], queries, keys, values; out
 * [BATCH][LENGTH][HEADS][WIDTH]; both aligned to 16 bytes. */
#pragma once
#include <float.h>
#include "hopper.cuh"
#include "states.cuh"

namespace kp {

constexpr int ATTENTION_THREADS = 128, ATTENTION_QUERIES = 128, ATTENTION_KEYS = 64;

/* A block's shared memory. Lines are longer than rows, so that what lanes read together lies in
 * different banks. */
template <int WIDTH> struct AttentionTiles {
    float query[ATTENTION_QUERIES][WIDTH + 4];
    float key[ATTENTION_KEYS][WIDTH + 4]; /* then the values */
    float weight[ATTENTION_QUERIES][ATTENTION_KEYS / 2 + 8];
};

/* What a thread has, of the block's queries query() + 4 i: of the result columns 4 key() + 32 c to
 * + 3; of a tile's keys it scores key() + 8 j, and `sum` is over these. */
template <int WIDTH> struct AttentionRows {
    float top[8], sum[8], result[8][WIDTH / 8];
    static __device__ __forceinline__ int query() {
        return threadIdx.x / 32 * 32 + threadIdx.x % 32 / 8;
    }
    static __device__ __forceinline__ int key() { return threadIdx.x % 8; }
};

/* Starts to copy ROWS rows, PITCH floats apart. */
template <int ROWS, int WIDTH, int PITCH>
__device__ __forceinline__ void fetch_rows(float (&to)[ROWS][WIDTH + 4], const float *from) {
#pragma unroll 4
    for (int f = threadIdx.x; f < ROWS * WIDTH / 4; f += ATTENTION_THREADS) {
        const int row = f / (WIDTH / 4), at = f % (WIDTH / 4) * 4;
        copy_async<16>(shared_address(&to[row][at]), from + (long long)row * PITCH + at);
    }
}

/* score = the products of the thread's queries and keys. */
template <int WIDTH>
__device__ __forceinline__ void score_keys(const AttentionTiles<WIDTH> &tiles,
                                           const AttentionRows<WIDTH> &rows, float (&score)[8][8]) {
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) score[i][j] = 0.0f;
#pragma unroll 1
    for (int d = 0; d < WIDTH; d += 4) {
        float4 key[8];
#pragma unroll
        for (int j = 0; j < 8; j++) key[j] = *(const float4 *)&tiles.key[rows.key() + 8 * j][d];
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const float4 query = *(const float4 *)&tiles.query[rows.query() + 4 * i][d];
#pragma unroll
            for (int j = 0; j < 8; j++) {
                score[i][j] += query.x * key[j].x;
                score[i][j] += query.y * key[j].y;
                score[i][j] += query.z * key[j].z;
                score[i][j] += query.w * key[j].w;
            }
        }
    }
}

/* Scores become exp(scale * score - top), 0 where the key, `behind` places behind the block's first
 * query, lies behind the query; top, sum and result are brought up to date. */
template <int WIDTH>
__device__ __forceinline__ void weigh_keys(AttentionRows<WIDTH> &rows, float (&score)[8][8],
                                           float scale, int behind) {
#pragma unroll
    for (int i = 0; i < 8; i++) {
        float top = rows.top[i], sum = 0.0f;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const bool seen = behind + rows.key() + 8 * j <= rows.query() + 4 * i;
            score[i][j] = seen ? score[i][j] * scale : -INFINITY;
            top = fmaxf(top, score[i][j]);
        }
        top = lanes_max<8>(top);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            score[i][j] = expf(score[i][j] - top);
            sum += score[i][j];
        }
        const float factor = expf(rows.top[i] - top);
        rows.top[i] = top;
        rows.sum[i] = rows.sum[i] * factor + sum;
#pragma unroll
        for (int c = 0; c < WIDTH / 8; c++) rows.result[i][c] *= factor;
    }
}

/* result += the values, weighted, half of the keys at a time. */
template <int WIDTH>
__device__ __forceinline__ void add_values(AttentionTiles<WIDTH> &tiles, AttentionRows<WIDTH> &rows,
                                           const float (&weight)[8][8]) {
    constexpr int HALF = ATTENTION_KEYS / 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        __syncwarp(); /* the half before has been read */
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                tiles.weight[rows.query() + 4 * i][rows.key() + 8 * j] = weight[i][4 * half + j];
        __syncwarp();
#pragma unroll 1
        for (int k = 0; k < HALF; k += 4) {
            float w[8][4];
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const float4 f = *(const float4 *)&tiles.weight[rows.query() + 4 * i][k];
                w[i][0] = f.x, w[i][1] = f.y, w[i][2] = f.z, w[i][3] = f.w;
            }
#pragma unroll
            for (int e = 0; e < 4; e++)
#pragma unroll
                for (int c = 0; c < WIDTH / 32; c++) {
                    const float4 v =
                        *(const float4 *)&tiles.key[half * HALF + k + e][4 * rows.key() + 32 * c];
#pragma unroll
                    for (int i = 0; i < 8; i++) {
                        rows.result[i][4 * c] += w[i][e] * v.x;
                        rows.result[i][4 * c + 1] += w[i][e] * v.y;
                        rows.result[i][4 * c + 2] += w[i][e] * v.z;
                        rows.result[i][4 * c + 3] += w[i][e] * v.w;
                    }
                }
        }
    }
}

/* Stores the result, divided by the sums. */
template <int WIDTH, int PITCH>
__device__ __forceinline__ void store_result(const AttentionRows<WIDTH> &rows, float *out) {
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const float share = 1.0f / lanes_sum<8>(rows.sum[i]);
        float *to = out + (long long)(rows.query() + 4 * i) * PITCH + 4 * rows.key();
#pragma unroll
        for (int c = 0; c < WIDTH / 32; c++) {
            const float *v = rows.result[i] + 4 * c;
            *(float4 *)(to + 32 * c) =
                make_float4(v[0] * share, v[1] * share, v[2] * share, v[3] * share);
        }
    }
}

/* Grid: x blocks of queries, those with most keys first; y heads, z batches. */
template <int LENGTH, int HEADS, int WIDTH>
__global__ void __launch_bounds__(ATTENTION_THREADS, 2)
    attention_kernel(const float *__restrict__ qkv, float *__restrict__ out, float scale) {
    constexpr int CHANNELS = HEADS * WIDTH, PITCH = 3 * CHANNELS;
    extern __shared__ float4 shared_memory[];
    auto &tiles = *(AttentionTiles<WIDTH> *)shared_memory;
    const int block = (gridDim.x - 1 - blockIdx.x) * ATTENTION_QUERIES;
    /* Queries (0), keys (1) or values (2) of the head, from `place` on; kept in no register. */
    auto of_head = [&](int which, int place) {
        return qkv + (long long)(blockIdx.z * LENGTH + place) * PITCH + which * CHANNELS +
               blockIdx.y * WIDTH;
    };
    AttentionRows<WIDTH> rows = {};
    for (float &top : rows.top) top = -FLT_MAX; /* finite: -inf - -inf is not met */
    fetch_rows<ATTENTION_QUERIES, WIDTH, PITCH>(tiles.query, of_head(0, block));
#pragma unroll 1
    for (int k = 0; k < block + ATTENTION_QUERIES; k += ATTENTION_KEYS) {
        const bool seen = k - block <= (int)threadIdx.x / 32 * 32 + 31; /* by the warp */
        float score[8][8];
        __syncthreads(); /* the values before have been read */
        fetch_rows<ATTENTION_KEYS, WIDTH, PITCH>(tiles.key, of_head(1, k));
        copies_wait();
        __syncthreads();
        if (seen) score_keys(tiles, rows, score);
        __syncthreads();
        fetch_rows<ATTENTION_KEYS, WIDTH, PITCH>(tiles.key, of_head(2, k));
        if (seen) weigh_keys(rows, score, scale, k - block);
        copies_wait();
        __syncthreads();
        if (seen) add_values(tiles, rows, score);
    }
    store_result<WIDTH, CHANNELS>(rows, out + ((long long)blockIdx.z * LENGTH + block) * CHANNELS +
                                            blockIdx.y * WIDTH);
}

/* Enqueues out = softmax(scale * queries * transpose(keys)) * values, each query with the keys up
 * to its own place. */
template <int BATCH, int LENGTH, int HEADS, int WIDTH>
static void causal_attention(const float *qkv, float *out, float scale, cudaStream_t stream) {
    static_assert(LENGTH % ATTENTION_QUERIES == 0 && WIDTH % 32 == 0, "whole tiles");
    static_assert(HEADS < 65536 && BATCH < 65536, "of a grid");
    const auto kernel = attention_kernel<LENGTH, HEADS, WIDTH>;
    constexpr size_t shared = sizeof(AttentionTiles<WIDTH>);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    kernel<<<dim3(LENGTH / ATTENTION_QUERIES, HEADS, BATCH), ATTENTION_THREADS, shared, stream>>>(
        qkv, out, scale);
}

} // namespace kp
