// provenance: shipped
/* Causal self-attention: queries, keys and values by a linear layer, 8 heads of 96 channels, and a
 * linear layer of what they attend to; 128 x 512 places of 768 channels.
 *
 * Idea: three launches. Linear layers (linear.cuh), three passes in TF32 on the tensor cores;
 * attention in fp32 without scores in memory (attention.cuh). bias, the mask, is not read:
 * its declared contents, of any distribution, are the lower triangle.
 * Floor: 309 GFLOP of products, three times over the TF32 rate, 2.24 ms; 58 GFLOP of attention over
 * the fp32 rate, 1.14 ms.
 * Measured: 4174 us on an H200, 81 % of the sum of these. */
#include "task.h"
#include "attention.cuh"
#include "linear.cuh"

constexpr int BATCH = X_DIM0, LENGTH = X_DIM1, PLACES = BATCH * LENGTH, CHANNELS = X_DIM2;
constexpr int HEADS = 8, WIDTH = CHANNELS / HEADS;

/* Scratch: split weights; queries, keys and values; what is attended to. */
constexpr size_t PLANE = (size_t)PLACES * CHANNELS;
constexpr size_t SPLIT = kp::linear_scratch<PLACES, CHANNELS, 3 * CHANNELS>();

extern "C" size_t scratch_bytes(void) {
    return SPLIT + 4 * PLANE * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *qkv = (float *)((char *)scratch + SPLIT), *attended = qkv + 3 * PLANE;

    kp::linear<PLACES, CHANNELS, 3 * CHANNELS>(kp::NoActivation(), in->x, in->c_attn_weight,
                                               in->c_attn_bias, nullptr, qkv, scratch, stream);
    kp::causal_attention<BATCH, LENGTH, HEADS, WIDTH>(qkv, attended, 1.0f / sqrtf((float)WIDTH),
                                                      stream);
    kp::linear<PLACES, CHANNELS, CHANNELS>(kp::NoActivation(), attended, in->c_proj_weight,
                                           in->c_proj_bias, nullptr, out->out, scratch, stream);
}
