// provenance: shipped
/* Swin-MLP: 10 images of 224 x 224 in patches of 4 x 4, 56 x 56 places of 96 features; stages of 2,
 * 2, 6 and 2 blocks, of half the side and twice the features each. A block: x += a product of the
 * 49 places of a window, for each head of 32 features (layer norm(x)), every second time with
 * windows shifted by 4; x += linear(gelu(linear(layer norm(x)))), four times as wide. Between
 * stages four places become one, are normalised and halved. At the end norm, mean, 1000 classes.
 *
 * Idea: linear layers as swin.cuh says, with bias, GELU and residual in their epilogues. Windows
 * in fp32, by index: in the first two stages a block has all heads of a window and computes both
 * norms around it, too; in the others, whose windows are few, two heads, and norms are kernels that
 * add up the parts of the layer before (swin_rows.cuh).
 * Floor: 61 GFLOP of products, in three passes in TF32, 442 us.
 * Measured on an H200: 1.33 ms, 33 % of the floor; 0.82 predicted. */
#include "task.h"
#include "activations.cuh"
#include "swin.cuh"

constexpr int IMAGES = X_DIM0, BASE = PATCH_EMBED_PROJ_WEIGHT_DIM0, SIDE_0 = X_DIM3 / 4;
constexpr int CLASSES = HEAD_WEIGHT_DIM0, SHIFT = 4, DEPTHS[] = {2, 2, 6, 2};
constexpr int SHAPES[][2] = {{4, 1}, {1, 4}}; /* a block's layers: results, depth */
using kp::HEAD;
using kp::IN_WINDOW;
using kp::WINDOW;

template <int S> using Stage = kp::SwinStage<IMAGES, SIDE_0, BASE, S>;
static_assert(X_DIM2 == X_DIM3 && SIDE_0 == 8 * WINDOW, "the last stage is a window");
static_assert(HEAD_WEIGHT_DIM1 == Stage<3>::C, "four stages");

struct Block { /* as in struct Inputs */
    const float *norm1_weight, *norm1_bias, *mix_weight, *mix_bias, *norm2_weight, *norm2_bias,
        *fc1_weight, *fc1_bias, *fc2_weight, *fc2_bias;
};
using Parameters = kp::SwinParameters<Block>;
static_assert(sizeof(struct Inputs) == sizeof(float *) + sizeof(Parameters), "x, parameters");

/* What scratch holds. */
constexpr size_t PLANE = (size_t)Stage<0>::PLACES * BASE;
struct Scratch {
    float x[PLANE], y[PLANE], wide[4 * PLANE], parts[PLANE], mean[IMAGES * Stage<3>::C];
    alignas(16) char split[Stage<3>::SPLIT];
    alignas(16) float wide_split[kp::SwinWeights::words<kp::SwinWide>(BASE, DEPTHS, SHAPES)];
    float narrow_split[kp::SwinWeights::words<kp::SwinNarrow>(BASE, DEPTHS, SHAPES)];
};
static_assert(4 * Stage<2>::PLACES * Stage<2>::C <= PLANE, "parts");
static_assert(7 * Stage<3>::PLACES * Stage<3>::C <= PLANE, "parts");

/* ---- what lies between products ---- */

/* y = layer norm of four places of the sum, those of the first column before those of the second.
 */
template <int SIDE, int PLACES, int C, int PARTS>
__global__ void __launch_bounds__(32 * kp::ROW_WARPS)
    merge_kernel(kp::PartSum<PLACES, C, PARTS> sum, const float *__restrict__ weight,
                 const float *__restrict__ bias, float *__restrict__ y) {
    constexpr int HALF = SIDE / 2;
    const int merged = kp::own_row<4 * C>(), from = min(merged, PLACES / 4 - 1);
    const int first = from / HALF * 2 * SIDE + from % HALF * 2;
    kp::Row<4 * C> row;
    row.load([&](int i) {
        const int quarter = i / (C / 4);
        return sum.at(first + quarter % 2 * SIDE + quarter / 2, i % (C / 4));
    });
    row.norm(weight, bias);
    if (merged < PLACES / 4)
        row.store([&](int i, const float4 &v) { ((float4 *)y)[merged * C + i] = v; });
}

/* Heads of a block of mix_kernel: all, or two. */
template <int S> constexpr int GROUP_OF = S < 2 ? Stage<S>::HEADS : 2;
template <int S> constexpr bool FUSED_OF = GROUP_OF<S> == Stage<S>::HEADS;
template <int S> constexpr size_t mix_bytes() {
    return sizeof(float) * GROUP_OF<S> * kp::WINDOW_PITCH * (IN_WINDOW + HEAD);
}

/* x += the windows' products of y; or, of all heads, of layer norm(x), and y = layer norm(x) then.
 * Grid: x windows, y groups of heads; 64 threads a head, 8 of which idle: a row of the window and
 * four features each. */
template <int S>
__global__ void __launch_bounds__(64 * GROUP_OF<S>)
    mix_kernel(Block block, float *x, float *y, int shift) {
    using Of = Stage<S>;
    constexpr int SIDE = Of::SIDE, GROUP = GROUP_OF<S>, WIDTH = GROUP * HEAD, WARPS = GROUP * 2,
                  C = Of::C;
    constexpr bool FUSED = GROUP == Of::HEADS;
    extern __shared__ float4 shared[];
    float *weight = (float *)shared, *in = weight + GROUP * IN_WINDOW * kp::WINDOW_PITCH;
    const int across = SIDE / WINDOW + (shift > 0), warp = threadIdx.x / 32,
              lane = threadIdx.x % 32;
    const int left = blockIdx.x % across * WINDOW - shift;
    const int top = blockIdx.x / across % across * WINDOW - shift;
    const int image = blockIdx.x / (across * across), first = blockIdx.y * GROUP;
    auto place_of = [=](int p) {
        const int px = left + p % WINDOW, py = top + p / WINDOW;
        const bool inside = p < IN_WINDOW && px >= 0 && px < SIDE && py >= 0 && py < SIDE;
        return inside ? (image * SIDE + py) * SIDE + px : -1;
    };
    for (int r = warp; r < GROUP * IN_WINDOW; r += WARPS)
        for (int q = lane; q < kp::WINDOW_PITCH; q += 32)
            weight[r * kp::WINDOW_PITCH + q] =
                q < IN_WINDOW ? __ldg(block.mix_weight + (first * IN_WINDOW + r) * IN_WINDOW + q)
                              : 0.0f;
    using Own = kp::Row<WIDTH>;
    for (int p = threadIdx.x / Own::LANES; p < kp::WINDOW_PITCH; p += WARPS * Own::OF_WARP) {
        const int place = place_of(p);
        Own row = {};
        if (place >= 0) {
            const float *from = (FUSED ? x : y) + (size_t)place * C + first * HEAD;
            row.load([&](int i) { return ((const float4 *)from)[i]; });
        }
        if (FUSED) row.norm(block.norm1_weight, block.norm1_bias);
        if (place < 0) row = {};
        row.store([&](int i, const float4 &v) { ((float4 *)in)[p * (WIDTH / 4) + i] = v; });
    }
    __syncthreads();
    const int head = threadIdx.x / 64, line = threadIdx.x % 64 / 8;
    const int feature = head * HEAD + threadIdx.x % 8 * 4;
    float4 sum[WINDOW] = {};
    if (line < WINDOW)
        kp::mix_window<WIDTH>(weight + (head * IN_WINDOW + line * WINDOW) * kp::WINDOW_PITCH,
                              in + feature, sum);
    if (FUSED) __syncthreads();
#pragma unroll
    for (int j = 0; j < WINDOW; j++) {
        const int p = line * WINDOW + j, place = place_of(p);
        if (place < 0) continue;
        float4 *own = (float4 *)(x + (size_t)place * C + first * HEAD + feature);
        const float b = __ldg(block.mix_bias + (first + head) * IN_WINDOW + p);
        const float4 v = kp::add_fours(*own, kp::add_fours(sum[j], make_float4(b, b, b, b)));
        *own = v;
        if (FUSED) *(float4 *)(in + p * WIDTH + feature) = v;
    }
    if (!FUSED) return;
    __syncthreads();
    for (int p = threadIdx.x / Own::LANES; p < kp::WINDOW_PITCH; p += WARPS * Own::OF_WARP) {
        const int place = place_of(p);
        Own row;
        row.load([&](int i) { return ((const float4 *)in)[p * (WIDTH / 4) + i]; });
        row.norm(block.norm2_weight, block.norm2_bias);
        if (place >= 0)
            row.store([&](int i, const float4 &v) { ((float4 *)y)[place * (C / 4) + i] = v; });
    }
}

/* ---- all of it ---- */

/* What x is once the last layer's parts, with its bias, are added. Where it had one part, it has
 * added them. */
template <int S> static auto sum_of(const float *bias, Scratch *s) {
    constexpr int PARTS = Stage<S>::PARTS > 1 ? Stage<S>::PARTS : 0;
    return kp::PartSum<Stage<S>::PLACES, Stage<S>::C, PARTS>{s->parts, PARTS ? bias : nullptr,
                                                             s->x};
}

/* Enqueues a block. */
template <int S> static void run_block(const Block &b, int shift, Scratch *s, cudaStream_t stream) {
    using Of = Stage<S>;
    constexpr int C = Of::C, GROUP = GROUP_OF<S>;
    const int across = Of::SIDE / WINDOW + (shift > 0);
    cudaFuncSetAttribute(mix_kernel<S>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         (int)mix_bytes<S>());
    mix_kernel<S>
        <<<dim3(IMAGES * across * across, Of::HEADS / GROUP), 64 * GROUP, mix_bytes<S>(), stream>>>(
            b, s->x, s->y, shift);
    if (!FUSED_OF<S>)
        kp::norm_sum(kp::PartSum<Of::PLACES, C, 0>{nullptr, nullptr, s->x}, nullptr, b.norm2_weight,
                     b.norm2_bias, nullptr, s->y, stream);
    kp::wide_linear<Of, 4 * C>(kp::SwinBias<Of, kp::Gelu>{b.fc1_bias}, b.fc1_weight, s->y, s->wide,
                               s->split, stream);
    kp::narrow_linear<Of, 4 * C>(b.fc2_weight, s->wide, b.fc2_bias, s->x,
                                 Of::PARTS > 1 ? s->parts : s->x, s->split, stream);
}

/* Enqueues a stage of N blocks. The first finds x; where layers have parts, in these. */
template <int S, int N>
static void run_stage(const Block (&b)[N], Scratch *s, cudaStream_t stream) {
    static_assert(N == DEPTHS[S], "blocks");
    for (int i = 0; i < N; i++) {
        auto sum = sum_of<S>(i ? b[i - 1].fc2_bias : nullptr, s);
        if (i == 0) sum.residual = nullptr;
        if (!FUSED_OF<S>)
            kp::norm_sum(sum, s->x, b[i].norm1_weight, b[i].norm1_bias, nullptr, s->y, stream);
        run_block<S>(b[i], Stage<S>::SIDE > WINDOW && i % 2 ? SHIFT : 0, s, stream);
    }
}

/* Enqueues what leads from stage S, whose last bias is `bias`, to the next. */
template <int S>
static void downsample(const kp::SwinDownsample &down, const float *bias, Scratch *s,
                       cudaStream_t stream) {
    using Next = Stage<S + 1>;
    constexpr int C = 4 * Stage<S>::C;
    merge_kernel<Stage<S>::SIDE>
        <<<kp::row_blocks<C>(Next::PLACES), 32 * kp::ROW_WARPS, 0, stream>>>(
            sum_of<S>(bias, s), down.norm_weight, down.norm_bias, s->y);
    kp::narrow_linear<Next, C>(down.weight, s->y, nullptr, nullptr,
                               Next::PARTS > 1 ? s->parts : s->x, s->split, stream);
}

template <int S, int N> static void add_weights(Block (&b)[N], kp::SwinWeights &weights) {
    for (Block &block : b) {
        weights.add<Stage<S>>(block.fc1_weight, 4, Stage<S>::C);
        weights.add<Stage<S>>(block.fc2_weight, 1, 4 * Stage<S>::C);
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
    add_weights<0>(p.b0, weights), add_weights<1>(p.b1, weights), add_weights<2>(p.b2, weights);
    weights.add<Stage<1>>(p.down0.weight, 1, 2 * Stage<1>::C);
    weights.add<Stage<2>>(p.down1.weight, 1, 2 * Stage<2>::C);
    weights.enqueue(stream);

    kp::swin_patches<IMAGES, X_DIM1, X_DIM2, BASE>(in->x, p, s->x, stream);
    run_stage<0>(p.b0, s, stream), downsample<0>(p.down0, nullptr, s, stream);
    run_stage<1>(p.b1, s, stream), downsample<1>(p.down1, nullptr, s, stream);
    run_stage<2>(p.b2, s, stream), downsample<2>(p.down2, p.b2[5].fc2_bias, s, stream);
    run_stage<3>(p.b3, s, stream);
    kp::swin_head<IMAGES, CLASSES>(sum_of<3>(p.b3[1].fc2_bias, s), p, s->y, s->mean, out->out,
                                   stream);
}
