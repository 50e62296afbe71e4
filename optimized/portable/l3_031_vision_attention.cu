// provenance: shipped
/* Attention between the pixels of an image: y = layer norm(x + proj(attention(linear(x)))) of 2
 * images of 128 channels and 128 x 128 pixels, 4 heads of 32 channels; norms over the channels.
 *
 * Idea: all in fp32; sm_90a has a kernel of its own. The linear layers take pixels as rows, and x
 * as it is, across the depth (product.cuh). Attention leaves no scores in memory (short_heads.cuh).
 * A tile of the second layer has all channels of its pixels: its store adds x, normalises and
 * transposes (add_norm.cuh).
 * Floor: 275 GFLOP of attention and 4.3 of the layers over the fp32 rate (of an H200 5.4 ms).
 * Not measured: the H200 and the H100 take the kernel of sm_90a. */
#include "task.h"
#include "add_norm.cuh"
#include "operands.cuh"
#include "short_heads.cuh"
#include "stores.cuh"

constexpr int IMAGES = X_DIM0, CHANNELS = X_DIM1, PIXELS = X_DIM2 * X_DIM3;
constexpr int HEADS = 4, WIDTH = CHANNELS / HEADS;
static_assert(CHANNELS == 128 && ATTN_IN_PROJ_WEIGHT_DIM0 == 3 * CHANNELS, "a tile's columns");
static_assert(PIXELS % 128 == 0, "whole tiles of queries");

using In = kp::Matrices<PIXELS, 3 * CHANNELS, CHANNELS, IMAGES, true>;
using Out = kp::Matrices<PIXELS, CHANNELS, CHANNELS, IMAGES, true>;
using Tile = kp::Tile<128, kp::Tf32Rest>;

/* Scratch: split weights; queries, keys and values; what is attended to. */
constexpr size_t SPLIT = kp::split_bytes<In, Tile>();
constexpr size_t PLANES = (size_t)IMAGES * PIXELS * CHANNELS;

/* The bias of queries and keys alone. */
struct KeysBias {
    const float *bias;
    __device__ __forceinline__ float operator()(float v, int, int column) const {
        return column < 2 * CHANNELS ? v + __ldg(bias + column) : v;
    }
};

/* attended += the values' bias, a float4 a thread. Behind the softmax, whose weights add up to one,
 * it is added once: in the sum over keys it would hide values that are small beside it. */
constexpr int ADD_THREADS = 256;
__global__ void __launch_bounds__(ADD_THREADS)
    add_bias_kernel(float4 *__restrict__ attended, const float4 *__restrict__ bias) {
    const size_t i = (size_t)blockIdx.x * ADD_THREADS + threadIdx.x;
    const float4 a = attended[i], b = __ldg(bias + i % (CHANNELS / 4));
    attended[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
static_assert(PLANES % (4 * ADD_THREADS) == 0, "whole blocks");

extern "C" size_t scratch_bytes(void) {
    return SPLIT + 4 * PLANES * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *qkv = (float *)((char *)scratch + SPLIT), *attended = qkv + 3 * PLANES;
    const kp::Across<PIXELS, CHANNELS, PIXELS, (long long)CHANNELS *PIXELS> x = {{}, in->x};
    const kp::Along<PIXELS, CHANNELS, CHANNELS, (long long)CHANNELS *PIXELS> said = {{}, attended};
    const kp::Along<3 * CHANNELS, CHANNELS> in_weight = {{}, in->attn_in_proj_weight};
    const kp::Along<CHANNELS, CHANNELS> out_weight = {{}, in->attn_out_proj_weight};
    const kp::StoreRows<KeysBias, PIXELS, 3 * CHANNELS, 3LL *CHANNELS *PIXELS> store = {
        {in->attn_in_proj_bias}, qkv};
    const kp::AddNorm<PIXELS, CHANNELS> norm = {in->attn_out_proj_bias, in->x, in->norm_weight,
                                                in->norm_bias, out->out};
    kp::product<In, Tile>(x, in_weight, store, scratch, stream);
    kp::attend<kp::SoftmaxWeights, IMAGES, PIXELS, HEADS, WIDTH>(
        qkv, attended, 1.0f / sqrtf((float)WIDTH), stream);
    add_bias_kernel<<<PLANES / 4 / ADD_THREADS, ADD_THREADS, 0, stream>>>(
        (float4 *)attended, (const float4 *)(in->attn_in_proj_bias + 2 * CHANNELS));
    kp::product<Out, Tile>(said, out_weight, norm, scratch, stream);
}
