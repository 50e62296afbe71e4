// provenance: shipped
/* MobileNetV2, without residuals, with batch norms by the batch's own statistics:
 * x [10][3][224][224] -> [10][1000].
 *
 * Idea: inverted_bottlenecks.cuh: four kernels a block.
 * Floor: 6.0 GFLOP of products, three passes in TF32, 43 us; 20 MB, 5 us. This method moves 0.4 GB
 * besides, much of it in L2, and its 75 kernels wait for each other.
 * Measured on an H200, when it was right: 765 us, 6 % of the products' floor; 390 predicted.
 * Recorded runs are wrong.
 * Spills 36 to 152 bytes a thread (stored and loaded) in depthwise convolutions with stride 2, on
 * sm_90a. */
#include "task.h"
#include "inverted_bottlenecks.cuh"

#define BLOCK(n, stride)                                                                          \
    {                                                                                             \
        FEATURES_##n##_0_WEIGHT_DIM0, FEATURES_##n##_6_WEIGHT_DIM0, FEATURES_##n##_3_WEIGHT_DIM2, \
            stride                                                                                \
    }

struct MobileNetV2 {
    static constexpr int IMAGES = X_DIM0, COLORS = X_DIM1, SIDE = X_DIM2, BLOCKS = 17;
    static constexpr int STEM = FEATURES_0_WEIGHT_DIM0, FEATURES = FEATURES_20_WEIGHT_DIM0;
    static constexpr int CLASSES = CLASSIFIER_1_WEIGHT_DIM0;
    static constexpr bool FIRST_EXPANDS = false, RESIDUALS = false;
    using StemAct = kp::Relu6;
    using HeadAct = kp::Relu6;
    __host__ __device__ static constexpr kp::Bottleneck block(int b) {
        constexpr kp::Bottleneck ALL[BLOCKS] = {
            {STEM, FEATURES_3_3_WEIGHT_DIM0, FEATURES_3_0_WEIGHT_DIM2, 1},
            BLOCK(4, 2),
            BLOCK(5, 1),
            BLOCK(6, 2),
            BLOCK(7, 1),
            BLOCK(8, 1),
            BLOCK(9, 2),
            BLOCK(10, 1),
            BLOCK(11, 1),
            BLOCK(12, 1),
            BLOCK(13, 1),
            BLOCK(14, 1),
            BLOCK(15, 1),
            BLOCK(16, 2),
            BLOCK(17, 1),
            BLOCK(18, 1),
            BLOCK(19, 1)};
        return ALL[b];
    }
};
static_assert(X_DIM2 == X_DIM3, "squares");
static_assert(sizeof(struct Inputs) == (1 + 9 * MobileNetV2::BLOCKS + 3 + 2) * sizeof(float *),
              "parameters of the blocks, the first of which has the stem's for its expansion's");

extern "C" size_t scratch_bytes(void) {
    return sizeof(kp::BottleneckScratch<MobileNetV2>);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::inverted_bottlenecks<MobileNetV2>(
        in->x, in->features_0_weight, {in->features_1_weight, in->features_1_bias},
        (const kp::BottleneckWeights *)&in->features_0_weight, in->classifier_1_weight,
        in->classifier_1_bias, out->out, scratch, stream);
}
