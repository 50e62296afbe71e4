// provenance: shipped
/* EfficientNet-B1, of seven blocks, without squeeze and excitation, with batch norms by the batch's
 * own statistics: x [10][3][240][240] -> [10][1000].
 *
 * Idea: inverted_bottlenecks.cuh: four kernels a block.
 * Floor: 4.4 GFLOP of products, three passes in TF32, 31 us; 17 MB, 4 us. This method moves 0.5 GB
 * besides, some of it in L2, and its 37 kernels wait for each other.
 * Measured on an H200: 522 us, 6 % of the products' floor; 300 predicted.
 * Spills 76 to 216 bytes a thread (stored and loaded) in depthwise convolutions with stride 2, on
 * sm_90a. */
#include "task.h"
#include "inverted_bottlenecks.cuh"

#define BLOCK(n, stride) \
    { MBCONV##n##_0_WEIGHT_DIM0, MBCONV##n##_6_WEIGHT_DIM0, MBCONV##n##_3_WEIGHT_DIM2, stride }

struct EfficientNetB1 {
    static constexpr int IMAGES = X_DIM0, COLORS = X_DIM1, SIDE = X_DIM2, BLOCKS = 7;
    static constexpr int STEM = CONV1_WEIGHT_DIM0, FEATURES = CONV2_WEIGHT_DIM0;
    static constexpr int CLASSES = FC_WEIGHT_DIM0;
    static constexpr bool FIRST_EXPANDS = true, RESIDUALS = false;
    using StemAct = kp::Relu;
    using HeadAct = kp::Relu;
    __host__ __device__ static constexpr kp::Bottleneck block(int b) {
        constexpr kp::Bottleneck ALL[BLOCKS] = {BLOCK(1, 1), BLOCK(2, 2), BLOCK(3, 2), BLOCK(4, 2),
                                                BLOCK(5, 1), BLOCK(6, 2), BLOCK(7, 1)};
        return ALL[b];
    }
};
static_assert(X_DIM2 == X_DIM3, "squares");
static_assert(sizeof(struct Inputs) ==
                  (1 + 3 + 9 * EfficientNetB1::BLOCKS + 3 + 2) * sizeof(float *),
              "parameters of the stem, the blocks, the last convolution");

extern "C" size_t scratch_bytes(void) {
    return sizeof(kp::BottleneckScratch<EfficientNetB1>);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    kp::inverted_bottlenecks<EfficientNetB1>(in->x, in->conv1_weight,
                                             {in->bn1_weight, in->bn1_bias},
                                             (const kp::BottleneckWeights *)&in->mbconv1_0_weight,
                                             in->fc_weight, in->fc_bias, out->out, scratch, stream);
}
