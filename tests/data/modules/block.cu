// provenance: shipped
/* A transformer block: y = x + out(attention(qkv(layer norm(x)))), then y + mlp(layer norm(y)), of
 * 4 x 128 places of 256 channels, 8 heads; causal. qkv has no bias.
 *
 * Idea: seven launches: linear layers (linear.cuh) with bias, GELU and residual in their epilogues,
 * attention without scores in memory (attention.cuh), layer norms a row a warp (short_rows.cuh).
 * Floor: 0.9 GFLOP and 8 MB are nothing; seven launches of a few microseconds. */
#include "task.h"
#include "activations.cuh"
#include "attention.cuh"
#include "linear.cuh"
#include "short_rows.cuh"

constexpr int BATCH = X_DIM0, LENGTH = X_DIM1, PLACES = BATCH * LENGTH, CHANNELS = X_DIM2;
constexpr int HEADS = 8, WIDTH = CHANNELS / HEADS, INNER = MLP_0_WEIGHT_DIM0;
constexpr float EPS = 1e-5f;

struct Scratch {
    float y[PLACES * CHANNELS], norm[PLACES * CHANNELS], inner[PLACES * INNER];
    float qkv[3 * PLACES * CHANNELS], attended[PLACES * CHANNELS], no_bias[3 * CHANNELS];
    alignas(16) char split[kp::linear_scratch<PLACES, CHANNELS, INNER>()];
};
static_assert(kp::linear_scratch<PLACES, CHANNELS, INNER>() >=
                      kp::linear_scratch<PLACES, INNER, CHANNELS>() &&
                  INNER >= 3 * CHANNELS,
              "the largest weight");

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Scratch *s = (Scratch *)scratch;
    const kp::NoActivation as_is;
    cudaMemsetAsync(s->no_bias, 0, sizeof s->no_bias, stream);
    kp::layer_norm_rows<PLACES, CHANNELS>(in->x, in->before_weight, in->before_bias, s->norm, EPS,
                                          stream);
    kp::linear<PLACES, CHANNELS, 3 * CHANNELS>(as_is, s->norm, in->qkv_weight, s->no_bias, nullptr,
                                               s->qkv, s->split, stream);
    kp::causal_attention<BATCH, LENGTH, HEADS, WIDTH>(s->qkv, s->attended,
                                                      1.0f / sqrtf((float)WIDTH), stream);
    kp::linear<PLACES, CHANNELS, CHANNELS, true>(as_is, s->attended, in->out_weight, in->out_bias,
                                                 in->x, s->y, s->split, stream);
    kp::layer_norm_rows<PLACES, CHANNELS>(s->y, in->between_weight, in->between_bias, s->norm, EPS,
                                          stream);
    kp::linear<PLACES, CHANNELS, INNER>(kp::Gelu(), s->norm, in->mlp_0_weight, in->mlp_0_bias,
                                        nullptr, s->inner, s->split, stream);
    kp::linear<PLACES, INNER, CHANNELS, true>(as_is, s->inner, in->mlp_2_weight, in->mlp_2_bias,
                                              s->y, out->out, s->split, stream);
}
