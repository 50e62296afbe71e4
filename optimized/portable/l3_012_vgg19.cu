// provenance: shipped
/* VGG19: x [10][3][224][224] through 16 convolutions of 3 x 3 with ReLU, in five stages of 64 to
 * 512 filters with 2 x 2 pooling, and three linear layers -> [10][1000].
 *
 * Idea: products at fp32 accuracy in turn; bias, ReLU and pooling in their epilogues (vgg.cuh).
 * Floor: 390 GFLOP of convolutions, three times over the TF32 rate, 2.83 ms; 0.49 GB of weights of
 * linear layers over the read bandwidth, 0.11 ms.
 * Measured on an H200: 3.28 ms, 90 % of the floor. */
#include "task.h"
#include "vgg.cuh"

static_assert(X_DIM2 == X_DIM3, "square images");
using Net = kp::Vgg<4, X_DIM0, X_DIM2, X_DIM1, FEATURES_0_WEIGHT_DIM0, FEATURES_5_WEIGHT_DIM0,
                    FEATURES_10_WEIGHT_DIM0, FEATURES_19_WEIGHT_DIM0, CLASSIFIER_0_WEIGHT_DIM0,
                    CLASSIFIER_6_WEIGHT_DIM0>;

extern "C" size_t scratch_bytes(void) {
    return sizeof(Net::Scratch);
}

#define LAYER(name) \
    { in->name##_weight, in->name##_bias }

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const kp::VggLayer convolutions[] = {
        LAYER(features_0),  LAYER(features_2),  LAYER(features_5),  LAYER(features_7),
        LAYER(features_10), LAYER(features_12), LAYER(features_14), LAYER(features_16),
        LAYER(features_19), LAYER(features_21), LAYER(features_23), LAYER(features_25),
        LAYER(features_28), LAYER(features_30), LAYER(features_32), LAYER(features_34)};
    const kp::VggLayer linear[] = {LAYER(classifier_0), LAYER(classifier_3), LAYER(classifier_6)};
    Net::enqueue(in->x, convolutions, linear, out->out, scratch, stream);
}
