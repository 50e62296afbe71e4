// provenance: shipped
/* A plain recurrent network over 256 steps of 8 samples: h = tanh(linear(x beside h)), 1024 + 256
 * features to 256, and out = linear(h), 128, of each step.
 *
 * Idea: what comes from x is one product for all steps (product.cuh), its depth in parts. Then
 * eight blocks, a cluster, have a sample: 32 cells each, their weights in registers. 16 lanes share
 * the depth of two cells. What a cell says goes straight into the shared memory of all eight
 * blocks, and counts its bytes at a barrier there (without sm_90a's instructions through global
 * memory, which holds no number before). While words are on their way, a warp computes two outputs
 * of the step before, from the words that it still has in registers.
 * Floor: 256 times the way of a word to another multiprocessor, about 250 cycles, 32 us; and the
 * sums, shuffles and tanh of a step, another 300 cycles. The product is 8 us.
 * Measured on an H200: 192 us, 41 % of the sum of these, 79 us; 95 predicted (NOTES.md). */
#include "task.h"
#include "cluster_words.cuh"
#include "operands.cuh"
#include "split_depth.cuh"
#include "stores.cuh"

constexpr int STEPS = X_DIM0, BATCH = X_DIM1, INPUT = X_DIM2, HIDDEN = H0_DIM1;
constexpr int OUT = H2O_WEIGHT_DIM0, WIDTH = I2H_WEIGHT_DIM1, ROWS = STEPS * BATCH;
constexpr int CLUSTER = 8, WARPS = HIDDEN / CLUSTER / 4, THREADS = WARPS * 32;
constexpr int FOURS = HIDDEN / 64; /* float4 of the depth, a lane */
static_assert(HIDDEN % 64 == 0 && HIDDEN <= 512 && INPUT % 4 == 0, "whole float4 of 16 lanes");
static_assert(OUT * 2 == HIDDEN && WIDTH == INPUT + HIDDEN, "a warp has 4 cells and 2 outputs");

/* Parts of x's depth, at most one for each lane of eight. */
constexpr int SLABS = (INPUT + kp::TILE_K - 1) / kp::TILE_K, PARTS = SLABS < CLUSTER ? SLABS : 8;
using Sizes = kp::SplitDepth<ROWS, HIDDEN, INPUT, PARTS>;
using Tile = kp::Tile<128, kp::Tf32Rest>;

/* What a cell has not said: words in global memory, where blocks have no other way. */
struct Silence {
    float *said;
    __device__ __forceinline__ float operator()(float v, int row, int cell) const {
#ifndef __CUDA_ARCH_FEAT_SM90_ALL
        said[row * HIDDEN + cell] = __uint_as_float(~0u);
#endif
        return v;
    }
};

/* How the eight blocks of a sample tell each other what its cells say: before step t, h[t % 2]. */
struct Words {
    float h[2][HIDDEN];
    unsigned long long bar[2];
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
struct Exchange {
    Words &words;
    uint32_t to, bar; /* in the block that this lane tells */

    __device__ __forceinline__ Exchange(Words &w, float *, int rank) : words(w) {
        const uint32_t own = kp::shared_address(w.h), own_bar = kp::shared_address(w.bar);
        to = kp::address_in_block(own, rank), bar = kp::address_in_block(own_bar, rank);
        if (threadIdx.x == 0) {
            for (int i = 0; i < 2; i++) kp::bar_init(own_bar + i * 8, 1);
            kp::bar_init_done();
            for (int i = 0; i < 2; i++) kp::bar_expect(own_bar + i * 8, sizeof w.h[0]);
        }
        kp::cluster_sync();
    }
    /* Waits for the words before step t > 0, and gets the barrier ready for those before t + 2:
     * nobody says these before it has heard what this block says at steps t and t + 1. */
    __device__ __forceinline__ void hear(int t) const {
        const uint32_t own = kp::shared_address(&words.bar[t % 2]);
        kp::bar_wait(own, (t - 1) / 2 % 2);
        if (threadIdx.x == 0 && t + 2 <= STEPS) kp::bar_expect(own, sizeof words.h[0]);
    }
    /* Tells one block what two neighbours say at step t. */
    __device__ __forceinline__ void tell(int t, int cell, float2 v) const {
        const uint32_t i = (t + 1) % 2;
        kp::store_words(to + (i * HIDDEN + cell) * 4, v, bar + i * 8);
    }
};
#else
struct Exchange {
    Words &words;
    volatile float *said; /* [STEPS][BATCH][HIDDEN], from this sample on */
    bool first;

    __device__ __forceinline__ Exchange(Words &w, float *s, int rank)
        : words(w), said(s), first(rank == 0) {}
    __device__ __forceinline__ void hear(int t) const {
        float v;
        for (;;) {
            v = said[(t - 1) * BATCH * HIDDEN + threadIdx.x];
            if (__float_as_uint(v) != ~0u) break;
            __nanosleep(20);
        }
        words.h[t % 2][threadIdx.x] = v;
        __syncthreads();
    }
    __device__ __forceinline__ void tell(int t, int cell, float2 v) const {
        if (!first) return;
        volatile float *to = said + t * BATCH * HIDDEN + cell;
        to[0] = v.x == v.x ? v.x : NAN, to[1] = v.y == v.y ? v.y : NAN; /* never silence */
    }
};
#endif

/* The lane's share of a row of weights, or of words: float4 j is that of the depth from 4 * (lane /
 * 2) + 64 j on. */
__device__ __forceinline__ void load_share(const float *row, float4 (&v)[FOURS]) {
#pragma unroll
    for (int j = 0; j < FOURS; j++)
        v[j] = *(const float4 *)(row + threadIdx.x % 32 / 2 * 4 + j * 64);
}

__device__ __forceinline__ float dot(const float4 (&a)[FOURS], const float4 (&b)[FOURS]) {
    float4 s = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int j = 0; j < FOURS; j++)
        s.x += a[j].x * b[j].x, s.y += a[j].y * b[j].y, s.z += a[j].z * b[j].z,
            s.w += a[j].w * b[j].w;
    return (s.x + s.y) + (s.z + s.w);
}

/* The sum over lanes that differ in `BITS` of their number. */
template <int BITS> __device__ __forceinline__ float sum_lanes(float v) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        if (BITS & step) v += __shfl_xor_sync(~0u, v, step);
    return v;
}

/* Grid: eight blocks a sample. from_x: [PARTS][STEPS][BATCH][HIDDEN]. */
__global__ void __launch_bounds__(THREADS, 1)
    recur_kernel(const float *__restrict__ from_x, const float *__restrict__ h0,
                 const float *__restrict__ weight, const float *__restrict__ bias,
                 const float *__restrict__ out_weight, const float *__restrict__ out_bias,
                 float *said, float *__restrict__ out) {
    extern __shared__ float4 shared_memory[];
    Words &words = *(Words *)shared_memory;
    const int sample = blockIdx.x / CLUSTER, block = blockIdx.x % CLUSTER;
    const int lane = threadIdx.x % 32, warp = block * WARPS + threadIdx.x / 32;
    /* Lanes' bits: 1 the odd cells, and the second output; 16 the upper two cells; the eight others
     * a part of what comes from x, and the block that the lane tells. */
    const int odd = lane % 2, slot = lane / 2 % 8, upper = lane / 16;
    const int cell = warp * 4 + upper * 2 + odd, output = warp * 2 + odd;
    float4 w[2][FOURS], w_out[FOURS], h[FOURS];
    load_share(weight + (long long)(warp * 4 + odd) * WIDTH + INPUT, w[0]);
    load_share(weight + (long long)(warp * 4 + 2 + odd) * WIDTH + INPUT, w[1]);
    load_share(out_weight + output * HIDDEN, w_out);
    const float add = slot == 0 ? __ldg(bias + cell) : 0.0f, add_out = __ldg(out_bias + output);
    const float *x = from_x + ((long long)slot * ROWS + sample) * HIDDEN + cell;
    auto part_of = [&](int t) { return slot < PARTS ? __ldg(x + t * BATCH * HIDDEN) : 0.0f; };

    words.h[0][threadIdx.x] = __ldg(h0 + sample * HIDDEN + threadIdx.x);
    __syncthreads();
    const Exchange exchange(words, said + sample * HIDDEN, slot);
    float part = part_of(0);
#pragma unroll 1
    for (int t = 0; t <= STEPS; t++) {
        if (t > 0) exchange.hear(t);
        load_share(words.h[t % 2], h);
        if (t < STEPS) {
            const float low = dot(h, w[0]), high = dot(h, w[1]);
            float sum = upper ? high : low;
            sum += __shfl_xor_sync(~0u, upper ? low : high, 16);
            const float v = tanhf(sum_lanes<14>(sum + (part + add)));
            const float next = __shfl_xor_sync(~0u, v, 1);
            if (!odd) exchange.tell(t, cell, make_float2(v, next));
            if (t + 1 < STEPS) part = part_of(t + 1);
        }
        if (t > 0) {
            const float v = sum_lanes<30>(dot(h, w_out)) + add_out;
            if (lane < 2) out[((t - 1) * BATCH + sample) * OUT + output] = v;
        }
    }
}

/* Scratch: split weights; what comes from x; what the cells say. */
constexpr size_t SPLIT = kp::split_bytes<Sizes, Tile>();

extern "C" size_t scratch_bytes(void) {
    return SPLIT + Sizes::parts_bytes() + (size_t)ROWS * HIDDEN * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *from_x = (float *)((char *)scratch + SPLIT);
    float *said = from_x + (size_t)PARTS * ROWS * HIDDEN;
    const kp::Along<ROWS, INPUT> x = {{}, in->x};
    const kp::Along<HIDDEN, INPUT, WIDTH> weight = {{}, in->i2h_weight};
    const kp::StoreRows<Silence, ROWS, HIDDEN, (long long)ROWS *HIDDEN> store = {{said}, from_x};
    kp::product<Sizes, Tile>(x, weight, store, scratch, stream);
    /* The blocks of a sample must run at once. */
    int device = 0, clusters = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, device);
    cudaLaunchAttribute together = {};
    together.id = clusters ? cudaLaunchAttributeClusterDimension : cudaLaunchAttributeCooperative;
    if (clusters)
        together.val.clusterDim.x = CLUSTER, together.val.clusterDim.y = 1,
        together.val.clusterDim.z = 1;
    else
        together.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(BATCH * CLUSTER);
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = sizeof(Words);
    config.stream = stream;
    config.attrs = &together;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, recur_kernel, (const float *)from_x, in->h0, in->i2h_weight,
                       in->i2h_bias, in->h2o_weight, in->h2o_bias, said, out->out);
}
