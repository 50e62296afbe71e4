// provenance: shipped
/* EfficientNet-B0, without squeeze and excitation, with batch norms by the batch's own statistics:
 * x [10][3][224][224] -> [10][1000].
 *
 * Idea: inverted_bottlenecks.cuh: four kernels a block.
 * Floor: 6.3 GFLOP of products, three passes in TF32, 45 us; 21 MB, 5 us. This method moves 0.4 GB
 * besides, much of it in L2, and its 59 kernels wait for each other.
 * Measured on an H200: 719 us, 6 % of the products' floor; 340 predicted.
 * Spills 36 to 332 bytes a thread (stored and loaded) in depthwise convolutions with stride 2, on
 * sm_90a. */
#include "task.h"
#include "inverted_bottlenecks.cuh"

#define BLOCK(n, stride)                                                                 \
    {                                                                                    \
        BLOCKS_##n##_EXPAND_CONV_0_WEIGHT_DIM0, BLOCKS_##n##_PROJECT_CONV_0_WEIGHT_DIM0, \
            BLOCKS_##n##_DEPTHWISE_CONV_0_WEIGHT_DIM2, stride                            \
    }

struct EfficientNetB0 {
    static constexpr int IMAGES = X_DIM0, COLORS = X_DIM1, SIDE = X_DIM2, BLOCKS = 13;
    static constexpr int STEM = CONV1_WEIGHT_DIM0, FEATURES = CONV2_WEIGHT_DIM0;
    static constexpr int CLASSES = FC_WEIGHT_DIM0;
    static constexpr bool FIRST_EXPANDS = false, RESIDUALS = true;
    using StemAct = kp::Relu;
    using HeadAct = kp::Relu;
    __host__ __device__ static constexpr kp::Bottleneck block(int b) {
        constexpr kp::Bottleneck ALL[BLOCKS] = {
            {STEM, BLOCKS_0_PROJECT_CONV_0_WEIGHT_DIM0, BLOCKS_0_DEPTHWISE_CONV_0_WEIGHT_DIM2, 1},
            BLOCK(1, 2),
            BLOCK(2, 1),
            BLOCK(3, 2),
            BLOCK(4, 1),
            BLOCK(5, 2),
            BLOCK(6, 1),
            BLOCK(7, 1),
            BLOCK(8, 1),
            BLOCK(9, 2),
            BLOCK(10, 1),
            BLOCK(11, 1),
            BLOCK(12, 1)};
        return ALL[b];
    }
};
static_assert(X_DIM2 == X_DIM3, "squares");
static_assert(sizeof(struct Inputs) == (1 + 9 * EfficientNetB0::BLOCKS + 3 + 2) * sizeof(float *),
              "parameters of the blocks, the first of which has the stem's for its expansion's");

extern "C" size_t scratch_bytes(void) {
    return sizeof(kp::BottleneckScratch<EfficientNetB0>);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::inverted_bottlenecks<EfficientNetB0>(in->x, in->conv1_weight,
                                             {in->bn1_weight, in->bn1_bias},
                                             (const kp::BottleneckWeights *)&in->conv1_weight,
                                             in->fc_weight, in->fc_bias, out->out, scratch, stream);
}
