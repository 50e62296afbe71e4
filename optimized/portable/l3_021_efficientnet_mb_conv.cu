// provenance: shipped
/* An inverted bottleneck, x [10][112][224][224] -> [10][192][112][112]: 1 x 1 convolution to 672
 * channels, batch norm, ReLU6; depthwise 5 x 5 convolution with stride 2, batch norm, ReLU6; 1 x 1
 * convolution to 192 channels, batch norm. Norms are by the batch's own statistics.
 *
 * Idea: two products an image (product.cuh), and between them a depthwise convolution: each gathers
 * the statistics of what it makes (channel_norm.cuh) and normalises what it reads, so that what
 * lies between is written once and read once. In the depthwise convolution a warp makes two rows: a
 * lane reads and normalises what lies under its own columns, and its neighbours have the rest.
 * ReLU6 costs nothing there: a sixth of the norm saturates at 1, and filters are six times as
 * large.
 * Floor: products in three passes in TF32, 780 us; 0.30 GiB, 75 us. This method moves 3.8 GiB,
 * 950 us.
 * Measured: 2023 us on an H200, 47 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "channel_norm.cuh"
#include "row_passes.cuh"
#include "stores.cuh"
#include "windows.cuh"

constexpr int IMAGES = X_DIM0, DEPTH = X_DIM1, HIDDEN = EXPAND_CONV_0_WEIGHT_DIM0;
constexpr int FILTERS = OUT_DIM1, PIXELS = X_DIM2 * X_DIM3, LEFT = OUT_DIM2 * OUT_DIM3;
constexpr double EPS = 1e-5;

using Expand = kp::Matrices<PIXELS, HIDDEN, DEPTH, IMAGES, true>;
using Project = kp::Matrices<LEFT, FILTERS, HIDDEN, IMAGES, true>;
template <class Sizes> using Tile = kp::TileFor<Sizes, 96>;
using Height = kp::Windows<X_DIM2, DEPTHWISE_CONV_0_WEIGHT_DIM2, 2, 2>;
using Width = kp::Windows<X_DIM3, DEPTHWISE_CONV_0_WEIGHT_DIM3, 2, 2>;
static_assert(Height::OUT == OUT_DIM2 && Width::OUT == OUT_DIM3, "size of the result");

/* The depthwise convolution: a warp makes ROWS rows of a plane, a lane four columns of them. Under
 * these lie OWN columns, and some of the neighbours' to the left (PAD) and to the right. */
constexpr int ROWS = 2, WARPS = 4, LANES = Width::OUT / 4, TAPS = Height::KERNEL * Width::KERNEL;
constexpr int UNDER = Height::under(ROWS), OWN = 4 * Width::STRIDE, PAD = Width::PAD;
constexpr int ACROSS = Width::under(4), STRIPS = (Height::OUT + ROWS - 1) / ROWS;
static_assert(Width::OUT % 4 == 0 && LANES <= 32 && LANES * OWN == Width::SIZE,
              "lanes hold a row, in whole float4");
using DepthwiseParts = kp::RunParts<HIDDEN, LEFT, ROWS * Width::OUT, IMAGES>;

/* Reads what lies under the rows from `top` on, maps it and hands it on: v[r][c] is c - PAD columns
 * from the lane's first. Padding is zero. */
__device__ __forceinline__ void read_rows(const float *__restrict__ plane, int top,
                                          kp::ChannelNorm sixth, float (&v)[UNDER][ACROSS]) {
    const int lane = threadIdx.x % 32;
    float4 in[UNDER][OWN / 4];
#pragma unroll
    for (int r = 0; r < UNDER; r++)
#pragma unroll
        for (int j = 0; j < OWN / 4; j++) {
            in[r][j] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (lane < LANES && (unsigned)(top + r) < (unsigned)Height::SIZE)
                in[r][j] =
                    __ldg((const float4 *)(plane + (top + r) * Width::SIZE + lane * OWN + j * 4));
        }
#pragma unroll
    for (int r = 0; r < UNDER; r++) {
        const bool inside = lane < LANES && (unsigned)(top + r) < (unsigned)Height::SIZE;
        const kp::ChannelNorm norm = {inside ? sixth.mean : 0.0f, inside ? sixth.scale : 0.0f,
                                      inside ? sixth.bias : 0.0f};
        float own[OWN];
#pragma unroll
        for (int j = 0; j < OWN / 4; j++) {
            own[4 * j] = __saturatef(norm(in[r][j].x));
            own[4 * j + 1] = __saturatef(norm(in[r][j].y));
            own[4 * j + 2] = __saturatef(norm(in[r][j].z));
            own[4 * j + 3] = __saturatef(norm(in[r][j].w));
        }
#pragma unroll
        for (int c = 0; c < ACROSS; c++) {
            const int at = c - PAD;
            if (at < 0) {
                const float left = __shfl_up_sync(0xffffffffu, own[OWN + at], 1);
                v[r][c] = lane == 0 ? 0.0f : left;
            } else if (at < OWN)
                v[r][c] = own[at];
            else {
                const float right = __shfl_down_sync(0xffffffffu, own[at - OWN], 1);
                v[r][c] = lane == LANES - 1 ? 0.0f : right;
            }
        }
    }
}

/* v added up over the warp. */
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
    return v;
}

/* y = the depthwise convolution of relu6(norm of x), and the parts of y. Grid: x the strips of a
 * plane, WARPS a block, y the planes. */
__global__ void __launch_bounds__(WARPS * 32, 16 / WARPS)
    depthwise_kernel(const float *__restrict__ x, const kp::ChannelNorm *__restrict__ norm,
                     const float *__restrict__ weight, float *__restrict__ y,
                     kp::Centred *__restrict__ parts) {
    const int channel = blockIdx.y % HIDDEN, image = blockIdx.y / HIDDEN, lane = threadIdx.x % 32;
    const int strip = blockIdx.x * WARPS + threadIdx.x / 32, row = strip * ROWS;
    if (STRIPS % WARPS && strip >= STRIPS) return;
    const kp::ChannelNorm all = kp::ChannelNorm::of(norm, channel);
    const kp::ChannelNorm sixth = {all.mean, all.scale / 6.0f, all.bias / 6.0f};
    const float six = all.scale == all.scale ? 6.0f : all.scale; /* saturating loses a NaN */
    float v[UNDER][ACROSS], w[TAPS], result[ROWS][4], sum = 0, square = 0;
    read_rows(x + (long long)blockIdx.y * PIXELS, row * Height::STRIDE - Height::PAD, sixth, v);
#pragma unroll
    for (int t = 0; t < TAPS; t++) w[t] = six * __ldg(weight + channel * TAPS + t);
    float4 *to = (float4 *)(y + (long long)blockIdx.y * LEFT + row * Width::OUT) + lane;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const bool inside = lane < LANES && (Height::OUT % ROWS == 0 || row + r < Height::OUT);
#pragma unroll
        for (int c = 0; c < 4; c++) {
            float s = 0;
#pragma unroll
            for (int t = 0; t < TAPS; t++)
                s += w[t] * v[r * Height::STRIDE + t / Width::KERNEL]
                             [c * Width::STRIDE + t % Width::KERNEL];
            result[r][c] = s;
            sum += inside ? s : 0.0f;
        }
        if (inside)
            to[r * LANES] = make_float4(result[r][0], result[r][1], result[r][2], result[r][3]);
    }
    const int part = image * STRIPS + strip;
    sum = warp_sum(sum);
    const float mean = sum / DepthwiseParts::size(strip);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const bool inside = lane < LANES && (Height::OUT % ROWS == 0 || row + r < Height::OUT);
            const float d = inside ? result[r][c] - mean : 0.0f;
            square += d * d;
        }
    square = warp_sum(square);
    if (lane == 0) parts[(long long)part * HIDDEN + channel] = {sum, square};
}

/* What the second product does to a value of a channel, */
struct NormRelu6 {
    const kp::ChannelNorm *norm;
    struct Mapper {
        kp::ChannelNorm norm;
        __device__ __forceinline__ float operator()(float v) const {
            return kp::Clamp{0.0f, 6.0f}(norm(v));
        }
    };
    __device__ __forceinline__ Mapper mapper(int channel) const {
        return {kp::ChannelNorm::of(norm, channel)};
    }
};

/* and the last kernel (row_passes.cuh). */
struct Norm {
    using State = kp::Centred;
    using Row = kp::ChannelNorm;
    __device__ __forceinline__ Row mapper(Row norm, long long) const { return norm; }
};

/* What scratch holds. */
struct Scratch {
    kp::ChannelNorm expand_norm[HIDDEN], depthwise_norm[HIDDEN], project_norm[FILTERS];
    alignas(16) char split_expand[kp::split_bytes<Expand, Tile<Expand>>()];
    alignas(16) char split_project[kp::split_bytes<Project, Tile<Project>>()];
    kp::Centred expand_parts[kp::ProductParts<Expand>::BYTES / sizeof(kp::Centred)];
    kp::Centred depthwise_parts[DepthwiseParts::BYTES / sizeof(kp::Centred)];
    kp::Centred project_parts[kp::ProductParts<Project>::BYTES / sizeof(kp::Centred)];
    alignas(16) float expanded[(long long)IMAGES * HIDDEN * PIXELS];
    alignas(16) float convolved[IMAGES * HIDDEN * LEFT], projected[OUT_ELEMENTS];
};

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Scratch *s = (Scratch *)scratch;
    const kp::Across<PIXELS, DEPTH, PIXELS, (long long)DEPTH *PIXELS> x = {{}, in->x};
    const kp::Along<HIDDEN, DEPTH> expand = {{}, in->expand_conv_0_weight};
    using StoreExpanded = kp::StoreColumns<kp::Same, PIXELS, HIDDEN, (long long)HIDDEN * PIXELS>;
    const kp::WithMoments<Expand, StoreExpanded> expanded = {{{}, s->expanded}, s->expand_parts};
    kp::product<Expand, Tile<Expand>>(x, expand, expanded, s->split_expand, stream);
    kp::join_channels<kp::ProductParts<Expand>>(s->expand_parts, in->expand_conv_1_weight,
                                                in->expand_conv_1_bias, EPS, s->expand_norm,
                                                stream);

    const dim3 grid((STRIPS + WARPS - 1) / WARPS, IMAGES * HIDDEN);
    depthwise_kernel<<<grid, WARPS * 32, 0, stream>>>(
        s->expanded, s->expand_norm, in->depthwise_conv_0_weight, s->convolved, s->depthwise_parts);
    kp::join_channels<DepthwiseParts>(s->depthwise_parts, in->depthwise_conv_1_weight,
                                      in->depthwise_conv_1_bias, EPS, s->depthwise_norm, stream);

    const kp::MappedAcross<NormRelu6, LEFT, HIDDEN, LEFT, (long long)HIDDEN *LEFT> hidden = {
        {{}, s->convolved}, {s->depthwise_norm}};
    const kp::Along<FILTERS, HIDDEN> project = {{}, in->project_conv_0_weight};
    using StoreProjected = kp::StoreColumns<kp::Same, LEFT, FILTERS, (long long)FILTERS * LEFT>;
    const kp::WithMoments<Project, StoreProjected> projected = {{{}, s->projected},
                                                                s->project_parts};
    kp::product<Project, Tile<Project>>(hidden, project, projected, s->split_project, stream);
    kp::join_channels<kp::ProductParts<Project>>(s->project_parts, in->project_conv_1_weight,
                                                 in->project_conv_1_bias, EPS, s->project_norm,
                                                 stream);
    kp::map_rows_kernel<FILTERS, LEFT>
        <<<IMAGES * FILTERS * kp::Chunks<LEFT>::TILES, kp::PASS_MAP_THREADS, 0, stream>>>(
            Norm(), s->projected, s->project_norm, out->out);
}
