/* bias_relu.cuh: the epilogue (stores.cuh) of most layers: a number for each column is added, then
 * ReLU. */
#pragma once
#include "activations.cuh"

namespace kp {

struct BiasRelu {
    const float *bias;
    __device__ __forceinline__ float operator()(float v, int, int column) const {
        return Relu()(v + __ldg(bias + column));
    }
};

} // namespace kp
