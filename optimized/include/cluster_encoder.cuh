/* cluster_encoder.cuh: layers of a transformer (attention of 4 heads, norm, 128 -> 512 -> 128 with
 * ReLU, norm) of sequences of two tokens, which see nothing of each other.
 *
 * Idea: eight blocks, a cluster, have a sequence. Half a head and an eighth of the inner features
 * are a block's, its rank's, so that layers are cut only where all features meet: before each norm
 * a rank has parts of the sums of all features. In turns it stores them straight into the shared
 * memory of all eight blocks, where they count at a barrier, and each adds them up and normalises
 * for itself. Queries and keys of a head are computed by both of its ranks. Weights are fetched to
 * registers before what they are multiplied with is there. Without sm_90a's instructions one block
 * has the ranks' work, one after the other.
 *
 * What limits it: two turns a layer, each about 1000 cycles with its norm, and the latencies of
 * four products; the weights of a rank, 0.1 MB a layer, from the L2 cache. Reaches 5 % of the
 * bytes' floor: 45 us, where 18 to 25 were predicted (l3_032). */
#pragma once
#include "activations.cuh"
#include "cluster_words.cuh"
#include "states.cuh"

namespace kp {
namespace encoder {

constexpr int D = 128, INNER = 512, TOKENS = 2, HEAD = 32;
constexpr int RANKS = 8, THREADS = 512, EIGHTS = THREADS / 8; /* eight lanes have a row */
constexpr int SOME = INNER / RANKS, HALF = HEAD / 2;          /* of a rank's features */
constexpr float EPS = 1e-5f;
static_assert(RANKS * HALF == D && SOME == EIGHTS && THREADS == 4 * D, "threads");

/* Four numbers each, which belong to the same lane: from 4 * (place + LANES * j) on. */
template <int N, int LANES>
__device__ __forceinline__ void load(const float *from, int place, float4 (&v)[N]) {
#pragma unroll
    for (int j = 0; j < N; j++) v[j] = __ldg((const float4 *)from + place + LANES * j);
}

/* The product of a row, which LANES lanes have, and a vector in shared memory; all get it. */
template <int LANES, int N>
__device__ __forceinline__ float dot(const float4 (&w)[N], const float *x, int place) {
    float4 s = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int j = 0; j < N; j++) {
        const float4 v = ((const float4 *)x)[place + LANES * j];
        s.x += w[j].x * v.x, s.y += w[j].y * v.y, s.z += w[j].z * v.z, s.w += w[j].w * v.w;
    }
    return lanes_sum<LANES>((s.x + s.y) + (s.z + s.w));
}

struct Layer {
    const float *in_weight, *in_bias, *out_weight, *out_bias, *inner_weight, *inner_bias,
        *outer_weight, *outer_bias, *norm1_weight, *norm1_bias, *norm2_weight, *norm2_bias;
};
/* A block's shared memory. What ranks say: of each feature, a number for both tokens. */
struct Memory {
    float2 part[2][RANKS][D]; /* turns take turns */
    float x[TOKENS][D], head[TOKENS][2 * HEAD + HALF], inner[TOKENS][SOME];
    float attended[THREADS / 32][TOKENS][HALF];
    unsigned long long bar[2];
};

/* How ranks tell each other what they have. RUN: ranks that a block is. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define KP_CLUSTER_OF_RANKS __cluster_dims__(RANKS, 1, 1)
constexpr int RUN = 1;
__device__ __forceinline__ void begin_turns(Memory &memory) {
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; i++) bar_init(shared_address(&memory.bar[i]), 1);
        bar_init_done();
        for (int i = 0; i < 2; i++)
            bar_expect(shared_address(&memory.bar[i]), sizeof memory.part[0]);
    }
    cluster_sync();
}
__device__ __forceinline__ void tell(Memory &memory, int turn, int rank, int feature, int to,
                                     float2 v) {
    store_words(address_in_block(shared_address(&memory.part[turn % 2][rank][feature]), to), v,
                address_in_block(shared_address(&memory.bar[turn % 2]), to));
}
/* Waits for what all say in this turn, and gets the barrier ready for the next but one: nobody
 * speaks in that before it has heard what this block says in the next. */
__device__ __forceinline__ void hear(Memory &memory, int turn) {
    const uint32_t bar = shared_address(&memory.bar[turn % 2]);
    bar_wait(bar, turn / 2 % 2);
    if (threadIdx.x == 0) bar_expect(bar, sizeof memory.part[0]);
}
#else
#define KP_CLUSTER_OF_RANKS
constexpr int RUN = RANKS;
__device__ __forceinline__ void begin_turns(Memory &) {}
__device__ __forceinline__ void tell(Memory &memory, int turn, int rank, int feature, int to,
                                     float2 v) {
    if (to == 0) memory.part[turn % 2][rank][feature] = v;
}
__device__ __forceinline__ void hear(Memory &, int) {
    __syncthreads();
}
#endif

/* The weights of a rank that a thread has: those of attention, or rows of the classes'. */
struct AttentionWeights {
    float4 in[2][4], out[1];
    float bias[2];
    __device__ __forceinline__ void take(int i, const float *weight, const float *b, int row) {
        load<4, 8>(weight + row * D, threadIdx.x % 8, in[i]), bias[i] = __ldg(b + row);
    }
    __device__ __forceinline__ void fetch(const Layer &layer, int rank) {
        const int head = rank / 2 * HEAD, group = threadIdx.x / 8;
        take(0, layer.in_weight, layer.in_bias, group / HEAD * D + head + group % HEAD);
        if (group < HALF) take(1, layer.in_weight, layer.in_bias, 2 * D + rank * HALF + group);
        load<1, 4>(layer.out_weight + threadIdx.x / 4 * D + rank * HALF, threadIdx.x % 4, out);
    }
    __device__ __forceinline__ static int class_of(int i, int rank) {
        return (i * RANKS + rank) * EIGHTS + threadIdx.x / 8;
    }
    __device__ __forceinline__ void fetch(const float *weight, const float *b, int rank,
                                          int classes) {
#pragma unroll
        for (int i = 0; i < 2; i++)
            if (class_of(i, rank) < classes) take(i, weight, b, class_of(i, rank));
    }
};

/* Those of the two layers behind attention. */
struct InnerWeights {
    float4 inner[4], outer[2][2];
    float bias;
    __device__ __forceinline__ void fetch(const Layer &layer, int rank) {
        const int group = threadIdx.x / 8, place = threadIdx.x % 8;
        load<4, 8>(layer.inner_weight + (rank * SOME + group) * D, place, inner);
        bias = __ldg(layer.inner_bias + rank * SOME + group);
#pragma unroll
        for (int i = 0; i < 2; i++)
            load<2, 8>(layer.outer_weight + (group + i * EIGHTS) * INNER + rank * SOME, place,
                       outer[i]);
    }
};

/* What a rank's half of a head adds to all features. */
__device__ __forceinline__ void attend(Memory &memory, int turn, int rank,
                                       const AttentionWeights &w) {
    const int group = threadIdx.x / 8, place = threadIdx.x % 8, lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (i == 1 && group >= HALF) break;
#pragma unroll
        for (int token = 0; token < TOKENS; token++) {
            const float sum = dot<8>(w.in[i], memory.x[token], place);
            if (place == token) memory.head[token][i * 2 * HEAD + group] = sum + w.bias[i];
        }
    }
    __syncthreads();
    /* Each warp for itself: lanes are channels, then half of them a token's. */
    float share[TOKENS][TOKENS];
#pragma unroll
    for (int i = 0; i < TOKENS; i++) {
        float score[TOKENS];
#pragma unroll
        for (int j = 0; j < TOKENS; j++)
            score[j] = lanes_sum(memory.head[i][lane] * memory.head[j][HEAD + lane]) *
                       0.176776695296636881f; /* 1 / sqrt(HEAD) */
        const float top = fmaxf(score[0], score[1]);
        const float a = expf(score[0] - top), b = expf(score[1] - top);
        share[i][0] = a / (a + b), share[i][1] = b / (a + b);
    }
    const int token = lane / HALF, channel = 2 * HEAD + lane % HALF;
    auto &attended = memory.attended[threadIdx.x / 32];
    attended[token][lane % HALF] =
        (token == 0 ? share[0][0] : share[1][0]) * memory.head[0][channel] +
        (token == 0 ? share[0][1] : share[1][1]) * memory.head[1][channel];
    __syncwarp();
    const float2 sum =
        make_float2(dot<4>(w.out, attended[0], place % 4), dot<4>(w.out, attended[1], place % 4));
    tell(memory, turn, rank, threadIdx.x / 4, place % 4, sum);
    tell(memory, turn, rank, threadIdx.x / 4, place % 4 + 4, sum);
}

/* What a rank's inner features add to all features. */
__device__ __forceinline__ void widen(Memory &memory, int turn, int rank, const InnerWeights &w) {
    const int group = threadIdx.x / 8, place = threadIdx.x % 8;
#pragma unroll
    for (int token = 0; token < TOKENS; token++) {
        const float sum = dot<8>(w.inner, memory.x[token], place);
        if (place == token) memory.inner[token][group] = Relu()(sum + w.bias);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; i++)
        tell(memory, turn, rank, group + i * EIGHTS, place,
             make_float2(dot<8>(w.outer[i], memory.inner[0], place),
                         dot<8>(w.outer[i], memory.inner[1], place)));
}

/* Of two warps, one a token, a lane's four features: v, as a norm makes it. Before the turn the
 * norm is fetched, and v gets the bias. */
struct Norm {
    float4 weight, bias;
    __device__ __forceinline__ static void add(float4 &v, const float *from) {
        const float4 b = __ldg((const float4 *)from + threadIdx.x % 32);
        v.x += b.x, v.y += b.y, v.z += b.z, v.w += b.w;
    }
    __device__ __forceinline__ void fetch(const float *w, const float *b, const float *sum_bias,
                                          float4 &v) {
        if (threadIdx.x / 32 >= TOKENS) return;
        weight = __ldg((const float4 *)w + threadIdx.x % 32);
        bias = __ldg((const float4 *)b + threadIdx.x % 32);
        add(v, sum_bias);
    }
    __device__ __forceinline__ void operator()(float4 &v) const {
        const float mean = lanes_sum((v.x + v.y) * (1.0f / D) + (v.z + v.w) * (1.0f / D));
        v.x -= mean, v.y -= mean, v.z -= mean, v.w -= mean;
        const float square = lanes_sum((v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w));
        const float scale = 1.0f / sqrtf(square * (1.0f / D) + EPS);
        v = make_float4(v.x * scale * weight.x + bias.x, v.y * scale * weight.y + bias.y,
                        v.z * scale * weight.z + bias.z, v.w * scale * weight.w + bias.w);
    }
};
struct NoNorm {
    __device__ __forceinline__ void operator()(float4 &) const {}
};

/* v and x = the norm of v and what all ranks say in a turn. */
template <class N>
__device__ __forceinline__ void join(Memory &memory, int turn, const N &norm, float4 &v) {
    const int token = threadIdx.x / 32, lane = threadIdx.x % 32;
    hear(memory, turn);
    if (token < TOKENS) {
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int rank = 0; rank < RANKS; rank++) {
            const float4 *part = (const float4 *)memory.part[turn % 2][rank] + lane * 2;
            const float4 low = part[0], high = part[1]; /* both tokens of two features */
            sum.x += token ? low.y : low.x, sum.y += token ? low.w : low.z;
            sum.z += token ? high.y : high.x, sum.w += token ? high.w : high.z;
        }
        v = make_float4(v.x + sum.x, v.y + sum.y, v.z + sum.z, v.w + sum.w);
        norm(v);
        ((float4 *)memory.x[token])[lane] = v;
    }
    __syncthreads();
}

} // namespace encoder
} // namespace kp
