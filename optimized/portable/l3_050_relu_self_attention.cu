// provenance: shipped
/* Causal self-attention with ReLU in place of a softmax: queries, keys and values by a linear
 * layer, 12 heads of 64 channels, 16 x 1024 places of 768 channels.
 *
 * Idea: a linear layer (linear.cuh) and attention without scores in memory (short_heads.cuh), both
 * in fp32; sm_90a has a kernel of its own. bias, the mask, is not read: its declared contents, of
 * any distribution, are the lower triangle. No output needs c_proj.
 * Floor: 58 GFLOP of the layer and 27 of attention over the fp32 rate (of an H200 1.7 ms).
 * Not measured: the H200 and the H100 take the kernel of sm_90a. */
#include "task.h"
#include "linear.cuh"
#include "short_heads.cuh"

constexpr int BATCH = X_DIM0, LENGTH = X_DIM1, PLACES = BATCH * LENGTH, CHANNELS = X_DIM2;
constexpr int WIDTH = 64, HEADS = CHANNELS / WIDTH;
static_assert(HEADS * WIDTH == CHANNELS && C_ATTN_WEIGHT_DIM0 == 3 * CHANNELS, "whole heads");

/* Scratch: split weights; queries, keys and values. */
constexpr size_t SPLIT = kp::linear_scratch<PLACES, CHANNELS, 3 * CHANNELS>();

extern "C" size_t scratch_bytes(void) {
    return SPLIT + (size_t)PLACES * 3 * CHANNELS * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *qkv = (float *)((char *)scratch + SPLIT);
    kp::linear<PLACES, CHANNELS, 3 * CHANNELS>(kp::NoActivation(), in->x, in->c_attn_weight,
                                               in->c_attn_bias, nullptr, qkv, scratch, stream);
    kp::attend<kp::CausalReluWeights, BATCH, LENGTH, HEADS, WIDTH>(qkv, out->out, 0.125f, stream);
}
