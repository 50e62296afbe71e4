/* tensor_heads.cuh: attention of short heads at fp32 accuracy on Hopper's tensor cores (sm_90a); no
 * score goes to memory.
 *
 * Idea: product.cuh's three passes in TF32, small*B + A*small + big*big. The linear layer before
 * stores keys and values split (StoreHeads), in blocks of 32 keys, as the tensor cores read them;
 * bulk copies fetch these. A warpgroup has 64 queries, split in registers, and goes through the
 * keys 32 at a time: scores, weights, and weights times values, whose sum is added to the result in
 * fp32. A thread's weights are its part of the left operand of that product, as values lie in the
 * order of its slots: no exchange. Warpgroups do not wait for each other, so that one computes
 * weights while others multiply: of 32 channels four have the registers (128 a thread), of 64 two.
 *
 * What limits it: 12 WIDTH flops for each query and key over the TF32 rate. Reaches, with its
 * linear layers, 66 to 80 % of the floor (l3_050, l3_031).
 *
 * Where weights add up to one, the values' bias is added to the result and not to each value. A sum
 * of values that are almost their bias is one of equal terms, whose roundings all go the same way:
 * after 512 tiles it was off by 62 units of 2^-24, of which a spread (METHOD.md) is 21.
 *
 * Weights W: CAUSAL; UNIT, what scores are multiplied with beside the scale; SCALES, whether what
 * was summed before is scaled by factor[h], and weights add up to one; weigh(), by which a thread's
 * scores, of rows 8 h and keys `behind` + 8 j + e, both from its first query on, as score[4 j + 2 h
 * + e], become weights; share(), what the result is multiplied with. A score with an infinity is
 * NaN, as product.cuh's. Tensors: queries and out [BATCH][LENGTH][HEADS][WIDTH]. */
#pragma once
#include <float.h>
#include "hopper_split.cuh"
#include "split_heads.cuh"

namespace kp {

/* What a thread knows of its two rows: the largest score, and its own sums of weights. */
struct HeadRows {
    float top[2] = {-FLT_MAX, -FLT_MAX}, sum[2] = {0.0f, 0.0f}, factor[2];
};

/* The softmax over all keys: 2^(score - top). */
struct TensorSoftmax {
    static constexpr bool CAUSAL = false, SCALES = true;
    static constexpr float UNIT = 1.44269504088896341f; /* log2(e) */
    static __device__ __forceinline__ void weigh(float (&score)[HEAD_KEYS / 2], HeadRows &rows,
                                                 int) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float top = -FLT_MAX, sum = 0.0f;
#pragma unroll
            for (int j = 0; j < HEAD_KEYS / 8; j++)
                top = fmaxf(top, fmaxf(score[4 * j + 2 * h], score[4 * j + 2 * h + 1]));
            top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
            top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
            top = fmaxf(rows.top[h], top);
#pragma unroll
            for (int j = 0; j < HEAD_KEYS / 4; j++) {
                float &s = score[j / 2 * 4 + 2 * h + j % 2];
                s = exp2_fast(s - top);
                sum += s;
            }
            rows.factor[h] = exp2_fast(rows.top[h] - top);
            rows.top[h] = top;
            rows.sum[h] = fmaf(rows.sum[h], rows.factor[h], sum);
        }
    }
    static __device__ __forceinline__ float share(const HeadRows &rows, int h) {
        float sum = rows.sum[h];
        sum += __shfl_xor_sync(~0u, sum, 1);
        return 1.0f / (sum + __shfl_xor_sync(~0u, sum, 2));
    }
};

/* relu(score) of the keys up to the query's own place. */
struct TensorCausalRelu {
    static constexpr bool CAUSAL = true, SCALES = false;
    static constexpr float UNIT = 1.0f;
    static __device__ __forceinline__ void weigh(float (&score)[HEAD_KEYS / 2], HeadRows &,
                                                 int behind) {
#pragma unroll
        for (int i = 0; i < HEAD_KEYS / 2; i++) {
            const bool seen = behind + i / 4 * 8 + i % 2 <= i / 2 % 2 * 8;
            score[i] = !seen || score[i] < 0.0f ? 0.0f : score[i];
        }
    }
    static __device__ __forceinline__ float share(const HeadRows &, int) {
        return 1.0f;
    }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* The ring of tiles in shared memory, as one head's keys and values go through it. */
template <class S> struct HeadRing {
    uint32_t stages;
    const float *keys, *values;
    __device__ __forceinline__ uint32_t full(int t) const {
        return stages + S::STAGES * S::STAGE + t % S::STAGES * 8;
    }
    __device__ __forceinline__ uint32_t empty(int t) const { return full(t) + S::STAGES * 8; }
    __device__ __forceinline__ void begin() const {
        for (int s = 0; s < S::STAGES; s++)
            bar_init(full(s), 1), bar_init(empty(s), S::THREADS / 32 * WARP_ARRIVALS);
        bar_init_done();
    }
    /* By one thread: fetches tile t once all have done with the one in its place. */
    __device__ __forceinline__ void fetch(int t) const {
        const uint32_t to = stages + t % S::STAGES * S::STAGE;
        bar_wait(empty(t), t / S::STAGES % 2 ^ 1);
        bar_expect(full(t), S::STAGE);
        copy_bulk<1>(to, keys + (long long)t * (S::KEY_BYTES / 4), S::KEY_BYTES, full(t));
        copy_bulk<1>(to + S::KEY_BYTES, values + (long long)t * (S::VALUE_BYTES / 4),
                     S::VALUE_BYTES, full(t));
    }
    __device__ __forceinline__ uint64_t operand(int t, int offset) const {
        return wgmma_operand(stages + t % S::STAGES * S::STAGE + offset);
    }
};

/* The thread's part of its warpgroup's queries, scaled: q[slab]. Scores are not scaled as they are
 * weighed: there 2^(score * scale - top) would be one fma, in which the largest of large scores is
 * not 1. */
template <class S>
__device__ __forceinline__ void split_queries(const float *from, float scale,
                                              Splits (&q)[S::SLABS]) {
#pragma unroll
    for (int slab = 0; slab < S::SLABS; slab++) {
        float v[4][4];
#pragma unroll
        for (int i = 0; i < 16; i++) /* row 8 h, slot 4 u of step i / 4 */
            v[i / 4][i % 4] = scale * __ldg(from + i % 2 * 8 * S::CHANNELS + slab * TILE_K +
                                            i / 4 * 8 + i % 4 / 2 * 4);
        split_part<typename S::KeyTile>(v, q[slab]);
    }
}

/* result = factor * result + weights of tile t times its values. */
template <class W, class S>
__device__ __forceinline__ void attend_tile(const HeadRing<S> &ring, int t, int behind,
                                            const Splits (&q)[S::SLABS], HeadRows &rows,
                                            float (&result)[S::WIDTH / 2]) {
    using KeyTile = typename S::KeyTile;
    float score[HEAD_KEYS / 2], v[4][4], sum[S::WIDTH / 2];
    Splits p;
    start_slab<KeyTile, false>(q[0], ring.operand(t, 0), score);
    if constexpr (S::SLABS > 1)
        start_slab<KeyTile, true>(q[S::SLABS - 1], ring.operand(t, KeyTile::B_BYTES), score);
    wgmma_wait<0>();
    W::weigh(score, rows, behind);
#pragma unroll
    for (int i = 0; i < 16; i++) v[i / 4][i % 4] = score[i / 4 * 4 + i % 2 * 2 + i % 4 / 2];
    split_part<typename S::ValueTile>(v, p);
    start_slab<typename S::ValueTile, false>(p, ring.operand(t, S::KEY_BYTES), sum);
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < S::WIDTH / 2; i++)
        result[i] =
            W::SCALES ? fmaf(result[i], rows.factor[i / 2 % 2], sum[i]) : result[i] + sum[i];
}
#endif

/* Grid: all blocks of queries of a head after another, those with most keys first. */
template <class W, class S>
__global__ void __launch_bounds__(S::THREADS, 1)
    tensor_heads_kernel(const float *__restrict__ queries, const float *keys, const float *values,
                        const float *__restrict__ bias, float *__restrict__ out, float scale) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ __align__(1024) unsigned char memory[];
    constexpr int BLOCKS = S::LENGTH / S::QUERIES;
    const int batch = blockIdx.x / BLOCKS, lane = threadIdx.x % 32;
    const int block = (BLOCKS - 1 - blockIdx.x % BLOCKS) * S::QUERIES;
    const int group = block + threadIdx.x / 128 * 64; /* the warpgroup's first query */
    const int query = group + threadIdx.x % 128 / 32 * 16 + lane / 4;
    const int tiles = W::CAUSAL ? (block + S::QUERIES) / HEAD_KEYS : S::TILES;
    const long long at = ((long long)(batch / S::HEADS) * S::LENGTH + query) * S::CHANNELS +
                         batch % S::HEADS * S::WIDTH;
    const HeadRing<S> ring = {shared_address(memory),
                              keys + (long long)batch * S::TILES * (S::KEY_BYTES / 4),
                              values + (long long)batch * S::TILES * (S::VALUE_BYTES / 4)};
    if (threadIdx.x == 0) {
        ring.begin();
        for (int t = 0; t < tiles && t < S::AHEAD; t++) ring.fetch(t);
    }
    Splits q[S::SLABS];
    HeadRows rows;
    float result[S::WIDTH / 2] = {};
    split_queries<S>(queries + at + lane % 4, scale * W::UNIT, q);
    __syncthreads();
#pragma unroll 1
    for (int t = 0; t < tiles; t++) {
        if (threadIdx.x == 0 && t + S::AHEAD < tiles) ring.fetch(t + S::AHEAD);
        __syncwarp();
        bar_wait(ring.full(t), t / S::STAGES % 2);
        if (!W::CAUSAL || t * HEAD_KEYS < group + 64)
            attend_tile<W>(ring, t, t * HEAD_KEYS + lane % 4 * 2 - query, q, rows, result);
        bar_arrive_warp<1>(ring.empty(t));
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float share = W::share(rows, h);
        float *to = out + at + 8 * h * S::CHANNELS + lane % 4 * 2;
#pragma unroll
        for (int j = 0; j < S::WIDTH / 8; j++) {
            const int channel = batch % S::HEADS * S::WIDTH + lane % 4 * 2 + 8 * j;
            const float2 b =
                W::SCALES ? __ldg((const float2 *)(bias + channel)) : make_float2(0.0f, 0.0f);
            *(float2 *)(to + 8 * j) = make_float2(result[4 * j + 2 * h] * share + b.x,
                                                  result[4 * j + 2 * h + 1] * share + b.y);
        }
    }
#endif
}

/* Enqueues out = weights of scale * queries * transpose(keys), times values; plus `bias`, of
 * CHANNELS, where weights add up to one. */
template <class W, class S, int BATCH>
static void tensor_attend(const Heads<S, BATCH> &heads, const float *bias, float *out, float scale,
                          cudaStream_t stream) {
    launch_cluster<1>(tensor_heads_kernel<W, S>, BATCH * S::HEADS * (S::LENGTH / S::QUERIES),
                      S::THREADS, stream, (const float *)heads.queries, (const float *)heads.keys,
                      (const float *)heads.values, bias, out, scale);
}

} // namespace kp
