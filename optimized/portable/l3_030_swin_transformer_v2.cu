// provenance: shipped
/* Swin transformer V2: 10 images of 224 x 224 in patches of 4 x 4, 56 x 56 places of 96 features;
 * stages of 2, 2, 6 and 2 blocks, of half the side and twice the features each. A block: x += layer
 * norm(linear(attention in windows of 7 x 7, heads of 32, by the cosine of queries and keys, plus a
 * bias for each pair of places)), every second time with windows rolled by 3 and a mask; x += layer
 * norm(linear(gelu(linear(x)))), four times as wide. Between stages four places become one, are
 * halved and normalised. At the end norm, mean, 1000 classes.
 *
 * Idea: linear layers as swin.cuh says, with bias and GELU in their epilogues; kernels that add up
 * parts, normalise and add (swin_rows.cuh), in a stage's last block with four places side by side.
 * Attention in fp32, a window and a head a block of 64 threads, scores in registers: 7 x 7 a
 * thread. All biases, which depend on parameters only, are computed by two kernels beforehand.
 * Floor: 90 GFLOP of products, in three passes in TF32, 649 us.
 * Measured on an H200: 1.97 ms, 33 % of the floor; 1.28 predicted.
 * Spills 8 bytes a thread (stored and loaded) in one product, of depth 384 in 4 parts, on
 * sm_90a. */
#include "task.h"
#include "activations.cuh"
#include "swin.cuh"
#include "window_attention.cuh"

constexpr int IMAGES = X_DIM0, BASE = PATCH_EMBED_PROJ_WEIGHT_DIM0, SIDE_0 = X_DIM3 / 4;
constexpr int CLASSES = HEAD_WEIGHT_DIM0, SHIFT = 3, DEPTHS[] = {2, 2, 6, 2}, BLOCKS = 12;
constexpr int SHAPES[][2] = {{3, 1}, {1, 1}, {4, 1}, {1, 4}}; /* a block's: results, depth */
constexpr int HIDDEN = LAYERS_0_BLOCKS_0_ATTN_CPB_MLP_0_WEIGHT_DIM0;
using kp::HEAD;
using kp::IN_WINDOW;
using kp::WINDOW;

template <int S> using Stage = kp::SwinStage<IMAGES, SIDE_0, BASE, S>;
static_assert(X_DIM2 == X_DIM3 && SIDE_0 == 8 * WINDOW, "the last stage is a window");
static_assert(HEAD_WEIGHT_DIM1 == Stage<3>::C, "four stages");
constexpr int ALL_HEADS = BASE / HEAD * (2 + 2 * 2 + 6 * 4 + 2 * 8);

struct Block { /* as in struct Inputs */
    const float *norm1_weight, *norm1_bias, *logit_scale, *q_bias, *v_bias, *offset1_weight,
        *offset1_bias, *offset2_weight, *qkv_weight, *proj_weight, *proj_bias, *norm2_weight,
        *norm2_bias, *fc1_weight, *fc1_bias, *fc2_weight, *fc2_bias;
};
using Parameters = kp::SwinParameters<Block>;
static_assert(sizeof(struct Inputs) == sizeof(float *) + sizeof(Parameters) + 5 * sizeof(float *),
              "x, parameters, tables and masks");

/* What scratch holds. */
constexpr size_t PLANE = (size_t)Stage<0>::PLACES * BASE;
struct Scratch {
    float x[PLANE], y[PLANE], wide[4 * PLANE], parts[PLANE], mean[IMAGES * Stage<3>::C];
    float offsets[ALL_HEADS * kp::OFFSETS], pairs[ALL_HEADS * IN_WINDOW * IN_WINDOW];
    alignas(16) float wide_split[kp::SwinWeights::words<kp::SwinWide>(BASE, DEPTHS, SHAPES)];
    float narrow_split[kp::SwinWeights::words<kp::SwinNarrow>(BASE, DEPTHS, SHAPES)];
    alignas(16) char split[Stage<3>::SPLIT];
};
static_assert(4 * Stage<2>::PLACES * Stage<2>::C <= PLANE, "parts");
static_assert(7 * Stage<3>::PLACES * Stage<3>::C <= PLANE, "parts");

/* ---- all of it ---- */

/* The epilogue of queries, keys and values: keys have no bias. */
template <class Of> struct QkvBias {
    const float *q_bias, *v_bias;
    __device__ __forceinline__ float operator()(float v, int row, int column) const {
        const int feature = Of::STAGE == 3 ? row : column;
        if (feature < Of::C) return v + __ldg(q_bias + feature);
        return feature < 2 * Of::C ? v : v + __ldg(v_bias + feature - 2 * Of::C);
    }
};

/* Enqueues a block; the last of a stage leaves four places side by side in y. */
template <int S>
static void run_block(const Block &b, const float *pairs, const float *mask, bool last, Scratch *s,
                      cudaStream_t stream) {
    using Of = Stage<S>;
    constexpr int C = Of::C, ACROSS = Of::SIDE / WINDOW;
    const kp::PartSum<Of::PLACES, C, Of::PARTS> proj = {s->parts, b.proj_bias, nullptr};
    const kp::PartSum<Of::PLACES, C, Of::PARTS> fc2 = {s->parts, b.fc2_bias, nullptr};
    kp::wide_linear<Of, 3 * C>(QkvBias<Of>{b.q_bias, b.v_bias}, b.qkv_weight, s->x, s->wide,
                               s->split, stream);
    kp::attend_kernel<Of><<<dim3(IMAGES * ACROSS * ACROSS, Of::HEADS), 64, 0, stream>>>(
        s->wide, b.logit_scale, pairs, mask, s->y, mask ? SHIFT : 0);
    kp::narrow_linear<Of, C>(b.proj_weight, s->y, nullptr, nullptr, s->parts, s->split, stream);
    kp::norm_sum(proj, nullptr, b.norm1_weight, b.norm1_bias, s->x, s->x, stream);
    kp::wide_linear<Of, 4 * C>(kp::SwinBias<Of, kp::Gelu>{b.fc1_bias}, b.fc1_weight, s->x, s->wide,
                               s->split, stream);
    kp::narrow_linear<Of, 4 * C>(b.fc2_weight, s->wide, nullptr, nullptr, s->parts, s->split,
                                 stream);
    if (S < 3 && last)
        kp::norm_sum<Of::SIDE>(fc2, nullptr, b.norm2_weight, b.norm2_bias, s->x, s->y, stream);
    else
        kp::norm_sum(fc2, nullptr, b.norm2_weight, b.norm2_bias, s->x, s->x, stream);
}

/* Enqueues a stage of N blocks; moves `pairs` on. */
template <int S, int N>
static void run_stage(const Block (&b)[N], const float *&pairs, const float *mask, Scratch *s,
                      cudaStream_t stream) {
    static_assert(N == DEPTHS[S], "blocks");
    for (int i = 0; i < N; i++, pairs += Stage<S>::HEADS * IN_WINDOW * IN_WINDOW)
        run_block<S>(b[i], pairs, i % 2 ? mask : nullptr, i + 1 == N, s, stream);
}

/* Enqueues what leads from stage S to the next. */
template <int S>
static void downsample(const kp::SwinDownsample &down, Scratch *s, cudaStream_t stream) {
    using Next = Stage<S + 1>;
    kp::narrow_linear<Next, 4 * Stage<S>::C>(down.weight, s->y, nullptr, nullptr, s->parts,
                                             s->split, stream);
    kp::norm_sum(kp::PartSum<Next::PLACES, Next::C, Next::PARTS>{s->parts, nullptr, nullptr},
                 nullptr, down.norm_weight, down.norm_bias, nullptr, s->x, stream);
}

/* Adds a stage's weights to those that are split, and its layers for biases to `offsets`. */
template <int S, int N>
static void add_weights(Block (&b)[N], kp::SwinWeights &weights, kp::Offsets<BLOCKS> &offsets,
                        int &block, int &head) {
    using Of = Stage<S>;
    for (Block &own : b) {
        offsets.of[block++] = {own.offset1_weight, own.offset1_bias, own.offset2_weight, head,
                               Of::HEADS};
        head += Of::HEADS;
        weights.add<Of>(own.qkv_weight, 3, Of::C);
        weights.add<Of>(own.proj_weight, 1, Of::C);
        weights.add<Of>(own.fc1_weight, 4, Of::C);
        weights.add<Of>(own.fc2_weight, 1, 4 * Of::C);
    }
}

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Scratch *s = (Scratch *)scratch;
    Parameters p = *(const Parameters *)&in->patch_embed_proj_weight; /* whose weights move */
    kp::SwinWeights weights = {s->wide_split, s->narrow_split};
    kp::Offsets<BLOCKS> offsets;
    int block = 0, head = 0;
    add_weights<0>(p.b0, weights, offsets, block, head);
    add_weights<1>(p.b1, weights, offsets, block, head);
    add_weights<2>(p.b2, weights, offsets, block, head);
    add_weights<3>(p.b3, weights, offsets, block, head);
    weights.add<Stage<1>>(p.down0.weight, 1, 2 * Stage<1>::C);
    weights.add<Stage<2>>(p.down1.weight, 1, 2 * Stage<2>::C);
    weights.enqueue(stream);
    kp::offset_kernel<HIDDEN><<<dim3(kp::OFFSETS, BLOCKS), 128, 0, stream>>>(
        offsets, in->layers_0_blocks_0_attn_relative_coords_table, s->offsets);
    kp::pair_kernel<<<ALL_HEADS, 256, 0, stream>>>(
        s->offsets, in->layers_0_blocks_0_attn_relative_position_index, s->pairs);
    kp::swin_patches<IMAGES, X_DIM1, X_DIM2, BASE>(in->x, p, s->x, stream);
    const float *pairs = s->pairs;
    run_stage<0>(p.b0, pairs, in->layers_0_blocks_1_attn_mask, s, stream);
    downsample<0>(p.down0, s, stream);
    run_stage<1>(p.b1, pairs, in->layers_1_blocks_1_attn_mask, s, stream);
    downsample<1>(p.down1, s, stream);
    run_stage<2>(p.b2, pairs, in->layers_2_blocks_1_attn_mask, s, stream);
    downsample<2>(p.down2, s, stream);
    run_stage<3>(p.b3, pairs, nullptr, s, stream);
    kp::swin_head<IMAGES, CLASSES>(
        kp::PartSum<Stage<3>::PLACES, Stage<3>::C, 0>{nullptr, nullptr, s->x}, p, s->y, s->mean,
        out->out, stream);
}
