// provenance: shipped
/* Attention between the pixels of an image: y = layer norm(x + proj(attention(linear(x)))) of 2
 * images of 128 channels and 128 x 128 pixels, 4 heads of 32 channels; norms over the channels.
 *
 * Idea: three passes in TF32 on the tensor cores throughout. The linear layers take pixels as rows,
 * and x as it is, across the depth (product.cuh); the first one's store splits keys and values for
 * the attention, whose scores stay in registers (tensor_heads.cuh); the values' bias is added after
 * it, as a softmax's weights add up to one. A tile of the second layer has all channels of its
 * pixels: its store adds x, normalises and transposes (add_norm.cuh).
 * Floor: 275 GFLOP of attention and 4.3 of the layers, three times over the TF32 rate, 2.02 ms.
 * Measured: 2528 us on an H200, 80 % of the floor. */
#include "task.h"
#include "add_norm.cuh"
#include "operands.cuh"
#include "tensor_heads.cuh"

constexpr int IMAGES = X_DIM0, CHANNELS = X_DIM1, PIXELS = X_DIM2 * X_DIM3;
constexpr int HEADS = 4, WIDTH = CHANNELS / HEADS;
static_assert(CHANNELS == 128 && ATTN_IN_PROJ_WEIGHT_DIM0 == 3 * CHANNELS, "a tile's columns");

using In = kp::Matrices<PIXELS, 3 * CHANNELS, CHANNELS, IMAGES, true>;
using Out = kp::Matrices<PIXELS, CHANNELS, CHANNELS, IMAGES, true>;
using Tile = kp::Tile<128, kp::Tf32Rest>;
using Sizes = kp::HeadSizes<PIXELS, HEADS, WIDTH>;
using Heads = kp::Heads<Sizes, IMAGES>;

/* Scratch: split weights; queries, keys and values; what is attended to. */
constexpr size_t SPLIT = kp::split_bytes<In, Tile>();
constexpr long long IMAGE = (long long)CHANNELS * PIXELS;

extern "C" size_t scratch_bytes(void) {
    return SPLIT + Heads::bytes() + IMAGES * IMAGE * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const Heads heads = Heads::in((char *)scratch + SPLIT);
    float *attended = (float *)((char *)scratch + SPLIT + Heads::bytes());
    const kp::Across<PIXELS, CHANNELS, PIXELS, IMAGE> x = {{}, in->x};
    const kp::Along<PIXELS, CHANNELS, CHANNELS, IMAGE> said = {{}, attended};
    const kp::Along<3 * CHANNELS, CHANNELS> in_weight = {{}, in->attn_in_proj_weight};
    const kp::Along<CHANNELS, CHANNELS> out_weight = {{}, in->attn_out_proj_weight};
    const kp::StoreHeads<Sizes, PIXELS, false> store = {in->attn_in_proj_bias, heads.queries,
                                                        heads.keys, heads.values};
    const kp::AddNorm<PIXELS, CHANNELS> norm = {in->attn_out_proj_bias, in->x, in->norm_weight,
                                                in->norm_bias, out->out};
    kp::product<In, Tile>(x, in_weight, store, scratch, stream);
    kp::tensor_attend<kp::TensorSoftmax>(heads, in->attn_in_proj_bias + 2 * CHANNELS, attended,
                                         1.0f / sqrtf((float)WIDTH), stream);
    kp::product<Out, Tile>(said, out_weight, norm, scratch, stream);
}
