// provenance: shipped
/* An inverted bottleneck, x [10][112][224][224] -> [10][192][112][112]: 1 x 1 convolution to 672
 * channels, batch norm, ReLU6; depthwise 5 x 5 convolution with stride 2, batch norm, ReLU6; 1 x 1
 * convolution to 192 channels, batch norm. Norms are by the batch's own statistics.
 *
 * Idea: two products an image (product.cuh), and between them a depthwise convolution
 * (depthwise_conv.cuh): each gathers the statistics of what it makes (channel_norm.cuh) and
 * normalises what it reads, so that what lies between is written once and read once. ReLU6 costs
 * nothing in the depthwise convolution: a sixth of the norm saturates at 1, the filter is six
 * times as large.
 * Floor: one product in TF32 and two in bf16, 540 us; 0.30 GiB, 75 us. This method moves 3.8 GiB,
 * 950 us.
 * Not measured yet. */
#include "task.h"
#include "activations.cuh"
#include "channel_norm.cuh"
#include "depthwise_conv.cuh"
#include "row_passes.cuh"
#include "stores.cuh"

constexpr int IMAGES = X_DIM0, DEPTH = X_DIM1, HIDDEN = EXPAND_CONV_0_WEIGHT_DIM0;
constexpr int FILTERS = OUT_DIM1, PIXELS = X_DIM2 * X_DIM3, LEFT = OUT_DIM2 * OUT_DIM3;
constexpr double EPS = 1e-5;

using Expand = kp::Matrices<PIXELS, HIDDEN, DEPTH, IMAGES, true>;
using Project = kp::Matrices<LEFT, FILTERS, HIDDEN, IMAGES, true>;
using Tile = kp::Tile<96>;
using Height = kp::Windows<X_DIM2, DEPTHWISE_CONV_0_WEIGHT_DIM2, 2, 2>;
using Width = kp::Windows<X_DIM3, DEPTHWISE_CONV_0_WEIGHT_DIM3, 2, 2>;
using Depthwise = kp::DepthwiseConv<HIDDEN, Height, Width, 1>;
static_assert(Height::OUT == OUT_DIM2 && Width::OUT == OUT_DIM3, "size of the result");

/* A block of the depthwise convolution makes some rows of a plane, a thread four values. */
constexpr int ROWS = 8, THREADS = (ROWS * Depthwise::ACROSS + 31) / 32 * 32;
using DepthwiseParts = kp::Parts<HIDDEN, LEFT, ROWS * Width::OUT, IMAGES>;

/* v added up over the block: everyone gets the sum. */
__device__ __forceinline__ float block_sum(float v) {
    __shared__ float part[THREADS / 32];
#pragma unroll
    for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
    __syncthreads(); /* the last sum was read */
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
#pragma unroll
    for (float p : part) v += p;
    return v;
}

/* y = the depthwise convolution of relu6(norm of x), and the parts of y. Grid: x the parts of a
 * plane, y the planes. */
__global__ void __launch_bounds__(THREADS, 448 / THREADS)
    depthwise_kernel(const float *__restrict__ x, const kp::Affine *__restrict__ norm,
                     const float *__restrict__ weight, float *__restrict__ y,
                     kp::Centred *__restrict__ parts) {
    using S = Depthwise;
    const int channel = blockIdx.y % HIDDEN, image = blockIdx.y / HIDDEN;
    const int own = threadIdx.x / S::ACROSS, column = threadIdx.x % S::ACROSS * 4;
    const int row = blockIdx.x * ROWS + own;
    const bool there = own < ROWS && row < Height::OUT;
    const int top = row * Height::STRIDE - Height::PAD, left = column * Width::STRIDE - S::LEFT;
    const kp::Affine sixth = {norm[channel].scale / 6.0f, norm[channel].shift / 6.0f};
    const float six = 6.0f + 0.0f * sixth.scale; /* NaN if that is: saturating loses it */
    float v[S::UNDER][S::READ * 4], w[S::TAPS];
    kp::depthwise_read<S>(x + (long long)blockIdx.y * PIXELS, row, column, v);
#pragma unroll
    for (int t = 0; t < S::TAPS; t++) w[t] = six * __ldg(weight + channel * S::TAPS + t);
#pragma unroll
    for (int r = 0; r < S::UNDER; r++)
#pragma unroll
        for (int j = 0; j < S::READ * 4; j++) { /* padding stays zero */
            const bool inside = (unsigned)(top + r) < (unsigned)Height::SIZE &&
                                (unsigned)(left + j / 4 * 4) < (unsigned)Width::SIZE;
            v[r][j] = __saturatef(kp::Affine{inside ? sixth.scale : 0.0f,
                                             inside ? sixth.shift : 0.0f}(v[r][j]));
        }
    float *to = y + ((long long)blockIdx.y * Height::OUT + row) * Width::OUT + column;
    float result[4], sum = 0, square = 0;
    bool inside[4];
#pragma unroll
    for (int c = 0; c < 4; c++) {
        inside[c] = there && column + c < Width::OUT;
        result[c] = kp::depthwise_sum<S>(w, v, 0, c);
        sum += inside[c] ? result[c] : 0.0f;
    }
    if (Width::OUT % 4 == 0 && inside[0])
        *(float4 *)to = make_float4(result[0], result[1], result[2], result[3]);
    else
#pragma unroll
        for (int c = 0; c < 4; c++)
            if (inside[c]) to[c] = result[c];
    sum = block_sum(sum);
    const float mean = sum / DepthwiseParts::size(blockIdx.x);
#pragma unroll
    for (int c = 0; c < 4; c++) {
        const float d = inside[c] ? result[c] - mean : 0.0f;
        square += d * d;
    }
    square = block_sum(square);
    const int index = image * DepthwiseParts::OF_A_RUN + blockIdx.x;
    if (threadIdx.x == 0) parts[(long long)index * HIDDEN + channel] = {sum, square};
}

/* What the second product does to a value of a channel, */
struct NormRelu6 {
    const kp::Affine *norm;
    struct Mapper {
        kp::Affine norm;
        __device__ __forceinline__ float operator()(float v) const {
            return kp::Clamp{0.0f, 6.0f}(norm(v));
        }
    };
    __device__ __forceinline__ Mapper mapper(int channel) const {
        const float2 n = __ldg((const float2 *)norm + channel);
        return {{n.x, n.y}};
    }
};

/* and the last kernel (row_passes.cuh). */
struct Norm {
    using State = kp::Centred;
    using Row = kp::Affine;
    __device__ __forceinline__ kp::Affine mapper(kp::Affine norm, long long) const { return norm; }
};

/* What scratch holds. */
struct Scratch {
    float expanded[(long long)IMAGES * HIDDEN * PIXELS], convolved[IMAGES * HIDDEN * LEFT];
    float projected[OUT_ELEMENTS];
    kp::Centred expand_parts[kp::ProductParts<Expand>::BYTES / sizeof(kp::Centred)];
    kp::Centred depthwise_parts[DepthwiseParts::BYTES / sizeof(kp::Centred)];
    kp::Centred project_parts[kp::ProductParts<Project>::BYTES / sizeof(kp::Centred)];
    kp::Affine expand_norm[HIDDEN], depthwise_norm[HIDDEN], project_norm[FILTERS];
    alignas(16) char split_expand[kp::split_bytes<Expand, Tile>()];
    alignas(16) char split_project[kp::split_bytes<Project, Tile>()];
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
    kp::product<Expand, Tile>(x, expand, expanded, s->split_expand, stream);
    kp::join_channels<kp::ProductParts<Expand>>(s->expand_parts, in->expand_conv_1_weight,
                                                in->expand_conv_1_bias, EPS, s->expand_norm,
                                                stream);

    const dim3 grid(DepthwiseParts::OF_A_RUN, IMAGES * HIDDEN);
    depthwise_kernel<<<grid, THREADS, 0, stream>>>(s->expanded, s->expand_norm,
                                                   in->depthwise_conv_0_weight, s->convolved,
                                                   s->depthwise_parts);
    kp::join_channels<DepthwiseParts>(s->depthwise_parts, in->depthwise_conv_1_weight,
                                      in->depthwise_conv_1_bias, EPS, s->depthwise_norm, stream);

    const kp::MappedAcross<NormRelu6, LEFT, HIDDEN, LEFT, (long long)HIDDEN *LEFT> hidden = {
        {{}, s->convolved}, {s->depthwise_norm}};
    const kp::Along<FILTERS, HIDDEN> project = {{}, in->project_conv_0_weight};
    using StoreProjected = kp::StoreColumns<kp::Same, LEFT, FILTERS, (long long)FILTERS * LEFT>;
    const kp::WithMoments<Project, StoreProjected> projected = {{{}, s->projected},
                                                                s->project_parts};
    kp::product<Project, Tile>(hidden, project, projected, s->split_project, stream);
    kp::join_channels<kp::ProductParts<Project>>(s->project_parts, in->project_conv_1_weight,
                                                 in->project_conv_1_bias, EPS, s->project_norm,
                                                 stream);
    kp::map_rows_kernel<FILTERS, LEFT>
        <<<IMAGES * FILTERS * kp::Chunks<LEFT>::TILES, kp::PASS_MAP_THREADS, 0, stream>>>(
            Norm(), s->projected, s->project_norm, out->out);
}
