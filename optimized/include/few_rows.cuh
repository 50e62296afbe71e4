/* few_rows.cuh: linear layers one after another, of 128 rows or fewer: few for the weights.
 *
 * Idea: weights times features (product.cuh), so that a weight is read once, as it is, and only the
 * features are split beforehand. All rows are one tile: half of them would have each weight split
 * in registers twice, and take 1.3 times as long (l2_068). Where a layer then has fewer tiles than
 * there are multiprocessors, parts of its depth are further tiles (split_depth.cuh). A layer leaves
 * its sums, part by part; whoever reads them, the split for the next layer or finish_layer(), adds
 * them up and applies bias and activation. So that takes no pass over memory of its own.
 *
 * What limits it: products, as in product.cuh, on 128 of an H200's 132 multiprocessors. */
#pragma once
#include "operands.cuh"
#include "split_depth.cuh"
#include "stores.cuh"

namespace kp {

/* Parts of the depth: so that there are 64 clusters' tiles, none of fewer than 4 slabs. */
template <int FROM, int TO> constexpr int layer_parts() {
    constexpr int tiles = (TO + 2 * TILE_M - 1) / (2 * TILE_M), most = FROM / TILE_K / 4;
    constexpr int parts = tiles < 64 ? 64 / tiles : 1;
    return parts < most ? parts : most > 1 ? most : 1;
}

template <int ROWS, int FROM, int TO> struct FewRows {
    static_assert(ROWS <= 128, "one tile");
    static constexpr int PARTS = layer_parts<FROM, TO>();
    using Sizes = SplitDepth<TO, ROWS, FROM, PARTS>;
    using Tile = TileFor<Sizes, 128>;
    static constexpr size_t split() { return split_bytes<Sizes, Tile>(); }
    static constexpr size_t sums() { return Sizes::parts_bytes(); }
};

/* What a layer says, f(sum + bias), of PARTS sums [ROWS][COUNT]: also an operand B. */
template <class F, int ROWS, int COUNT, int PARTS> struct Said : F {
    static constexpr bool ALONG_DEPTH = true;
    const float *sums, *bias;
    __device__ __forceinline__ float of(int row, int feature) const {
        float v = 0.0f;
#pragma unroll
        for (int p = 0; p < PARTS; p++)
            v += __ldg(sums + ((long long)p * ROWS + row) * COUNT + feature);
        return ((const F &)*this)(v + __ldg(bias + feature));
    }
    __device__ __forceinline__ float at(int, int row, int slab, int k) const {
        k += slab * TILE_K;
        return row < ROWS && k < COUNT ? of(row, k) : 0.0f;
    }
};

/* Enqueues sums = the layer's parts, of features b; split: FewRows' bytes. */
template <class Layer, int ROWS, int FROM, int TO, class B>
static void sum_layer(const B &b, const float *weight, float *sums, void *split,
                      cudaStream_t stream) {
    const Along<TO, FROM> a = {{}, weight};
    const StoreColumns<Same, TO, ROWS, (long long)ROWS *TO> store = {{}, sums};
    product<typename Layer::Sizes, typename Layer::Tile>(a, b, store, split, stream);
}

/* out[row][feature] = what the last layer says. A thread an element. */
template <class S, int ROWS, int COUNT>
__global__ void __launch_bounds__(256) finish_layer_kernel(S said, float *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < ROWS * COUNT) out[i] = said.of(i / COUNT, i % COUNT);
}

/* Three layers, F between them: x [ROWS][FROM], of weights [INNER][FROM], [MIDDLE][INNER] and
 * [TO][MIDDLE], as PyTorch has them. */
template <class F, int ROWS, int FROM, int INNER, int MIDDLE, int TO> struct ThreeLayers {
    using First = FewRows<ROWS, FROM, INNER>;
    using Second = FewRows<ROWS, INNER, MIDDLE>;
    using Third = FewRows<ROWS, MIDDLE, TO>;
    static constexpr size_t larger(size_t a, size_t b) { return a > b ? a : b; }
    static constexpr size_t SPLIT = larger(First::split(), larger(Second::split(), Third::split()));
    static constexpr size_t SUMS = larger(First::sums(), larger(Second::sums(), Third::sums()));
    static constexpr size_t BYTES = SPLIT + SUMS; /* of scratch */
    struct Identity {
        __device__ __forceinline__ float operator()(float v) const { return v; }
    };

    /* Enqueues all. A layer's sums overwrite those before: these are split by then. */
    static void enqueue(const float *x, const float *const (&weight)[3],
                        const float *const (&bias)[3], float *out, void *scratch,
                        cudaStream_t stream) {
        using Last = Said<Identity, ROWS, TO, Third::PARTS>;
        float *sums = (float *)((char *)scratch + SPLIT);
        const Along<ROWS, FROM> features = {{}, x};
        const Said<F, ROWS, INNER, First::PARTS> first = {{}, sums, bias[0]};
        const Said<F, ROWS, MIDDLE, Second::PARTS> second = {{}, sums, bias[1]};
        sum_layer<First, ROWS, FROM, INNER>(features, weight[0], sums, scratch, stream);
        sum_layer<Second, ROWS, INNER, MIDDLE>(first, weight[1], sums, scratch, stream);
        sum_layer<Third, ROWS, MIDDLE, TO>(second, weight[2], sums, scratch, stream);
        finish_layer_kernel<Last, ROWS, TO>
            <<<(ROWS * TO + 255) / 256, 256, 0, stream>>>(Last{{}, sums, bias[2]}, out);
    }
};

} // namespace kp
