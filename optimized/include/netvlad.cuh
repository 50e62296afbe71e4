/* netvlad.cuh: NetVLAD: the features of a sample are shared out among clusters; of each cluster the
 * sum of its shares, less its centre, is normalised; then the sample.
 *
 * Idea: the batch norm of the logits needs all of x before any share is known, so x is read twice.
 * First a product at fp32 accuracy (product.cuh) stores the logits and gathers their statistics
 * (channel_norm.cuh). Then a block a sample: norm and softmax of the logits, shares^T * x on the
 * tensor cores, both norms; nothing of it goes to memory. The last samples come first: the L2 cache
 * may still have them.
 *
 * A warp has 64 of a sample's WIDTH features and all clusters. x comes STEP places at a time,
 * through a ring of stages. Numbers are split in two of TF32, and three passes add up small * B,
 * A * small and big * big. The tensor cores cut off digits while they add, so each step's sum is
 * added in fp32.
 *
 * What limits it: 8 bytes an element of x, and the result, over the bandwidth of memory. The second
 * kernel's tensor cores should be busy for 60 % of that time on an H200. It just fits 128
 * registers: two blocks a multiprocessor; for sm_80, where only one fits, it spills 20 bytes a
 * thread (stored and loaded). Reaches 57 % of the floor of two readings (l3_046, l3_047). */
#pragma once
#include <cuda_pipeline.h>
#include <mma.h>
#include "channel_norm.cuh"
#include "operands.cuh"
#include "states.cuh"
#include "stores.cuh"

namespace kp {

/* SAMPLES of LENGTH places of WIDTH features; softmax over ALL clusters, CLUSTERS of which count.
 */
template <int SAMPLES_, int LENGTH_, int WIDTH_, int CLUSTERS_, int ALL_> struct Vlad {
    static constexpr int SAMPLES = SAMPLES_, LENGTH = LENGTH_, WIDTH = WIDTH_;
    static constexpr int CLUSTERS = CLUSTERS_, ALL = ALL_, ROWS = SAMPLES * LENGTH;
    static constexpr int WARPS = WIDTH / 64, THREADS = WARPS * 32;
    static constexpr int STEP = 8, STEPS = (LENGTH + STEP - 1) / STEP, STAGES = 5;
    static_assert(CLUSTERS == 32 && ALL % 8 == 0, "a lane a cluster, eight lanes a row");
    static_assert(WIDTH % 64 == 0 && THREADS <= 1024, "whole warps");
    using Sizes = Matrices<ROWS, ALL, WIDTH>;
    using Logits = Tile<ALL, Tf32Rest>; /* a norm may divide by little */
    using Parts = ProductParts<Sizes>;
};

/* A block's shared memory. Lines are longer than rows, for the banks. */
template <class V> struct VladMemory {
    union {
        float stage[V::STAGES][V::STEP][V::WIDTH + 8]; /* of x */
        float sums[V::WIDTH][V::CLUSTERS + 8];
    };
    union {
        float share[V::STEPS * V::STEP][V::CLUSTERS + 8]; /* 0 behind the last place */
        float square[V::WARPS][V::CLUSTERS];
    };
    float total[V::WARPS][V::CLUSTERS]; /* parts of the sums of shares */
};

/* Starts to copy step `step` of a sample; a group of copies, empty behind the last. */
template <class V>
__device__ __forceinline__ void fetch_step(VladMemory<V> &memory, const float *sample, int step) {
    constexpr int FOURS = V::WIDTH / 4;
    if (step < V::STEPS) {
#pragma unroll 1 /* more would not fit the registers */
        for (int f = threadIdx.x; f < V::STEP * FOURS; f += V::THREADS) {
            const int row = f / FOURS, place = step * V::STEP + row;
            float *to = &memory.stage[step % V::STAGES][row][f % FOURS * 4];
            if (V::LENGTH % V::STEP == 0 || place < V::LENGTH)
                __pipeline_memcpy_async(to, sample + (long long)place * V::WIDTH + f % FOURS * 4,
                                        16);
            else
                *(float4 *)to = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
    }
    __pipeline_commit(); /* also when empty: waits count commits */
}

/* share = softmax of the normalised logits. Eight lanes a row. */
template <class V>
__device__ __forceinline__ void share_out(VladMemory<V> &memory, const float *__restrict__ logits,
                                          const ChannelNorm *__restrict__ norms) {
    constexpr int EACH = V::ALL / 8, AT_ONCE = V::THREADS / 8;
    constexpr int ROUNDS = (V::STEPS * V::STEP + AT_ONCE - 1) / AT_ONCE;
    const int first = threadIdx.x / 8, lane = threadIdx.x % 8;
    float v[ROUNDS][EACH];
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const int row = first + r * AT_ONCE;
            v[r][j] = row < V::LENGTH ? __ldg(logits + row * V::ALL + lane + 8 * j) : 0.0f;
        }
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        const ChannelNorm norm = ChannelNorm::of(norms, lane + 8 * j);
#pragma unroll
        for (int r = 0; r < ROUNDS; r++) v[r][j] = norm(v[r][j]);
    }
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        const int row = first + r * AT_ONCE;
        float top = v[r][0], sum = 0.0f;
#pragma unroll
        for (int j = 1; j < EACH; j++) top = fmaxf(top, v[r][j]);
        top = lanes_max<8>(top);
#pragma unroll
        for (int j = 0; j < EACH; j++) sum += v[r][j] = expf(v[r][j] - top);
        const float part = row < V::LENGTH ? 1.0f / lanes_sum<8>(sum) : 0.0f * lanes_sum<8>(sum);
        if (row < V::STEPS * V::STEP)
#pragma unroll
            for (int j = 0; j < V::CLUSTERS / 8; j++)
                memory.share[row][lane + 8 * j] = v[r][j] * part;
    }
}

/* v becomes the nearest of TF32, and `rest` what that leaves. */
template <class Fragment> __device__ __forceinline__ void split_tf32(Fragment &v, Fragment &rest) {
#pragma unroll
    for (int i = 0; i < v.num_elements; i++) {
        const float all = v.x[i];
        v.x[i] = __uint_as_float((__float_as_uint(all) + 0x1000) & 0xffffe000);
        rest.x[i] = all - v.x[i];
    }
}

template <class Use, class Layout>
using VladFactor = nvcuda::wmma::fragment<Use, 16, 16, 8, nvcuda::wmma::precision::tf32, Layout>;
using VladSums = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 8, float>;

/* sums += the products of a step, 64 features by 32 clusters of a warp. */
template <class V>
__device__ __forceinline__ void add_step(const VladMemory<V> &memory, int step,
                                         VladSums (&sums)[4][2]) {
    using namespace nvcuda::wmma;
    const float *x = memory.stage[step % V::STAGES][0] + threadIdx.x / 32 * 64;
    VladFactor<matrix_b, row_major> share[2], share_rest[2];
#pragma unroll
    for (int j = 0; j < 2; j++) {
        load_matrix_sync(share[j], &memory.share[step * V::STEP][16 * j], V::CLUSTERS + 8);
        split_tf32(share[j], share_rest[j]);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        VladFactor<matrix_a, col_major> a, rest;
        load_matrix_sync(a, x + 16 * i, V::WIDTH + 8);
        split_tf32(a, rest);
#pragma unroll
        for (int j = 0; j < 2; j++) {
            VladSums sum;
            fill_fragment(sum, 0.0f);
            mma_sync(sum, rest, share[j], sum);
            mma_sync(sum, a, share_rest[j], sum);
            mma_sync(sum, a, share[j], sum);
#pragma unroll
            for (int e = 0; e < sum.num_elements; e++) sums[i][j].x[e] += sum.x[e];
        }
    }
}

/* out = the sums less total * centres, normalised by the clusters, then all of it. A thread has
 * four clusters of every 32nd feature or so. */
template <class V>
__device__ __forceinline__ void
finish_sample(VladMemory<V> &memory, const float *__restrict__ centres, float *__restrict__ out) {
    constexpr int AT_ONCE = V::THREADS / 8, ROUNDS = V::WIDTH / AT_ONCE;
    constexpr float LEAST = 1e-12f;
    const int column = threadIdx.x % 8 * 4, first = threadIdx.x / 8;
    float v[ROUNDS][4], total[4] = {}, square[4] = {}, whole = 0.0f;
#pragma unroll
    for (int w = 0; w < V::WARPS; w++)
#pragma unroll
        for (int e = 0; e < 4; e++) total[e] += memory.total[w][column + e];
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        const int row = first + r * AT_ONCE;
        const float4 sum = *(const float4 *)&memory.sums[row][column];
        const float4 c = __ldg((const float4 *)(centres + row * V::CLUSTERS + column));
        v[r][0] = sum.x - total[0] * c.x, v[r][1] = sum.y - total[1] * c.y;
        v[r][2] = sum.z - total[2] * c.z, v[r][3] = sum.w - total[3] * c.w;
#pragma unroll
        for (int e = 0; e < 4; e++) square[e] += v[r][e] * v[r][e];
    }
#pragma unroll
    for (int e = 0; e < 4; e++) {
        square[e] += __shfl_xor_sync(0xffffffffu, square[e], 8);
        square[e] += __shfl_xor_sync(0xffffffffu, square[e], 16);
        if (threadIdx.x % 32 < 8) memory.square[threadIdx.x / 32][column + e] = square[e];
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < 4; e++) {
        float sum = 0.0f;
#pragma unroll
        for (int w = 0; w < V::WARPS; w++) sum += memory.square[w][column + e];
        const float norm = sqrtf(sum);
        square[e] = 1.0f / (norm < LEAST ? LEAST : norm); /* NaN stays NaN */
        whole += sum * square[e] * square[e];
    }
    whole = sqrtf(lanes_sum<8>(whole));
    whole = 1.0f / (whole < LEAST ? LEAST : whole);
#pragma unroll
    for (int e = 0; e < 4; e++) square[e] *= whole;
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
        __stcs((float4 *)(out + (first + r * AT_ONCE) * V::CLUSTERS + column),
               make_float4(v[r][0] * square[0], v[r][1] * square[1], v[r][2] * square[2],
                           v[r][3] * square[3]));
}

/* A sample a block. */
template <class V>
__global__ void __launch_bounds__(V::THREADS, 2)
    vlad_kernel(const float *__restrict__ x, const float *__restrict__ logits,
                const ChannelNorm *__restrict__ norms, const float *__restrict__ centres,
                float *__restrict__ out) {
    extern __shared__ __align__(128) float shared_memory[];
    auto &memory = *(VladMemory<V> *)shared_memory;
    const long long sample = gridDim.x - 1 - blockIdx.x;
    const int warp = threadIdx.x / 32;
    x += sample * (V::LENGTH * V::WIDTH);
#pragma unroll
    for (int s = 0; s < V::STAGES - 1; s++) fetch_step(memory, x, s);
    share_out(memory, logits + sample * (V::LENGTH * V::ALL), norms);
    __syncthreads();
    float total = 0.0f;
    for (int row = warp; row < V::LENGTH; row += V::WARPS)
        total += memory.share[row][threadIdx.x % 32];
    memory.total[warp][threadIdx.x % 32] = total;

    VladSums sums[4][2];
#pragma unroll
    for (int i = 0; i < 8; i++) nvcuda::wmma::fill_fragment(sums[i / 2][i % 2], 0.0f);
#pragma unroll 1
    for (int step = 0; step < V::STEPS; step++) {
        __pipeline_wait_prior(V::STAGES - 2);
        __syncthreads(); /* the step is there for all, and the stage filled next is free */
        fetch_step(memory, x, step + V::STAGES - 1);
        add_step(memory, step, sums);
    }
    __syncthreads(); /* the sums reuse the stages */
#pragma unroll
    for (int i = 0; i < 8; i++)
        nvcuda::wmma::store_matrix_sync(&memory.sums[warp * 64 + i / 2 * 16][i % 2 * 16],
                                        sums[i / 2][i % 2], V::CLUSTERS + 8,
                                        nvcuda::wmma::mem_row_major);
    __syncthreads();
    finish_sample(memory, centres, out + sample * (V::WIDTH * V::CLUSTERS));
}

/* What scratch holds. */
template <class V> struct VladScratch {
    alignas(16) char split[split_bytes<typename V::Sizes, typename V::Logits>()];
    float logits[(size_t)V::ROWS * V::ALL];
    Centred parts[V::Parts::BYTES / sizeof(Centred)];
    ChannelNorm norms[V::ALL];
};

/* Enqueues out [SAMPLES][WIDTH][CLUSTERS] of x [SAMPLES][LENGTH][WIDTH], clusters [WIDTH][ALL] and
 * centres [WIDTH][CLUSTERS]; weight and bias are the batch norm's. All are aligned to 16 bytes. */
template <class V>
static void netvlad(const float *x, const float *clusters, const float *centres,
                    const float *weight, const float *bias, float *out, void *scratch,
                    cudaStream_t stream) {
    auto *s = (VladScratch<V> *)scratch;
    using Rows = StoreRows<Same, V::ROWS, V::ALL>;
    const WithMoments<typename V::Sizes, Rows> store = {{{}, s->logits}, s->parts};
    const Along<V::ROWS, V::WIDTH> a = {{}, x};
    const Across<V::ALL, V::WIDTH> b = {{}, clusters};
    constexpr int BYTES = sizeof(VladMemory<V>);
    static_assert(BYTES <= 99 * 1024, "shared memory of a block on the smaller GPUs");
    product<typename V::Sizes, typename V::Logits>(a, b, store, s->split, stream);
    join_channels<typename V::Parts>(s->parts, weight, bias, 1e-5, s->norms, stream);
    cudaFuncSetAttribute(vlad_kernel<V>, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
    vlad_kernel<V><<<V::SAMPLES, V::THREADS, BYTES, stream>>>(x, s->logits, s->norms, centres, out);
}

} // namespace kp
