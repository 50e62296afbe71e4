// provenance: shipped
/* A convolutional vision transformer: images [10][3][32][32], 4 x 4 patches to 128 channels, all
 * of them (8192) to the 128 features of a token beside one that is learnt; six layers (attention of
 * 4 heads, norm, 128 -> 512 -> 128 with ReLU, norm), and 1000 classes of the learnt token.
 *
 * Idea: two launches, as images see nothing of each other. First a block a channel: its pixels of
 * all images, and their part of the tokens' sums. Then eight blocks, a cluster, have an image from
 * there to the end (cluster_encoder.cuh); their first turn adds up what channels add.
 * Floor: 9.6 MB, 2.1 us. 13 turns through the cluster, about 1000 cycles each with the norm, 8 us,
 * beside as much for the products' latencies; the weights of an image, 0.7 MB a block, 6 us of L2.
 * Measured on an H200: 45.4 us, 5 % of the bytes' floor; 18 to 25 predicted. */
#include "task.h"
#include "cluster_encoder.cuh"

using namespace kp::encoder;

constexpr int IMAGES = X_DIM0, DEEP = X_DIM1, SIDE = X_DIM3, PATCH = CONV1_WEIGHT_DIM3;
constexpr int CHANNELS = CONV1_WEIGHT_DIM0, ACROSS = SIDE / PATCH, PIXELS = ACROSS * ACROSS;
constexpr int LAYERS = 6, CLASSES = OUT_DIM1;
static_assert(D == CLS_TOKEN_DIM2 && INNER == TRANSFORMER_LAYERS_0_LINEAR1_WEIGHT_DIM0, "layers");
static_assert(X_DIM2 == SIDE && PATCH == 4 && PIXELS == 64, "patches of float4");
static_assert(LINEAR_PROJ_WEIGHT_DIM1 == CHANNELS * PIXELS && CHANNELS % RANKS == 0, "parts");
static_assert(CLASSES <= 2 * RANKS * EIGHTS, "two classes of eight lanes");

/* parts[image][channel][feature]: what the pixels of a channel, a block, add to the features. */
__global__ void __launch_bounds__(THREADS)
    patch_kernel(const float *__restrict__ x, const float *__restrict__ weight,
                 const float *__restrict__ bias, const float *__restrict__ proj_weight,
                 float *__restrict__ parts) {
    __shared__ __align__(16) float pixel[IMAGES][PIXELS];
    const int channel = blockIdx.x, group = threadIdx.x / 8, place = threadIdx.x % 8;
    float4 w[D / EIGHTS][2], filter[DEEP * PATCH];
#pragma unroll
    for (int r = 0; r < D / EIGHTS; r++)
        load<2, 8>(proj_weight + ((group + r * EIGHTS) * CHANNELS + channel) * PIXELS, place, w[r]);
    load<DEEP * PATCH, 1>(weight + channel * DEEP * PATCH * PATCH, 0, filter);
    for (int i = threadIdx.x; i < IMAGES * PIXELS; i += THREADS) {
        const float *from = x + (long long)(i / PIXELS) * DEEP * SIDE * SIDE +
                            i % PIXELS / ACROSS * PATCH * SIDE + i % ACROSS * PATCH;
        float sum = __ldg(bias + channel);
#pragma unroll
        for (int k = 0; k < DEEP * PATCH; k++) {
            const float4 v = __ldg((const float4 *)(from + (k / PATCH * SIDE + k % PATCH) * SIDE));
            sum += v.x * filter[k].x + v.y * filter[k].y + v.z * filter[k].z + v.w * filter[k].w;
        }
        pixel[i / PIXELS][i % PIXELS] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int image = 0; image < IMAGES; image++)
#pragma unroll
        for (int r = 0; r < D / EIGHTS; r++) {
            const float sum = dot<8>(w[r], pixel[image], place);
            if (place == image % 8)
                parts[(image * CHANNELS + channel) * D + group + r * EIGHTS] = sum;
        }
}

struct Network {
    Layer layer[LAYERS];
};

/* A rank's share of the parts of the second token. */
__device__ __forceinline__ void gather_parts(Memory &memory, int rank,
                                             const float *__restrict__ parts) {
    const int group = threadIdx.x / 8, place = threadIdx.x % 8;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float sum = 0.0f;
#pragma unroll
        for (int c = 0; c < CHANNELS / RANKS; c++)
            sum += __ldg(parts + (c * RANKS + rank) * D + group + i * EIGHTS);
        tell(memory, 0, rank, group + i * EIGHTS, place, make_float2(0.0f, sum));
    }
}

/* Grid: eight blocks an image. */
__global__ void KP_CLUSTER_OF_RANKS __launch_bounds__(THREADS, 1)
    layers_kernel(const float *__restrict__ parts, const float *__restrict__ learnt,
                  const float *__restrict__ proj_bias, Network network,
                  const float *__restrict__ class_weight, const float *__restrict__ class_bias,
                  float *__restrict__ out) {
    extern __shared__ float4 shared_memory[];
    Memory &memory = *(Memory *)shared_memory;
    const int image = blockIdx.x / RANKS, first = blockIdx.x % RANKS, warp = threadIdx.x / 32;
    if (RUN > 1 && first > 0) return;
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f); /* the residual: of a token, by its warp */
    AttentionWeights attention;
    InnerWeights inner;
    Norm norm;
    attention.fetch(network.layer[0], first);
    if (warp < TOKENS) Norm::add(v, warp == 0 ? learnt : proj_bias);
    begin_turns(memory);
    for (int rank = first; rank < first + RUN; rank++)
        gather_parts(memory, rank, parts + image * CHANNELS * D);
    join(memory, 0, NoNorm(), v);
#pragma unroll 1
    for (int l = 0; l < LAYERS; l++) {
        const Layer &layer = network.layer[l];
        inner.fetch(layer, first);
        norm.fetch(layer.norm1_weight, layer.norm1_bias, layer.out_bias, v);
        for (int rank = first; rank < first + RUN; rank++) {
            if (RUN > 1) __syncthreads(), attention.fetch(layer, rank);
            attend(memory, 2 * l + 1, rank, attention);
        }
        join(memory, 2 * l + 1, norm, v);
        norm.fetch(layer.norm2_weight, layer.norm2_bias, layer.outer_bias, v);
        if (l + 1 < LAYERS)
            attention.fetch(network.layer[l + 1], first);
        else
            attention.fetch(class_weight, class_bias, first, CLASSES);
        for (int rank = first; rank < first + RUN; rank++) {
            if (RUN > 1) __syncthreads(), inner.fetch(layer, rank);
            widen(memory, 2 * l + 2, rank, inner);
        }
        join(memory, 2 * l + 2, norm, v);
    }
    for (int rank = first; rank < first + RUN; rank++) {
        if (RUN > 1) attention.fetch(class_weight, class_bias, rank, CLASSES);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int c = AttentionWeights::class_of(i, rank);
            const float sum = dot<8>(attention.in[i], memory.x[0], threadIdx.x % 8);
            if (threadIdx.x % 8 == 0 && c < CLASSES)
                out[image * CLASSES + c] = sum + attention.bias[i];
        }
    }
}

extern "C" size_t scratch_bytes(void) {
    return (size_t)IMAGES * CHANNELS * D * sizeof(float);
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
    const Network network = {{LAYER(0), LAYER(1), LAYER(2), LAYER(3), LAYER(4), LAYER(5)}};
    float *parts = (float *)scratch;
    patch_kernel<<<CHANNELS, THREADS, 0, stream>>>(in->x, in->conv1_weight, in->conv1_bias,
                                                   in->linear_proj_weight, parts);
    kp::launch_cluster<RANKS>(layers_kernel, IMAGES * RANKS, THREADS, stream, (const float *)parts,
                              in->cls_token, in->linear_proj_bias, network, in->fc_out_weight,
                              in->fc_out_bias, out->out);
}
