// provenance: shipped
/* Six layers of 256 LSTM cells over 512 steps of 10 samples, and a linear layer of what the last
 * one says at the last step.
 *
 * Idea: all layers at once, weights in registers, each step's words through the L2 cache
 * (recurrent.cuh).
 * Floor: 512 steps, in each of which 96 of 132 multiprocessors do 0.65 MFLOP: 0.75 ms; and the way
 * of a word to the others, about 1 us a step, half of which products hide.
 * Measured: 1684 us on an H200, 45 % of the floor without the way of words. */
#include "task.h"
#include "recurrent.cuh"
#include "states.cuh"

using Sizes =
    kp::RecurrentSizes<kp::LstmCell, true, X_DIM0, X_DIM1, X_DIM2, RANDOM_DIM2, RANDOM_DIM0>;
constexpr int OUTPUTS = FC_WEIGHT_DIM0;

/* out[b][o] = h[b] * weight[o] + bias[o]: a warp each. Grid: x outputs, y samples. */
__global__ void __launch_bounds__(32)
    last_linear_kernel(const float *__restrict__ h, const float *__restrict__ weight,
                       const float *__restrict__ bias, float *__restrict__ out) {
    float sum = 0.0f;
    for (int k = threadIdx.x; k < Sizes::HIDDEN; k += 32)
        sum += __ldg(h + blockIdx.y * Sizes::HIDDEN + k) *
               __ldg(weight + blockIdx.x * Sizes::HIDDEN + k);
    sum = kp::lanes_sum(sum);
    if (threadIdx.x == 0) out[blockIdx.y * OUTPUTS + blockIdx.x] = sum + __ldg(bias + blockIdx.x);
}

extern "C" size_t scratch_bytes(void) {
    return kp::recurrent_scratch<Sizes>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const kp::Recurrent<Sizes> net = {KP_LAYERS_6(in, lstm), in->x, in->random, in->random_2};
    kp::recurrent(net, scratch, stream);
    last_linear_kernel<<<dim3(OUTPUTS, Sizes::BATCH), 32, 0, stream>>>(
        kp::last_layer<Sizes>(scratch, Sizes::STEPS - 1), in->fc_weight, in->fc_bias, out->out);
}
