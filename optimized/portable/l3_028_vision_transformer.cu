// provenance: shipped
/* A vision transformer: images [2][3][224][224] in patches of 16 x 16, 196 places and one more of
 * 512 features, six layers (attention of 8 heads, norm, 512 -> 2048 -> 512 with ReLU, norm), and of
 * the one place more 512 -> 2048 -> 10 with GELU. As PyTorch's layers take the batch for the
 * sequence, a place attends to the same place of the two images. (So no place sees another, and the
 * result does not depend on the images; all of it is computed as written.)
 *
 * Idea: products at fp32 accuracy in turn (product.cuh), weights times features, in tiles of 32
 * places; those with 512 results are split along the depth (split_depth.cuh), and the kernel that
 * adds the parts adds bias and residual, and normalises. A warp has a head of a place.
 * Floor: 15 GFLOP of products, three times over the TF32 rate, 110 us; 71 launches.
 * Measured on an H200: 452 us, 24 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "few_rows.cuh"
#include "operands.cuh"
#include "split_depth.cuh"
#include "states.cuh"
#include "stores.cuh"

constexpr int IMAGES = IMG_DIM0, PLACES = POS_EMBEDDING_DIM1, TOKENS = IMAGES * PLACES;
constexpr int D = POS_EMBEDDING_DIM2, INNER = TRANSFORMER_LAYERS_0_LINEAR1_WEIGHT_DIM0;
constexpr int HEAD = 64, HEADS = D / HEAD, PATCH = PATCH_TO_EMBEDDING_WEIGHT_DIM1, PARTS = 4;
constexpr int SIDE = 16, ACROSS = IMG_DIM3 / SIDE, DOWN = IMG_DIM2 / SIDE; /* of patches */
constexpr int WARPS = 4, FOURS = D / 128; /* of a block; float4 of a row that a lane has */
constexpr float EPS = 1e-5f;
static_assert(IMAGES == 2 && D % 128 == 0 && INNER % 128 == 0, "whole float4 of lanes");
static_assert(PATCH == IMG_DIM1 * SIDE * SIDE && PLACES == ACROSS * DOWN + 1, "patches");

struct Layer {
    const float *in_weight, *in_bias, *out_weight, *out_bias, *inner_weight, *inner_bias,
        *outer_weight, *outer_bias, *norm1_weight, *norm1_bias, *norm2_weight, *norm2_bias;
};

/* What scratch holds. */
struct Scratch {
    float x[TOKENS * D], y[TOKENS * D], attended[TOKENS * D], parts[PARTS * TOKENS * D];
    float wide[TOKENS * (INNER > 3 * D ? INNER : 3 * D)], last[IMAGES * MLP_HEAD_0_WEIGHT_DIM0];
    alignas(16) char split[(TOKENS + 31) / 32 * 32 * ((INNER > PATCH ? INNER : PATCH) + 31) * 8];
};

/* ---- products ---- */

/* The right operand: patch r of an image is PATCH elements, from r * PATCH on, of its pixels in the
 * order channel, patch, pixel of it. */
struct Pixels {
    static constexpr bool ALONG_DEPTH = true;
    const float *data;
    __device__ __forceinline__ float at(int, int column, int slab, int k) const {
        k += slab * kp::TILE_K;
        if (column >= IMAGES * (PLACES - 1) || k >= PATCH) return 0.0f;
        const int image = column / (PLACES - 1), at = column % (PLACES - 1) * PATCH + k;
        const int x = at % SIDE, y = at / SIDE % SIDE, patch = at / (SIDE * SIDE);
        const int row = patch / ACROSS % DOWN * SIDE + y, channel = patch / (ACROSS * DOWN);
        return __ldg(data + ((image * IMG_DIM1 + channel) * IMG_DIM2 + row) * IMG_DIM3 +
                     patch % ACROSS * SIDE + x);
    }
};

/* An epilogue: f of value and a feature's bias. */
template <class F> struct Biased {
    const float *bias;
    __device__ __forceinline__ float operator()(float v, int feature, int) const {
        return F()(v + __ldg(bias + feature));
    }
};
struct Plain {
    __device__ __forceinline__ float operator()(float v) const { return v; }
};

/* Enqueues to[part][COUNT][TO] = f(features * transpose(weight)), in N parts of the depth. */
template <int FROM, int TO, int N = 1, int COUNT = TOKENS, class F, class B>
static void linear(const F &f, const float *weight, const B &features, float *to, Scratch *s,
                   cudaStream_t stream) {
    using Sizes = kp::SplitDepth<TO, COUNT, FROM, N>;
    using Tile = kp::Tile<32, kp::Tf32Rest>;
    static_assert(kp::split_bytes<Sizes, Tile>() <= sizeof s->split, "scratch suffices");
    const kp::Along<TO, FROM> w = {{}, weight};
    const kp::StoreColumns<F, TO, COUNT, (long long)TO *COUNT> store = {f, to};
    kp::product<Sizes, Tile>(w, features, store, s->split, stream);
}

/* ---- what lies between them ---- */

__device__ __forceinline__ float4 sum_of(const float4 &a, const float4 &b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/* x = the patches' features, or the extra place's, plus what belongs to the place. */
__global__ void __launch_bounds__(D / 4)
    embed_kernel(const float *__restrict__ parts, const float *__restrict__ bias,
                 const float *__restrict__ extra, const float *__restrict__ position,
                 float *__restrict__ x) {
    constexpr int COUNT = IMAGES * (PLACES - 1);
    const int place = blockIdx.x % PLACES, image = blockIdx.x / PLACES, i = threadIdx.x;
    float4 v = __ldg((const float4 *)extra + i);
    if (place > 0) {
        const int row = image * (PLACES - 1) + place - 1;
        v = __ldg((const float4 *)bias + i);
#pragma unroll
        for (int p = 0; p < PARTS; p++)
            v = sum_of(v, __ldg((const float4 *)(parts + (p * COUNT + row) * D) + i));
    }
    ((float4 *)(x + blockIdx.x * D))[i] =
        sum_of(v, __ldg((const float4 *)(position + place * D) + i));
}

/* A head of a place: q, k and v of both images are in qkv [IMAGES][PLACES][3][HEADS][HEAD]. */
__global__ void __launch_bounds__(32 * HEADS)
    attend_kernel(const float *__restrict__ qkv, float *__restrict__ to) {
    const int at = threadIdx.x / 32 * HEAD + threadIdx.x % 32 * 2;
    float2 v[IMAGES][3];
#pragma unroll
    for (int i = 0; i < IMAGES; i++)
#pragma unroll
        for (int j = 0; j < 3; j++)
            v[i][j] = __ldg((const float2 *)(qkv + (i * PLACES + blockIdx.x) * 3 * D + j * D + at));
#pragma unroll
    for (int i = 0; i < IMAGES; i++) {
        float score[IMAGES];
#pragma unroll
        for (int j = 0; j < IMAGES; j++)
            score[j] = kp::lanes_sum(v[i][0].x * v[j][1].x + v[i][0].y * v[j][1].y) * 0.125f;
        const float top = fmaxf(score[0], score[1]);
        const float a = expf(score[0] - top), b = expf(score[1] - top), share = 1.0f / (a + b);
        *(float2 *)(to + (i * PLACES + blockIdx.x) * D + at) = make_float2(
            (a * v[0][2].x + b * v[1][2].x) * share, (a * v[0][2].y + b * v[1][2].y) * share);
    }
}
static_assert(HEAD == 64, "two channels a lane; 0.125 is 1 / sqrt(64)");

/* y = layer norm of x plus the parts and bias. A warp a row. */
__global__ void __launch_bounds__(32 * WARPS)
    norm_kernel(const float *__restrict__ x, const float *__restrict__ parts,
                const float *__restrict__ bias, const float *__restrict__ norm_weight,
                const float *__restrict__ norm_bias, float *__restrict__ y) {
    constexpr float SHARE = 1.0f / D;
    const int row = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= TOKENS) return;
    float4 v[FOURS];
    float sum = 0.0f, square = 0.0f;
#pragma unroll
    for (int j = 0; j < FOURS; j++) {
        const int i = j * 32 + lane;
        v[j] = __ldg((const float4 *)bias + i);
#pragma unroll
        for (int p = 0; p < PARTS; p++)
            v[j] = sum_of(v[j], __ldg((const float4 *)(parts + (p * TOKENS + row) * D) + i));
        v[j] = sum_of(v[j], __ldg((const float4 *)(x + row * D) + i));
        sum += (v[j].x * SHARE + v[j].y * SHARE) + (v[j].z * SHARE + v[j].w * SHARE);
    }
    const float mean = kp::lanes_sum(sum);
#pragma unroll
    for (int j = 0; j < FOURS; j++) {
        v[j].x -= mean, v[j].y -= mean, v[j].z -= mean, v[j].w -= mean;
        square += (v[j].x * v[j].x + v[j].y * v[j].y) + (v[j].z * v[j].z + v[j].w * v[j].w);
    }
    const float scale = 1.0f / sqrtf(kp::lanes_sum(square) * SHARE + EPS);
#pragma unroll
    for (int j = 0; j < FOURS; j++) {
        const float4 w = __ldg((const float4 *)norm_weight + j * 32 + lane);
        const float4 b = __ldg((const float4 *)norm_bias + j * 32 + lane);
        ((float4 *)(y + row * D))[j * 32 + lane] =
            make_float4(v[j].x * scale * w.x + b.x, v[j].y * scale * w.y + b.y,
                        v[j].z * scale * w.z + b.z, v[j].w * scale * w.w + b.w);
    }
}

/* The first of the last two layers. */
struct BiasGelu {
    const float *bias;
    __device__ __forceinline__ float operator()(float v, int, int feature) const {
        return kp::Gelu()(v + __ldg(bias + feature));
    }
};

/* ---- all of it ---- */

/* Enqueues a layer of x, in place. */
static void run_layer(const Layer &layer, Scratch *s, cudaStream_t stream) {
    constexpr int BLOCKS = (TOKENS + WARPS - 1) / WARPS;
    using Rows = kp::Along<TOKENS, D>;
    linear<D, 3 * D>(Biased<Plain>{layer.in_bias}, layer.in_weight, Rows{{}, s->x}, s->wide, s,
                     stream);
    attend_kernel<<<PLACES, 32 * HEADS, 0, stream>>>(s->wide, s->attended);
    linear<D, D, PARTS>(kp::Same(), layer.out_weight, Rows{{}, s->attended}, s->parts, s, stream);
    norm_kernel<<<BLOCKS, 32 * WARPS, 0, stream>>>(s->x, s->parts, layer.out_bias,
                                                   layer.norm1_weight, layer.norm1_bias, s->y);
    linear<D, INNER>(Biased<kp::Relu>{layer.inner_bias}, layer.inner_weight, Rows{{}, s->y},
                     s->wide, s, stream);
    linear<INNER, D, PARTS>(kp::Same(), layer.outer_weight, kp::Along<TOKENS, INNER>{{}, s->wide},
                            s->parts, s, stream);
    norm_kernel<<<BLOCKS, 32 * WARPS, 0, stream>>>(s->y, s->parts, layer.outer_bias,
                                                   layer.norm2_weight, layer.norm2_bias, s->x);
}

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

#define OF(i, name) \
    in->transformer_layers_##i##_##name##_weight, in->transformer_layers_##i##_##name##_bias
#define LAYER(i)                                                                             \
    {                                                                                        \
        OF(i, self_attn_in_proj), OF(i, self_attn_out_proj), OF(i, linear1), OF(i, linear2), \
            OF(i, norm1), OF(i, norm2)                                                       \
    }

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    constexpr int HIDDEN = MLP_HEAD_0_WEIGHT_DIM0, CLASSES = OUT_DIM1, COUNT = TOKENS - IMAGES;
    Scratch *s = (Scratch *)scratch;
    const Layer layers[] = {LAYER(0), LAYER(1), LAYER(2), LAYER(3), LAYER(4), LAYER(5)};
    linear<PATCH, D, PARTS, COUNT>(kp::Same(), in->patch_to_embedding_weight, Pixels{in->img},
                                   s->parts, s, stream);
    embed_kernel<<<TOKENS, D / 4, 0, stream>>>(s->parts, in->patch_to_embedding_bias, in->cls_token,
                                               in->pos_embedding, s->x);
    for (const Layer &layer : layers) run_layer(layer, s, stream);
    kp::few_rows<IMAGES, D, HIDDEN, PLACES * D>(s->x, in->mlp_head_0_weight,
                                                BiasGelu{in->mlp_head_0_bias}, s->last, stream);
    kp::few_rows<IMAGES, HIDDEN, CLASSES>(s->last, in->mlp_head_3_weight,
                                          kp::AddBias{in->mlp_head_3_bias}, out->out, stream);
}
