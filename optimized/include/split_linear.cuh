/* split_linear.cuh: linear layers in a row whose weights are larger than their features.
 *
 * Idea: the weight is the left operand, which is read as it is; the features are split, by a kernel
 * that also adds up the parts of the depth in which the layer before left them, adds its bias and
 * applies ReLU. So a layer has as many parts as keep the multiprocessors busy and needs no kernel
 * of its own for them. 128 images are one tile: two of 64 would have each weight split in registers
 * twice, and take 1.3 times as long (l2_068). Unless a kernel says otherwise, all three passes are
 * in TF32: layers in a row pass on what residuals in bf16 lose (linear.cuh).
 *
 * What limits it: with few images, a tile of 16, the bytes of the weights; else the products.
 * Reaches 88 to 92 % of the floor (l3_001, l3_002). */
#pragma once
#include "bias_relu.cuh"
#include "operands.cuh"
#include "split_depth.cuh"
#include "stores.cuh"

namespace kp {

/* What a layer left, parts[part][image][feature], as features: relu(their sum + bias); a right
 * operand. */
template <int IMAGES, int WIDTH, int PARTS> struct FeaturesOfParts {
    static constexpr bool ALONG_DEPTH = true;
    const float *parts, *bias;
    __device__ __forceinline__ float sum(int image, int feature) const {
        const float *from = parts + image * WIDTH + feature;
        float sum = 0.0f;
#pragma unroll
        for (int p = 0; p < PARTS; p++) sum += __ldg(from + (long long)p * IMAGES * WIDTH);
        return sum + __ldg(bias + feature);
    }
    __device__ __forceinline__ float at(int, int image, int slab, int k) const {
        k += slab * TILE_K;
        return image < IMAGES && k < WIDTH ? Relu()(sum(image, k)) : 0.0f;
    }
};

/* out[image][feature] = the sum of the parts + bias. */
template <int IMAGES, int WIDTH, int PARTS>
__global__ void __launch_bounds__(128)
    add_features_kernel(FeaturesOfParts<IMAGES, WIDTH, PARTS> features, float *__restrict__ out) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i < IMAGES * WIDTH) out[i] = features.sum(i / WIDTH, i % WIDTH);
}

/* A layer. Few images are 16 columns, and a block has a tile for itself; more are 128. A part has
 * four slabs or more. */
template <int IMAGES, int FROM, int TO, class Rest = Tf32Rest> struct SplitLinear {
    using Own = Tile<IMAGES <= 16 ? 16 : 128, Rest, IMAGES <= 16 ? 1 : 2>;
    static constexpr int TILES = (int)tiles_of<Matrices<TO, IMAGES, FROM>, Own>();
    static constexpr int WANTED = 128 / Own::CLUSTER / TILES, MOST = FROM / TILE_K / 4;
    static constexpr int LEAST = WANTED < MOST ? WANTED : MOST, PARTS = LEAST < 1 ? 1 : LEAST;
    using Sizes = SplitDepth<TO, IMAGES, FROM, PARTS>;
    using Features = FeaturesOfParts<IMAGES, TO, PARTS>;
    static constexpr size_t SPLIT = split_bytes<Sizes, Own>();
    static constexpr size_t WORDS = (size_t)PARTS * IMAGES * TO; /* of all parts */

    /* Enqueues the products of weight with the features b. parts: WORDS; split: SPLIT bytes. The
     * features may be in parts, too. */
    template <class B>
    static void multiply(const float *weight, const B &b, float *parts, void *split,
                         cudaStream_t stream) {
        const StoreColumns<Same, TO, IMAGES, (long long)IMAGES *TO> store = {{}, parts};
        product<Sizes, Own>(Along<TO, FROM>{{}, weight}, b, store, split, stream);
    }
    /* Enqueues the last layer's result, without ReLU. */
    static void finish(const float *parts, const float *bias, float *out, cudaStream_t stream) {
        add_features_kernel<<<(IMAGES * TO + 127) / 128, 128, 0, stream>>>(Features{parts, bias},
                                                                           out);
    }
};

} // namespace kp
