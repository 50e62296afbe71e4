// provenance: shipped
/* A linear layer of what the last of six bidirectional layers of 256 LSTM cells says at the end of
 * 512 steps of 10 samples.
 *
 * Idea: what comes from below for all steps at once, then both directions side by side
 * (both_ways.cuh).
 * Floor: 3072 turns, in each of which 32 of 132 multiprocessors do 0.33 MFLOP, 0.8 us, and wait for
 * a word's way to the others, about 1 us: 5.5 ms; products of 56 GFLOP in TF32, three times,
 * 0.4 ms.
 * Measured: 9408 us on an H200, 63 % of the floor. */
#include "task.h"
#include "both_ways.cuh"
#include "states.cuh"

using Sizes = kp::RecurrentSizes<kp::LstmCell, true, X_DIM0, X_DIM1, X_DIM2, H0_DIM2, H0_DIM0 / 2>;
constexpr int OUTPUTS = FC_WEIGHT_DIM0, WIDTH = FC_WEIGHT_DIM1;

/* out[b][o] = h[b] * weight[o] + bias[o]: a warp each. Grid: x outputs, y samples. */
__global__ void __launch_bounds__(32)
    last_linear_kernel(const float *__restrict__ h, const float *__restrict__ weight,
                       const float *__restrict__ bias, float *__restrict__ out) {
    float sum = 0.0f;
    for (int k = threadIdx.x; k < WIDTH; k += 32)
        sum += __ldg(h + blockIdx.y * WIDTH + k) * __ldg(weight + blockIdx.x * WIDTH + k);
    sum = kp::lanes_sum(sum);
    if (threadIdx.x == 0) out[blockIdx.y * OUTPUTS + blockIdx.x] = sum + __ldg(bias + blockIdx.x);
}

extern "C" size_t scratch_bytes(void) {
    return kp::BothWaysScratch<Sizes>::BYTES;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const kp::BothWaysNet<Sizes> net = {KP_BOTH_6(in, lstm), in->x, in->h0, in->c0};
    const float *features = kp::both_ways(net, scratch, stream);
    last_linear_kernel<<<dim3(OUTPUTS, Sizes::BATCH), 32, 0, stream>>>(
        features + (size_t)(Sizes::STEPS - 1) * Sizes::BATCH * WIDTH, in->fc_weight, in->fc_bias,
        out->out);
}
