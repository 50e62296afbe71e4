/* recurrent.cuh: layers of LSTM or GRU cells over a sequence, all layers at work at once.
 *
 * Idea: a block has 16 cells of one layer for the whole sequence, their weights in registers. A
 * warp has two cells, each with four sums over the depth that become its gates; its lanes share the
 * depth, and add up by shuffles. What a layer computes at a step is published to the other blocks
 * of the layer and of the next one through memory, each word in a place of its own, which holds no
 * number before: who needs a word reads until one is there, so that a step takes one way through
 * the L2 cache and no counter. The layer below is ahead, so what it published is multiplied first,
 * while the layer's own words are on their way.
 *
 * What limits it: STEPS turns of 16 BATCH HIDDEN flops for each of a block's cells (GRU: 12), 1.45
 * us for a batch of 10 and 256 cells on an H200, and what a turn waits for. All blocks of a layer
 * must run at once (a cooperative launch); where a GPU has no room for all layers, they take
 * several launches. Reaches 39 to 45 % of the floor of its flops (l3_039, l3_035).
 *
 * Tensors: x [BATCH][STEPS][INPUT], or [STEPS][BATCH][INPUT]; h0, state0, h_last, state_last
 * [LAYERS][BATCH][HIDDEN]; weights and biases as PyTorch has them; all aligned to 16 bytes. */
#pragma once
#include "activations.cuh"
#include "async.cuh"

namespace kp {

/* A cell: row(of, i), which of its rows of weights sum i takes of what comes from below (of = 0)
 * and of what its layer said (1), or -1; says(), from the sums and the state, which it renews. */
struct LstmCell {
    static __host__ __device__ constexpr int row(int, int i) { return i; } /* in, keep, new, out */
    static __device__ __forceinline__ float says(const float (&sum)[4], float &state) {
        state = Sigmoid()(sum[1]) * state + Sigmoid()(sum[0]) * tanhf(sum[2]);
        return Sigmoid()(sum[3]) * tanhf(state);
    }
};

/* Reset, keep, and new twice: what comes from below, and what the layer said, which reset scales.
 * The state is what the cell said before: state0 is h0. */
struct GruCell {
    static __host__ __device__ constexpr int row(int of, int i) {
        return i < 2 ? i : i - 2 == of ? 2 : -1;
    }
    static __device__ __forceinline__ float says(const float (&sum)[4], float &state) {
        const float keep = Sigmoid()(sum[1]), fresh = tanhf(sum[2] + Sigmoid()(sum[0]) * sum[3]);
        return state = (1.0f - keep) * fresh + keep * state;
    }
};

constexpr int CELL_THREADS = 256, CELL_WARPS = CELL_THREADS / 32, CELLS = 2 * CELL_WARPS;

template <class Cell_, bool BATCH_FIRST, int BATCH_, int STEPS_, int INPUT_, int HIDDEN_,
          int LAYERS_>
struct RecurrentSizes {
    using Cell = Cell_;
    static constexpr int BATCH = BATCH_, STEPS = STEPS_, INPUT = INPUT_, HIDDEN = HIDDEN_;
    static constexpr int LAYERS = LAYERS_, BLOCKS = HIDDEN / CELLS;    /* of a layer */
    static constexpr int STATE = BATCH * HIDDEN, SAID = STEPS * STATE; /* words, of a layer */
    static constexpr int SAMPLE = BATCH_FIRST ? STEPS * INPUT : INPUT; /* from one to the next */
    static constexpr int STEP = BATCH_FIRST ? INPUT : BATCH * INPUT;
    static_assert(HIDDEN % 128 == 0 && INPUT % 4 == 0 && INPUT <= HIDDEN, "whole float4 of lanes");
    static_assert((long long)LAYERS * SAID < 1LL << 31, "counted in 32 bits");
    static_assert(BATCH % 2 == 0 && BATCH <= 16, "a lane has one cell of a sample, or none");
};

struct RecurrentLayer {
    const float *weight_x, *weight_h, *bias_x, *bias_h;
};
/* Layer n of a task's inputs, and all of six, as PyTorch names them. */
#define KP_LAYER(in, net, n)                                                        \
    {                                                                               \
        in->net##_weight_ih_l##n, in->net##_weight_hh_l##n, in->net##_bias_ih_l##n, \
            in->net##_bias_hh_l##n                                                  \
    }
#define KP_LAYERS_6(in, net)                                                                    \
    {                                                                                           \
        KP_LAYER(in, net, 0), KP_LAYER(in, net, 1), KP_LAYER(in, net, 2), KP_LAYER(in, net, 3), \
            KP_LAYER(in, net, 4), KP_LAYER(in, net, 5)                                          \
    }

template <class S> struct Recurrent {
    RecurrentLayer layer[S::LAYERS];
    const float *x, *h0, *state0;
    float *h_last, *state_last; /* null if nobody wants them */
};

/* A block's shared memory: what the layer below says and what the layer said before; sums and
 * biases of each warp's cells. */
template <class S> struct CellTile {
    float said[2][S::BATCH][S::HIDDEN];
    float sum[CELL_WARPS][8][S::BATCH], bias[CELL_WARPS][8];
};

/* Starts to copy BATCH rows of WIDTH, PITCH apart; a thread always copies the same words. */
template <class S, int WIDTH, int PITCH>
__device__ __forceinline__ void ask(float (&to)[S::BATCH][S::HIDDEN], const float *from) {
    constexpr int ROW = WIDTH / 4;
#pragma unroll
    for (int f = threadIdx.x; f < S::BATCH * ROW; f += CELL_THREADS)
        ::copy_async(&to[f / ROW][f % ROW * 4], from + (long long)(f / ROW) * PITCH + f % ROW * 4);
    ::copy_commit();
}

/* Waits for what was asked for; unless it was `there` from the beginning, asks again while a word
 * of it is not said. */
template <class S>
__device__ __forceinline__ void hear(float (&to)[S::BATCH][S::HIDDEN], const float *from,
                                     bool there) {
    for (;;) {
        bool said = true;
        ::copy_wait(0);
        if (there) return;
#pragma unroll
        for (int f = threadIdx.x; f < S::STATE / 4; f += CELL_THREADS) {
            const uint4 v = ((const uint4 *)to)[f];
            said &= v.x != ~0u && v.y != ~0u && v.z != ~0u && v.w != ~0u;
        }
        if (said) return;
        __nanosleep(20);
        ask<S, S::HIDDEN, S::HIDDEN>(to, from);
    }
}

/* A lane's share of the weights of a warp's 8 sums, `of` below or its own layer: columns 4 lane +
 * 128 j to + 3; zeros from `width` on. Sum r is r % 4 of cell r / 4, the first of which is `cell`.
 */
template <class S, int OF>
__device__ __forceinline__ void load_weights(const float *weight, int width, int cell,
                                             float (&w)[8][S::HIDDEN / 32]) {
#pragma unroll
    for (int r = 0; r < 8; r++) {
        if (S::Cell::row(OF, r % 4) < 0) continue;
        const float *row = weight + (S::Cell::row(OF, r % 4) * S::HIDDEN + cell + r / 4) * width;
#pragma unroll
        for (int j = 0; j < S::HIDDEN / 128; j++) {
            const int k = threadIdx.x % 32 * 4 + j * 128;
            float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (k < width) v = __ldg((const float4 *)(row + k));
            w[r][4 * j] = v.x, w[r][4 * j + 1] = v.y, w[r][4 * j + 2] = v.z, w[r][4 * j + 3] = v.w;
        }
    }
}

/* sum[r * BATCH + b] += the lane's share of the weights of sum r times what was said of sample b.
 */
template <class S, int OF>
__device__ __forceinline__ void add_products(const float (&w)[8][S::HIDDEN / 32],
                                             const float (&said)[S::BATCH][S::HIDDEN],
                                             float (&sum)[8 * S::BATCH]) {
#pragma unroll
    for (int j = 0; j < S::HIDDEN / 128; j++)
#pragma unroll
        for (int b = 0; b < S::BATCH; b++) {
            const float4 v = *(const float4 *)&said[b][threadIdx.x % 32 * 4 + j * 128];
#pragma unroll
            for (int r = 0; r < 8; r++) {
                if (S::Cell::row(OF, r % 4) < 0) continue;
                sum[r * S::BATCH + b] += w[r][4 * j] * v.x;
                sum[r * S::BATCH + b] += w[r][4 * j + 1] * v.y;
                sum[r * S::BATCH + b] += w[r][4 * j + 2] * v.z;
                sum[r * S::BATCH + b] += w[r][4 * j + 3] * v.w;
            }
        }
}

/* N values of each lane, added up over the warp: lanes LANES apart exchange halves until two share
 * a sixteenth. Lane l has values l / 2 * N / 16 on, in v[0] to v[N / 16 - 1]. */
template <int LANES, int N, int MOST> __device__ __forceinline__ void share_sums(float (&v)[MOST]) {
    if constexpr (LANES > 1) {
        const bool upper = threadIdx.x & LANES;
#pragma unroll
        for (int i = 0; i < N / 2; i++) {
            const float other = __shfl_xor_sync(~0u, upper ? v[i] : v[i + N / 2], LANES);
            v[i] = (upper ? v[i + N / 2] : v[i]) + other;
        }
        share_sums<LANES / 2, N / 2>(v);
    } else {
#pragma unroll
        for (int i = 0; i < N; i++) v[i] += __shfl_xor_sync(~0u, v[i], 1);
    }
}

/* The bias of sum i of a cell. */
template <class S>
__device__ __forceinline__ float bias_of(const RecurrentLayer &layer, int i, int cell) {
    const int x = S::Cell::row(0, i), h = S::Cell::row(1, i);
    return (x < 0 ? 0.0f : __ldg(layer.bias_x + x * S::HIDDEN + cell)) +
           (h < 0 ? 0.0f : __ldg(layer.bias_h + h * S::HIDDEN + cell));
}

/* Grid: BLOCKS blocks a layer, from layer `first` on, all at once. said: [LAYERS][STEPS][BATCH]
 * [HIDDEN], all bits set where nothing was said. */
template <class S>
__global__ void __launch_bounds__(CELL_THREADS, 1)
    recurrent_kernel(Recurrent<S> net, float *said, int first) {
    extern __shared__ float4 shared_memory[];
    auto &tile = *(CellTile<S> *)shared_memory;
    const int layer = first + blockIdx.x / S::BLOCKS, warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32, b = lane / 2; /* the lane's sample, if there is one */
    const int cell = blockIdx.x % S::BLOCKS * CELLS + warp * 2, which = lane % 2;
    const int own = b * S::HIDDEN + cell + which; /* the lane's place in a state */
    float w_x[8][S::HIDDEN / 32], w_h[8][S::HIDDEN / 32], state = 0.0f;
    load_weights<S, 0>(net.layer[layer].weight_x, layer ? S::HIDDEN : S::INPUT, cell, w_x);
    load_weights<S, 1>(net.layer[layer].weight_h, S::HIDDEN, cell, w_h);
    if (b < S::BATCH) state = __ldg(net.state0 + layer * S::STATE + own);
    if (lane < 8) tile.bias[warp][lane] = bias_of<S>(net.layer[layer], lane % 4, cell + lane / 4);
    for (int i = threadIdx.x; i < S::STATE; i += CELL_THREADS) (&tile.said[0][0][0])[i] = 0.0f;
    __syncthreads();
    auto ask_below = [&](int t) {
        if (layer)
            ask<S, S::HIDDEN, S::HIDDEN>(tile.said[0], said + (layer - 1) * S::SAID + t * S::STATE);
        else
            ask<S, S::INPUT, S::SAMPLE>(tile.said[0], net.x + t * S::STEP);
    };
    ask_below(0);
#pragma unroll 1
    for (int t = 0; t < S::STEPS; t++) {
        float *to = said + layer * S::SAID + t * S::STATE, sum[8 * S::BATCH] = {};
        hear<S>(tile.said[0], to - S::SAID, layer == 0);
        __syncthreads();
        add_products<S, 0>(w_x, tile.said[0], sum);
        const float *before = t ? to - S::STATE : net.h0 + layer * S::STATE;
        ask<S, S::HIDDEN, S::HIDDEN>(tile.said[1], before);
        hear<S>(tile.said[1], before, t == 0);
        __syncthreads();
        if (t < S::STEPS - 1) ask_below(t + 1);
        add_products<S, 1>(w_h, tile.said[1], sum);
        share_sums<16, 8 * S::BATCH>(sum);
#pragma unroll
        for (int i = 0; i < S::BATCH / 2; i++) /* two lanes write the same */
            tile.sum[warp][b / 2][b % 2 * (S::BATCH / 2) + i] = sum[i];
        __syncwarp();
        if (b < S::BATCH) {
            float all[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                all[i] = tile.sum[warp][which * 4 + i][b] + tile.bias[warp][which * 4 + i];
            const float h = S::Cell::says(all, state);
            __stcg(to + own, h == h ? h : NAN); /* never the NaN that stands for nothing */
            if (t == S::STEPS - 1 && net.h_last) net.h_last[layer * S::STATE + own] = h;
        }
        __syncwarp(); /* the sums have been read */
    }
    if (b < S::BATCH && net.state_last) net.state_last[layer * S::STATE + own] = state;
}

/* Bytes of scratch that recurrent() needs. */
template <class S> constexpr size_t recurrent_scratch() {
    return (size_t)S::LAYERS * S::SAID * sizeof(float);
}

/* Enqueues the whole network. Then `scratch` has what each layer said at each step: [LAYERS][STEPS]
 * [BATCH][HIDDEN]. */
template <class S>
static void recurrent(const Recurrent<S> &net, void *scratch, cudaStream_t stream) {
    const auto kernel = recurrent_kernel<S>;
    constexpr size_t shared = sizeof(CellTile<S>);
    int device = 0, processors = 0, each = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, CELL_THREADS, shared);
    int layers = processors * each / S::BLOCKS; /* at once */
    if (layers > S::LAYERS) layers = S::LAYERS;
    if (layers < 1) layers = 1; /* the launch says what is wrong */
    cudaLaunchAttribute together = {};
    together.id = cudaLaunchAttributeCooperative;
    together.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.blockDim = dim3(CELL_THREADS);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &together;
    config.numAttrs = 1;
    cudaMemsetAsync(scratch, 0xff, recurrent_scratch<S>(), stream);
    for (int first = 0; first < S::LAYERS; first += layers) {
        const int left = S::LAYERS - first;
        config.gridDim = dim3((left < layers ? left : layers) * S::BLOCKS);
        cudaLaunchKernelEx(&config, kernel, net, (float *)scratch, first);
    }
}

/* What the last layer said at step `step`, in that scratch. */
template <class S> static const float *last_layer(const void *scratch, int step) {
    return (const float *)scratch + (S::LAYERS - 1) * S::SAID + step * S::STATE;
}

} // namespace kp
