// provenance: shipped
/* Three linear layers with ReLUs between them: 128 rows of 16384 features, to 32768, 32768 and
 * 16384.
 *
 * Idea: weights times features (few_rows.cuh), one pass in TF32 and two in bf16 on the tensor cores
 * (product.cuh). All 128 rows are a tile, and the last layer's depth comes in two parts, so that
 * 128 of an H200's 132 multiprocessors have a tile. The split of a layer's features adds bias and
 * ReLU of the layer before.
 * Floor: 550 GFLOP of products with rests in bf16, 2.75 ms; 8.6 GB of weights, 1.9 ms.
 * Not measured yet. */
#include "task.h"
#include "activations.cuh"
#include "few_rows.cuh"

using Layers = kp::ThreeLayers<kp::Relu, X_DIM0, X_DIM1, NETWORK_0_WEIGHT_DIM0,
                               NETWORK_2_WEIGHT_DIM0, NETWORK_4_WEIGHT_DIM0>;

extern "C" size_t scratch_bytes(void) {
    return Layers::BYTES;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Layers::enqueue(in->x, {in->network_0_weight, in->network_2_weight, in->network_4_weight},
                    {in->network_0_bias, in->network_2_bias, in->network_4_bias}, out->out, scratch,
                    stream);
}
