/* lstm.cuh: layers of LSTM cells, all at work at once.
 *
 * Idea: a block has 16 cells of one layer for the whole sequence, their weights in registers. A
 * warp has the 8 rows of gates of two cells; its lanes share the depth, and add up by shuffles.
 * What a layer says at a step goes to the other blocks of the layer and of the next one through
 * memory, each word in a place of its own, which holds no number before: who needs a word reads
 * until one is there, so that a step takes one way through the L2 cache and no counter. The layer
 * below is ahead, so what it said is multiplied first, while the layer's own words are on their
 * way.
 *
 * What limits it: STEPS turns of 16 BATCH HIDDEN flops for each of a block's cells, 1.45 us for a
 * batch of 10 and 256 cells on an H200, and what a turn waits for. All blocks of a layer must run
 * at once (a cooperative launch); where a GPU has no room for all layers, they take several
 * launches.
 *
 * Tensors: x [BATCH][STEPS][INPUT]; h0, c0, h_last, c_last [LAYERS][BATCH][HIDDEN]; weights and
 * biases as PyTorch has them, gates in the order in, keep, new, out; all aligned to 16 bytes. */
#pragma once
#include "activations.cuh"
#include "async.cuh"

namespace kp {

constexpr int LSTM_THREADS = 256, LSTM_CELLS = LSTM_THREADS / 32 * 2;

template <int BATCH_, int STEPS_, int INPUT_, int HIDDEN_, int LAYERS_> struct LstmSizes {
    static constexpr int BATCH = BATCH_, STEPS = STEPS_, INPUT = INPUT_, HIDDEN = HIDDEN_,
                         LAYERS = LAYERS_;
    static constexpr int STATE = BATCH * HIDDEN, BLOCKS = HIDDEN / LSTM_CELLS; /* of a layer */
    static_assert(HIDDEN % 128 == 0 && INPUT % 4 == 0 && INPUT <= HIDDEN, "whole float4 of lanes");
    static_assert((long long)LAYERS * STEPS * STATE < 1LL << 31, "32 bits");
    static_assert(BATCH % 2 == 0 && BATCH <= 16, "a lane has a cell, or none, after the sums");
};

struct LstmLayer {
    const float *weight_x, *weight_h, *bias_x, *bias_h;
};
/* Layer n of a task's inputs, as PyTorch names them. */
#define KP_LSTM_LAYER(in, n)                                                     \
    {                                                                            \
        in->lstm_weight_ih_l##n, in->lstm_weight_hh_l##n, in->lstm_bias_ih_l##n, \
            in->lstm_bias_hh_l##n                                                \
    }
#define KP_LSTM_LAYERS_6(in)                                                                    \
    {                                                                                           \
        KP_LSTM_LAYER(in, 0), KP_LSTM_LAYER(in, 1), KP_LSTM_LAYER(in, 2), KP_LSTM_LAYER(in, 3), \
            KP_LSTM_LAYER(in, 4), KP_LSTM_LAYER(in, 5)                                          \
    }

template <class S> struct Lstm {
    LstmLayer layer[S::LAYERS];
    const float *x, *h0, *c0;
    float *h_last, *c_last; /* null if nobody wants them */
};

/* A block's shared memory: what the layer below says and what the layer said before; gates and
 * biases of each warp's cells. */
template <class S> struct LstmTile {
    float said[2][S::BATCH][S::HIDDEN];
    float gate[LSTM_THREADS / 32][8 * S::BATCH], bias[LSTM_THREADS / 32][8];
};

/* Starts to copy BATCH rows of WIDTH, PITCH apart; a thread always copies the same words. */
template <class S, int WIDTH, int PITCH>
__device__ __forceinline__ void ask(float (&to)[S::BATCH][S::HIDDEN], const float *from) {
    constexpr int ROW = WIDTH / 4;
#pragma unroll
    for (int f = threadIdx.x; f < S::BATCH * ROW; f += LSTM_THREADS)
        ::copy_async(&to[f / ROW][f % ROW * 4], from + (long long)(f / ROW) * PITCH + f % ROW * 4);
    ::copy_commit();
}

/* Waits for what was asked for, which is a state; asks again while a word of it is not said. */
template <class S>
__device__ __forceinline__ void hear(float (&to)[S::BATCH][S::HIDDEN], const float *from) {
    for (;;) {
        bool said = true;
        ::copy_wait(0);
#pragma unroll
        for (int f = threadIdx.x; f < S::STATE / 4; f += LSTM_THREADS) {
            const uint4 v = ((const uint4 *)to)[f];
            said &= v.x != ~0u && v.y != ~0u && v.z != ~0u && v.w != ~0u;
        }
        if (said) return;
        __nanosleep(20);
        ask<S, S::HIDDEN, S::HIDDEN>(to, from);
    }
}

/* A lane's share of a warp's 8 rows of gates: columns 4 lane + 128 j to + 3; zeros from `width` on.
 * Row r is gate r % 4 of the warp's cell r / 4, the first of which is `cell`. */
template <class S>
__device__ __forceinline__ void load_weights(const float *weight, int width, int cell,
                                             float (&w)[8][S::HIDDEN / 32]) {
#pragma unroll
    for (int r = 0; r < 8; r++)
#pragma unroll
        for (int j = 0; j < S::HIDDEN / 128; j++) {
            const int k = threadIdx.x % 32 * 4 + j * 128;
            const float *row = weight + (long long)(r % 4 * S::HIDDEN + cell + r / 4) * width;
            float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (k < width) v = __ldg((const float4 *)(row + k));
            w[r][4 * j] = v.x, w[r][4 * j + 1] = v.y, w[r][4 * j + 2] = v.z, w[r][4 * j + 3] = v.w;
        }
}

/* sum[r * BATCH + b] += the lane's share of row r times what was said of sample b. */
template <class S>
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

/* What a cell says, from its gates; c is its state. Never the NaN that stands for nothing. */
__device__ __forceinline__ float cell_says(const float (&gate)[4], float &c) {
    c = Sigmoid()(gate[1]) * c + Sigmoid()(gate[0]) * tanhf(gate[2]);
    const float h = Sigmoid()(gate[3]) * tanhf(c);
    return h == h ? h : NAN;
}

/* Grid: BLOCKS blocks a layer, from layer `first` on, all at once. said: [LAYERS][STEPS][BATCH]
 * [HIDDEN], all bits set where nothing was said. */
template <class S>
__global__ void __launch_bounds__(LSTM_THREADS, 1)
    lstm_kernel(Lstm<S> net, float *said, int first) {
    extern __shared__ float4 shared_memory[];
    auto &tile = *(LstmTile<S> *)shared_memory;
    const int layer = first + blockIdx.x / S::BLOCKS, warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32, b = lane / 2; /* the lane's sample, if there is one */
    const int cell = blockIdx.x % S::BLOCKS * LSTM_CELLS + warp * 2;
    const LstmLayer &of = net.layer[layer];
    float w_x[8][S::HIDDEN / 32], w_h[8][S::HIDDEN / 32], c = 0.0f;
    load_weights<S>(of.weight_x, layer ? S::HIDDEN : S::INPUT, cell, w_x);
    load_weights<S>(of.weight_h, S::HIDDEN, cell, w_h);
    const int own = layer * S::STATE + b * S::HIDDEN + cell + lane % 2; /* the lane's cell */
    if (b < S::BATCH) c = __ldg(net.c0 + own);
    if (lane < 8) {
        const int row = lane % 4 * S::HIDDEN + cell + lane / 4;
        tile.bias[warp][lane] = __ldg(of.bias_x + row) + __ldg(of.bias_h + row);
    }
    for (int i = threadIdx.x; i < S::STATE; i += LSTM_THREADS) (&tile.said[0][0][0])[i] = 0.0f;
    __syncthreads();
    constexpr int LAYER = S::STEPS * S::STATE; /* words that a layer says */
    auto ask_below = [&](int t) {
        if (layer)
            ask<S, S::HIDDEN, S::HIDDEN>(tile.said[0], said + (layer - 1) * LAYER + t * S::STATE);
        else
            ask<S, S::INPUT, S::STEPS * S::INPUT>(tile.said[0], net.x + t * S::INPUT);
    };
    ask_below(0);
#pragma unroll 1
    for (int t = 0; t < S::STEPS; t++) {
        float *to = said + layer * LAYER + t * S::STATE;
        float sum[8 * S::BATCH] = {};
        ::copy_wait(0);
        if (layer) hear<S>(tile.said[0], to - LAYER);
        __syncthreads();
        add_products<S>(w_x, tile.said[0], sum);
        const float *before = t ? to - S::STATE : net.h0 + layer * S::STATE;
        ask<S, S::HIDDEN, S::HIDDEN>(tile.said[1], before);
        ::copy_wait(0);
        if (t) hear<S>(tile.said[1], before);
        __syncthreads();
        if (t < S::STEPS - 1) ask_below(t + 1);
        add_products<S>(w_h, tile.said[1], sum);
        share_sums<16, 8 * S::BATCH>(sum);
#pragma unroll
        for (int i = 0; i < S::BATCH / 2; i++) /* two lanes write the same */
            tile.gate[warp][lane / 2 * (S::BATCH / 2) + i] = sum[i];
        __syncwarp();
        if (b < S::BATCH) {
            float gate[4];
#pragma unroll
            for (int g = 0; g < 4; g++) {
                const int row = lane % 2 * 4 + g;
                gate[g] = tile.gate[warp][row * S::BATCH + b] + tile.bias[warp][row];
            }
            const float h = cell_says(gate, c);
            __stcg(to + b * S::HIDDEN + cell + lane % 2, h);
            if (t == S::STEPS - 1 && net.h_last) net.h_last[own] = h;
        }
        __syncwarp(); /* the gates have been read */
    }
    if (b < S::BATCH && net.c_last) net.c_last[own] = c;
}

/* Bytes of scratch that lstm() needs. */
template <class S> constexpr size_t lstm_scratch() {
    return (size_t)S::LAYERS * S::STEPS * S::STATE * sizeof(float);
}

/* Enqueues the whole network. */
template <class S> static void lstm(const Lstm<S> &net, void *scratch, cudaStream_t stream) {
    const auto kernel = lstm_kernel<S>;
    constexpr size_t shared = sizeof(LstmTile<S>);
    int device = 0, processors = 0, each = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, LSTM_THREADS, shared);
    int layers = processors * each / S::BLOCKS; /* at once */
    if (layers > S::LAYERS) layers = S::LAYERS;
    if (layers < 1) layers = 1; /* the launch says what is wrong */
    cudaLaunchAttribute together = {};
    together.id = cudaLaunchAttributeCooperative;
    together.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.blockDim = dim3(LSTM_THREADS);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &together;
    config.numAttrs = 1;
    cudaMemsetAsync(scratch, 0xff, lstm_scratch<S>(), stream);
    for (int first = 0; first < S::LAYERS; first += layers) {
        const int left = S::LAYERS - first;
        config.gridDim = dim3((left < layers ? left : layers) * S::BLOCKS);
        cudaLaunchKernelEx(&config, kernel, net, (float *)scratch, first);
    }
}

} // namespace kp
