/* short_heads.cuh: attention of short heads as in attention.cuh, in fp32 and without scores in
 * memory, with other weights than those of a causal softmax.
 *
 * Weights W: CAUSAL, whether a query sees no keys behind its own place; weigh(rows, score, scale,
 * behind), by which scores become weights, as weigh_keys() of attention.cuh says.
 * Tensors: qkv [BATCH][LENGTH][3][HEADS][WIDTH], out [BATCH][LENGTH][HEADS][WIDTH].
 * No result is of it: the H200 and the H100 take tensor_heads.cuh; tests/e2e/emulate.sh runs it. */
#pragma once
#include "attention.cuh"

namespace kp {

/* The softmax over all keys. */
struct SoftmaxWeights {
    static constexpr bool CAUSAL = false;
    template <int WIDTH>
    static __device__ __forceinline__ void weigh(AttentionRows<WIDTH> &rows, float (&score)[8][8],
                                                 float scale, int) {
        /* Rounded products: in fma(score, scale, -top) the largest of large scores is not 1. */
#pragma unroll
        for (int i = 0; i < 64; i++) score[i / 8][i % 8] = __fmul_rn(score[i / 8][i % 8], scale);
        weigh_keys(rows, score, 1.0f, -ATTENTION_KEYS); /* all keys lie ahead */
    }
};

/* relu(scale * score), which is not normalised: the sum of a query's eight lanes is 1. */
struct CausalReluWeights {
    static constexpr bool CAUSAL = true;
    template <int WIDTH>
    static __device__ __forceinline__ void weigh(AttentionRows<WIDTH> &rows, float (&score)[8][8],
                                                 float scale, int behind) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            rows.sum[i] = 0.125f;
#pragma unroll
            for (int j = 0; j < 8; j++) {
                const bool seen = behind + rows.key() + 8 * j <= rows.query() + 4 * i;
                const float v = score[i][j] * scale;
                score[i][j] = !seen || v < 0.0f ? 0.0f : v;
            }
        }
    }
};

/* Grid: x blocks of queries, those with most keys first; y heads, z batches. */
template <class W, int LENGTH, int HEADS, int WIDTH>
__global__ void __launch_bounds__(ATTENTION_THREADS, 2)
    short_heads_kernel(const float *__restrict__ qkv, float *__restrict__ out, float scale) {
    constexpr int CHANNELS = HEADS * WIDTH, PITCH = 3 * CHANNELS;
    extern __shared__ float4 shared_memory[];
    auto &tiles = *(AttentionTiles<WIDTH> *)shared_memory;
    const int block = (gridDim.x - 1 - blockIdx.x) * ATTENTION_QUERIES;
    const int end = W::CAUSAL ? block + ATTENTION_QUERIES : LENGTH;
    auto of_head = [&](int which, int place) {
        return qkv + (long long)(blockIdx.z * LENGTH + place) * PITCH + which * CHANNELS +
               blockIdx.y * WIDTH;
    };
    AttentionRows<WIDTH> rows = {};
    for (float &top : rows.top) top = -FLT_MAX;
    fetch_rows<ATTENTION_QUERIES, WIDTH, PITCH>(tiles.query, of_head(0, block));
#pragma unroll 1
    for (int k = 0; k < end; k += ATTENTION_KEYS) {
        const bool seen = !W::CAUSAL || k - block <= (int)threadIdx.x / 32 * 32 + 31;
        float score[8][8];
        __syncthreads(); /* the values before have been read */
        fetch_rows<ATTENTION_KEYS, WIDTH, PITCH>(tiles.key, of_head(1, k));
        copies_wait();
        __syncthreads();
        if (seen) score_keys(tiles, rows, score);
        __syncthreads();
        fetch_rows<ATTENTION_KEYS, WIDTH, PITCH>(tiles.key, of_head(2, k));
        if (seen) W::weigh(rows, score, scale, k - block);
        copies_wait();
        __syncthreads();
        if (seen) add_values(tiles, rows, score);
    }
    store_result<WIDTH, CHANNELS>(rows, out + ((long long)blockIdx.z * LENGTH + block) * CHANNELS +
                                            blockIdx.y * WIDTH);
}

/* Enqueues out = weights of scale * queries * transpose(keys), times values. */
template <class W, int BATCH, int LENGTH, int HEADS, int WIDTH>
static void attend(const float *qkv, float *out, float scale, cudaStream_t stream) {
    static_assert(LENGTH % ATTENTION_QUERIES == 0 && WIDTH % 32 == 0, "whole tiles");
    static_assert(HEADS < 65536 && BATCH < 65536, "of a grid");
    const auto kernel = short_heads_kernel<W, LENGTH, HEADS, WIDTH>;
    constexpr size_t shared = sizeof(AttentionTiles<WIDTH>);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    kernel<<<dim3(LENGTH / ATTENTION_QUERIES, HEADS, BATCH), ATTENTION_THREADS, shared, stream>>>(
        qkv, out, scale);
}

} // namespace kp
