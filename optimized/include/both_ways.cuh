/* both_ways.cuh: bidirectional layers of LSTM or GRU cells (recurrent.cuh) over a sequence.
 *
 * Idea: a layer needs all that the one below says, both ways, so layers follow each other. What
 * comes from below is multiplied for all steps at once (product.cuh); then both directions run at
 * a time, 16 cells a block, as recurrent.cuh has it: weights in registers, and words that are read
 * until they are there.
 *
 * What limits it: LAYERS STEPS turns, each of which takes a word's way through the L2 cache and the
 * products of 16 cells, 8 BATCH HIDDEN flops a cell (GRU: 6), of which nothing hides the other.
 * Reaches 62 to 64 % of that floor (l3_038, l3_041).
 *
 * Tensors: as in recurrent.cuh, layers and directions in PyTorch's order: both of layer 0, ... */
#pragma once
#include "operands.cuh"
#include "recurrent.cuh"
#include "stores.cuh"

namespace kp {

/* S: RecurrentSizes; FIRST: whether the samples of x come first, which S::SAMPLE says. */
template <class S> struct BothWaysSizes {
    static constexpr int GATES = S::Cell::row(0, 3) == 3 ? 4 : 3; /* rows of weights, in HIDDENs */
    static constexpr int PLACES = S::BATCH * S::STEPS, BOTH = 2 * S::HIDDEN;
    static constexpr int FROM_BELOW = PLACES * GATES * S::HIDDEN; /* words, of a direction */
    static constexpr bool FIRST = S::SAMPLE > S::STEP;
};

/* What one direction of a layer reads and writes. */
struct OneWay {
    const float *weight_h, *bias_h, *from_below, *h0, *state0;
    float *said, *h_last, *state_last; /* the last two null if nobody wants them */
};
struct BothWays {
    OneWay way[2];
    float *features; /* [STEPS][BATCH][2 HIDDEN], for the layer above */
};

/* Grid: BLOCKS blocks a direction, all at once. said: [STEPS][BATCH][HIDDEN], all bits set.
 * SAMPLES: whether from_below has the steps of a sample together. */
template <class S, bool SAMPLES>
__global__ void __launch_bounds__(CELL_THREADS, 1) both_ways_kernel(BothWays net) {
    using Z = BothWaysSizes<S>;
    extern __shared__ float4 shared_memory[];
    auto &tile = *(CellTile<S> *)shared_memory;
    const int reverse = blockIdx.x / S::BLOCKS, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int b = lane / 2, which = lane % 2; /* the lane's sample, if there is one, and cell */
    const int cell = blockIdx.x % S::BLOCKS * CELLS + warp * 2;
    const int own = b * S::HIDDEN + cell + which;
    const OneWay &way = net.way[reverse];
    float w_h[8][S::HIDDEN / 32], state = 0.0f;
    load_weights<S, 1>(way.weight_h, S::HIDDEN, cell, w_h);
    if (b < S::BATCH) state = __ldg(way.state0 + own);
    if (lane < 8) {
        const int row = S::Cell::row(1, lane % 4);
        tile.bias[warp][lane] =
            row < 0 ? 0.0f : __ldg(way.bias_h + row * S::HIDDEN + cell + lane / 4);
    }
#pragma unroll 1
    for (int s = 0; s < S::STEPS; s++) {
        const int t = reverse ? S::STEPS - 1 - s : s;
        float *to = way.said + t * S::STATE, sum[8 * S::BATCH] = {}, below[4] = {};
        const float *before = s ? to + (reverse ? S::STATE : -S::STATE) : way.h0;
        auto &heard = tile.said[s % 2];
        ask<S, S::HIDDEN, S::HIDDEN>(heard, before);
        if (b < S::BATCH) {
            const int place = SAMPLES ? b * S::STEPS + t : t * S::BATCH + b;
            const float *from = way.from_below + place * Z::GATES * S::HIDDEN + cell + which;
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (S::Cell::row(0, i) >= 0)
                    below[i] = __ldg(from + S::Cell::row(0, i) * S::HIDDEN);
        }
        hear<S>(heard, before, s == 0);
        __syncthreads();
        add_products<S, 1>(w_h, heard, sum);
        share_sums<16, 8 * S::BATCH>(sum);
#pragma unroll
        for (int i = 0; i < S::BATCH / 2; i++) /* two lanes write the same */
            tile.sum[warp][b / 2][b % 2 * (S::BATCH / 2) + i] = sum[i];
        __syncwarp();
        if (b < S::BATCH) {
            float all[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                all[i] =
                    tile.sum[warp][which * 4 + i][b] + tile.bias[warp][which * 4 + i] + below[i];
            const float h = S::Cell::says(all, state);
            __stcg(to + own, h == h ? h : NAN); /* never the NaN that stands for nothing */
            net.features[(t * S::BATCH + b) * Z::BOTH + reverse * S::HIDDEN + cell + which] = h;
            if (s == S::STEPS - 1 && way.h_last) way.h_last[own] = h;
        }
        __syncwarp(); /* the sums have been read */
    }
    if (b < S::BATCH && way.state_last) way.state_last[own] = state;
}

/* All of a network: layer[2 l] and layer[2 l + 1] are both directions of layer l. */
template <class S> struct BothWaysNet {
    RecurrentLayer layer[2 * S::LAYERS];
    const float *x, *h0, *state0;
    float *features;            /* of the last layer: [STEPS][BATCH][2 HIDDEN]; or null */
    float *h_last, *state_last; /* null if nobody wants them */
};

/* What comes from below: places by gates. Long chains of layers pass on what rests in bf16 lose. */
template <class S, int WIDTH>
using FromBelow = Matrices<BothWaysSizes<S>::PLACES, BothWaysSizes<S>::GATES * S::HIDDEN, WIDTH>;
using FromBelowTile = Tile<128, Tf32Rest>;

template <class S> struct BothWaysScratch {
    using Z = BothWaysSizes<S>;
    static constexpr size_t SPLIT = split_bytes<FromBelow<S, Z::BOTH>, FromBelowTile>();
    static_assert(SPLIT % 16 == 0 && SPLIT >= split_bytes<FromBelow<S, S::INPUT>, FromBelowTile>(),
                  "the widest layer");
    static constexpr size_t WORDS =
        2 * (size_t)Z::FROM_BELOW + 2 * (size_t)S::SAID + 2 * (size_t)Z::PLACES * Z::BOTH;
    static constexpr size_t BYTES = SPLIT + WORDS * sizeof(float);
};

/* Enqueues what comes from below for one direction. */
template <class S, int WIDTH>
static void multiply_below(const RecurrentLayer &layer, const float *x, float *to, void *scratch,
                           cudaStream_t stream) {
    using Z = BothWaysSizes<S>;
    const Along<Z::PLACES, WIDTH> a = {{}, x};
    const Along<Z::GATES * S::HIDDEN, WIDTH> b = {{}, layer.weight_x};
    const StoreRows<AddBias, Z::PLACES, Z::GATES *S::HIDDEN> store = {{layer.bias_x}, to};
    product<FromBelow<S, WIDTH>, FromBelowTile>(a, b, store, scratch, stream);
}

/* Enqueues the steps of a layer; `samples` as SAMPLES. */
template <class S, bool SAMPLES>
static void run_both_ways(const BothWays &net, cudaStream_t stream) {
    const auto kernel = both_ways_kernel<S, SAMPLES>;
    constexpr size_t shared = sizeof(CellTile<S>);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    cudaLaunchAttribute together = {};
    together.id = cudaLaunchAttributeCooperative;
    together.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(2 * S::BLOCKS);
    config.blockDim = dim3(CELL_THREADS);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &together;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, kernel, net);
}

/* Enqueues the whole network; scratch: BothWaysScratch<S>::BYTES. Returns the last layer's
 * features. */
template <class S>
static const float *both_ways(const BothWaysNet<S> &net, void *scratch, cudaStream_t stream) {
    using Z = BothWaysSizes<S>;
    float *below = (float *)((char *)scratch + BothWaysScratch<S>::SPLIT);
    float *said = below + 2 * (size_t)Z::FROM_BELOW, *features = said + 2 * (size_t)S::SAID;
    for (int l = 0; l < S::LAYERS; l++) {
        float *x = features + (l + 1) % 2 * (size_t)Z::PLACES * Z::BOTH; /* of the layer below */
        BothWays own = {};
        own.features = features + l % 2 * (size_t)Z::PLACES * Z::BOTH;
        if (l + 1 == S::LAYERS && net.features) own.features = net.features;
        cudaMemsetAsync(said, 0xff, 2 * (size_t)S::SAID * sizeof(float), stream);
        for (int w = 0; w < 2; w++) {
            const RecurrentLayer &layer = net.layer[2 * l + w];
            const size_t at = (size_t)(2 * l + w) * S::STATE;
            float *to = below + w * (size_t)Z::FROM_BELOW;
            if (l == 0)
                multiply_below<S, S::INPUT>(layer, net.x, to, scratch, stream);
            else
                multiply_below<S, Z::BOTH>(layer, x, to, scratch, stream);
            own.way[w] = {layer.weight_h,
                          layer.bias_h,
                          to,
                          net.h0 + at,
                          net.state0 + at,
                          said + w * (size_t)S::SAID,
                          net.h_last ? net.h_last + at : nullptr,
                          net.state_last ? net.state_last + at : nullptr};
        }
        if (l == 0 && Z::FIRST)
            run_both_ways<S, true>(own, stream);
        else
            run_both_ways<S, false>(own, stream);
        if (l + 1 == S::LAYERS) return own.features;
    }
    return nullptr;
}

/* Both directions of layer n of a task's inputs, and all of six, as PyTorch names them. */
#define KP_BOTH(in, net, n)                                                     \
    KP_LAYER(in, net, n), {                                                     \
        in->net##_weight_ih_l##n##_reverse, in->net##_weight_hh_l##n##_reverse, \
            in->net##_bias_ih_l##n##_reverse, in->net##_bias_hh_l##n##_reverse  \
    }
#define KP_BOTH_6(in, net)                                                                  \
    {                                                                                       \
        KP_BOTH(in, net, 0), KP_BOTH(in, net, 1), KP_BOTH(in, net, 2), KP_BOTH(in, net, 3), \
            KP_BOTH(in, net, 4), KP_BOTH(in, net, 5)                                        \
    }

} // namespace kp
