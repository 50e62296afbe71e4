// provenance: shipped
/* A block of a residual network, x [10][3][224][224] -> [10][64][224][224]: 3 x 3 convolution to
 * 64 channels, batch norm, ReLU, 3 x 3 convolution, batch norm; a 1 x 1 convolution of x with
 * batch norm is added, then ReLU. Norms are by the batch's own statistics.
 *
 * Idea: the batch norms of the first convolution and of the shortcut follow from the moments of
 * x's patches (patch_moments.cuh), before anything is multiplied. So the first convolution has
 * norm and ReLU in its epilogue, and the last kernel computes the shortcut and adds it. The second
 * convolution (convolve_lines.cuh) gathers the statistics of what it makes (channel_norm.cuh). All
 * products are at fp32 accuracy.
 * Floor: products in TF32, 298 us; 0.12 GiB, 31 us. This method moves 0.65 GiB, 163 us.
 * Measured: 464 us on an H200, 64 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "channel_norm.cuh"
#include "convolve_lines.cuh"
#include "patch_moments.cuh"

constexpr int FILTERS = CONV1_WEIGHT_DIM0, PIXELS = X_DIM2 * X_DIM3, DEPTH = X_DIM1;
using Width = kp::Axis<X_DIM3, 3, 1, 1>;
using Height = kp::Axis<X_DIM2, 3, 1, 1>;
using First = kp::Convolution<X_DIM0, DEPTH, FILTERS, 1, Width, Height>;
using Second = kp::InLines<kp::Convolution<X_DIM0, FILTERS, FILTERS, 1, Width, Height>>;
using Moments = kp::PatchMoments<X_DIM0, DEPTH, X_DIM2, X_DIM3>;
using Tile = kp::TileFor<First, 64>;
using LineTile = kp::LineTile<Second, 64>;
using Parts = kp::ProductParts<Second>;
static_assert(PIXELS % 4 == 0 && Second::WHOLE, "whole float4; whole strips");

struct NormRelu {
    const kp::ChannelNorm *norm;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        return kp::Relu()(kp::ChannelNorm::of(norm, filter)(v));
    }
};

constexpr int THREADS = 128, EACH = FILTERS % 8 == 0 ? 8 : 1; /* channels a thread */

/* out = relu(norm of y + norm of the shortcut of x). Grid: x the pixels, y the channels, z images;
 * from the end, which was written last. */
__global__ void __launch_bounds__(THREADS, 8)
    finish_kernel(const float *__restrict__ y, const float *__restrict__ x,
                  const float *__restrict__ weight, const kp::ChannelNorm *__restrict__ norm,
                  const kp::ChannelNorm *__restrict__ shortcut_norm, float *__restrict__ out) {
    const int pixel = ((gridDim.x - 1 - blockIdx.x) * THREADS + threadIdx.x) * 4;
    const int first = (gridDim.y - 1 - blockIdx.y) * EACH, image = gridDim.z - 1 - blockIdx.z;
    if (pixel >= PIXELS) return;
    const long long at = ((long long)image * FILTERS + first) * PIXELS + pixel;
    float4 in[DEPTH], v[EACH];
#pragma unroll
    for (int c = 0; c < DEPTH; c++)
        in[c] = __ldg((const float4 *)(x + ((long long)image * DEPTH + c) * PIXELS + pixel));
#pragma unroll
    for (int f = 0; f < EACH; f++) v[f] = __ldg((const float4 *)(y + at + (long long)f * PIXELS));
#pragma unroll
    for (int f = 0; f < EACH; f++) {
        float4 s = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int c = 0; c < DEPTH; c++) {
            const float w = __ldg(weight + (first + f) * DEPTH + c);
            s.x += w * in[c].x, s.y += w * in[c].y, s.z += w * in[c].z, s.w += w * in[c].w;
        }
        const kp::ChannelNorm a = kp::ChannelNorm::of(norm, first + f);
        const kp::ChannelNorm b = kp::ChannelNorm::of(shortcut_norm, first + f);
        const kp::Relu relu;
        *(float4 *)(out + at + (long long)f * PIXELS) =
            make_float4(relu(a(v[f].x) + b(s.x)), relu(a(v[f].y) + b(s.y)),
                        relu(a(v[f].z) + b(s.z)), relu(a(v[f].w) + b(s.w)));
    }
}

/* What scratch holds. */
struct Scratch {
    float between[OUT_ELEMENTS],
        second[OUT_ELEMENTS]; /* what the second convolution reads, makes */
    kp::Centred parts[Parts::COUNT * FILTERS];
    alignas(16) Moments::Sums sums;
    kp::ChannelNorm first_norm[FILTERS], shortcut_norm[FILTERS], second_norm[FILTERS];
    alignas(16) char split[kp::split_bytes<Second, LineTile>()];
};

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Scratch *s = (Scratch *)scratch;
    const double eps = kp::BATCH_NORM_EPS;
    kp::sum_patches<Moments>(in->x, &s->sums, stream);
    kp::norm_by_patches<Moments, 3, FILTERS>(&s->sums, in->conv1_weight, in->bn1_weight,
                                             in->bn1_bias, eps, s->first_norm, stream);
    kp::norm_by_patches<Moments, 1, FILTERS>(&s->sums, in->downsample_0_weight,
                                             in->downsample_1_weight, in->downsample_1_bias, eps,
                                             s->shortcut_norm, stream);
    kp::convolve<First, Tile>(in->x, in->conv1_weight, s->between, NormRelu{s->first_norm},
                              s->split, stream);
    const kp::WithMoments<Second, kp::StorePixels<kp::Same, Second>> store = {{{}, s->second},
                                                                              s->parts};
    kp::product<Second, LineTile>(kp::Patches<Second>{{}, s->between},
                                  kp::Filters<Second>{in->conv2_weight}, store, s->split, stream);
    kp::join_channels<Parts>(s->parts, in->bn2_weight, in->bn2_bias, eps, s->second_norm, stream);
    const dim3 grid((PIXELS / 4 + THREADS - 1) / THREADS, FILTERS / EACH, X_DIM0);
    finish_kernel<<<grid, THREADS, 0, stream>>>(s->second, in->x, in->downsample_0_weight,
                                                s->second_norm, s->shortcut_norm, out->out);
}
