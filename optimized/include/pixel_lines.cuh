/* pixel_lines.cuh: small images as lines of 32 channels, and batch norm by the batch's own
 * statistics of them.
 *
 * Idea: activations are [group of 32 channels][line], a line being the 32 channels of a pixel, 128
 * bytes, and images lie one behind the other with an empty column and an empty row after each: so
 * what a 3 x 3 filter's tap reads is the same distance away for every pixel, also at edges, and 256
 * lines in a row are a tile, however small images are. Nobody writes empty lines, nor reads them.
 * What makes the values of a group (keep_kernel) also makes the moments of its channels, in at most
 * 128 runs; who needs the norm of a new group joins these, in double, always in the same order.
 *
 * What limits it: bytes; for small images, the launches. Reaches: see l3_015 (no share of its own
 * was measured). */
#pragma once
#include "activations.cuh"
#include "channel_norm.cuh"
#include "reduce.cuh"

namespace kp {

constexpr int GROUP = 32; /* channels of a line */

/* Square images as lines. */
template <int IMAGES_, int SIDE_> struct Lines {
    static constexpr int IMAGES = IMAGES_, SIDE = SIDE_, WIDE = SIDE + 1;
    static constexpr int PIXELS = IMAGES * SIDE * SIDE, COUNT = IMAGES * WIDE * WIDE;
    static constexpr int TILES = (COUNT + TILE_M - 1) / TILE_M;
    static constexpr size_t WORDS = (size_t)COUNT * GROUP;       /* of a group */
    static constexpr size_t PART_WORDS = TILES * TILE_M * GROUP; /* of a group's part of a sum */
    /* Pixels whose moments are one part. */
    static constexpr int run(int size) {
        return (PIXELS + size - 1) / size > 128 ? run(2 * size) : size;
    }
    static constexpr int RUN = run(8), RUNS = (PIXELS + RUN - 1) / RUN;
    static __device__ __forceinline__ int line(int pixel) {
        return (pixel / (SIDE * SIDE) * WIDE + pixel / SIDE % SIDE) * WIDE + pixel % SIDE;
    }
    static __device__ __forceinline__ bool inside(int line) {
        return line >= 0 && line < COUNT && line % WIDE < SIDE && line / WIDE % WIDE < SIDE;
    }
};

/* ---- statistics ---- */

/* to[channel] = the norm to mean 0 and variance 1 that the moments of a group say, where both lie
 * in shared memory, as `room` for THREADS / 16 lines of doubles does. */
template <class L, int THREADS>
__device__ __forceinline__ void join_group(const Centred *__restrict__ moments, float eps,
                                           double *room, ChannelNorm *to) {
    constexpr int WARPS = THREADS / 32;
    const int channel = threadIdx.x % 32, warp = threadIdx.x / 32;
    double sum = 0, square = 0;
#pragma unroll 8
    for (int r = warp; r < L::RUNS; r += WARPS) {
        const float2 c = __ldg((const float2 *)moments + r * GROUP + channel);
        const bool last = r == L::RUNS - 1;
        sum += c.x;
        square += c.y + (double)c.x * c.x *
                            (last ? 1.0 / (L::PIXELS - (L::RUNS - 1) * L::RUN) : 1.0 / L::RUN);
    }
    room[warp * GROUP + channel] = sum, room[(WARPS + warp) * GROUP + channel] = square;
    __syncthreads();
    if (warp == 0) {
        sum = square = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++)
            sum += room[w * GROUP + channel], square += room[(WARPS + w) * GROUP + channel];
        const double mean = sum / L::PIXELS, variance = square / L::PIXELS - mean * mean;
        to[channel] = {(float)mean, (float)(1.0 / sqrt((variance < 0.0 ? 0.0 : variance) + eps)),
                       0.0f};
    }
    __syncthreads();
}

/* A block a group. */
template <class L>
__global__ void __launch_bounds__(256)
    join_kernel(const Centred *moments, float eps, ChannelNorm *standard) {
    __shared__ double room[2 * 256];
    __shared__ ChannelNorm norm[GROUP];
    join_group<L, 256>(moments + (long long)blockIdx.x * L::RUNS * GROUP, eps, room, norm);
    if (threadIdx.x < GROUP) standard[blockIdx.x * GROUP + threadIdx.x] = norm[threadIdx.x];
}

/* Batch norm and ReLU of four channels. */
struct FourNorms {
    ChannelNorm of[4];
    __device__ __forceinline__ FourNorms(const ChannelNorm *standard, const float *weight,
                                         const float *bias) {
        const float4 w = __ldg((const float4 *)weight), b = __ldg((const float4 *)bias);
#pragma unroll
        for (int c = 0; c < 4; c++) of[c] = standard[c];
        of[0].scale *= w.x, of[1].scale *= w.y, of[2].scale *= w.z, of[3].scale *= w.w;
        of[0].bias = b.x, of[1].bias = b.y, of[2].bias = b.z, of[3].bias = b.w;
    }
    __device__ __forceinline__ float4 operator()(const float4 &v) const {
        const Relu relu;
        return make_float4(relu(of[0](v.x)), relu(of[1](v.y)), relu(of[2](v.z)), relu(of[3](v.w)));
    }
};

/* Eight threads a line, of 256: the sum of each channel over the block's lines, to all. */
__device__ __forceinline__ float4 sum_lines(float4 v) {
    __shared__ float4 part[8][8];
    const int piece = threadIdx.x % 8;
#pragma unroll
    for (int step = 8; step < 32; step *= 2) {
        v.x += __shfl_xor_sync(0xffffffffu, v.x, step);
        v.y += __shfl_xor_sync(0xffffffffu, v.y, step);
        v.z += __shfl_xor_sync(0xffffffffu, v.z, step);
        v.w += __shfl_xor_sync(0xffffffffu, v.w, step);
    }
    __syncthreads(); /* an earlier call may still be reading part */
    if (threadIdx.x % 32 < 8) part[threadIdx.x / 32][piece] = v;
    __syncthreads();
    v = part[0][piece];
#pragma unroll
    for (int w = 1; w < 8; w++) {
        const float4 o = part[w][piece];
        v.x += o.x, v.y += o.y, v.z += o.z, v.w += o.w;
    }
    return v;
}

/* Keeps results: out[group][line] = from, and moments[group][run]. Eight threads have a line; where
 * runs are short, SHARE times as many, each a share of what is added up. Grid: runs, groups. A
 * Source: float4 at(pixel, line, group, piece of a line, share), of SHARE shares. */
template <class L, class Source>
__global__ void __launch_bounds__(256, 2)
    keep_kernel(Source from, float *__restrict__ out, Centred *__restrict__ moments) {
    constexpr int SHARE = L::RUN < 32 ? 32 / L::RUN : 1, EACH = L::RUN < 32 ? 1 : L::RUN / 32;
    const int piece = threadIdx.x % 8, slot = threadIdx.x / 8, group = blockIdx.y;
    const int first = blockIdx.x * L::RUN + slot / SHARE;
    float4 v[EACH], sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f), square = sum;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int pixel = first + 32 * i, line = L::line(pixel);
        v[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (pixel < L::PIXELS)
            v[i] = from.template at<L, SHARE>(pixel, line, group, piece, slot % SHARE);
#pragma unroll
        for (int step = 8; step < 8 * SHARE; step *= 2) {
            v[i].x += __shfl_xor_sync(0xffffffffu, v[i].x, step);
            v[i].y += __shfl_xor_sync(0xffffffffu, v[i].y, step);
            v[i].z += __shfl_xor_sync(0xffffffffu, v[i].z, step);
            v[i].w += __shfl_xor_sync(0xffffffffu, v[i].w, step);
        }
        if (pixel >= L::PIXELS || slot % SHARE) continue;
        *(float4 *)(out + group * L::WORDS + line * GROUP + piece * 4) = v[i];
        sum.x += v[i].x, sum.y += v[i].y, sum.z += v[i].z, sum.w += v[i].w;
    }
    sum = sum_lines(sum);
    const float share = 1.0f / min(L::RUN, L::PIXELS - (int)blockIdx.x * L::RUN);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        if (first + 32 * i >= L::PIXELS || slot % SHARE) continue;
        const float x = v[i].x - sum.x * share, y = v[i].y - sum.y * share;
        const float z = v[i].z - sum.z * share, w = v[i].w - sum.w * share;
        square.x += x * x, square.y += y * y, square.z += z * z, square.w += w * w;
    }
    square = sum_lines(square);
    if (slot) return;
    float4 *to = (float4 *)(moments + ((group * L::RUNS + blockIdx.x) * GROUP + piece * 4));
    to[0] = make_float4(sum.x, square.x, sum.y, square.y);
    to[1] = make_float4(sum.z, square.z, sum.w, square.w);
}

/* ---- means ---- */

/* out = the means of 2 x 2 of relu(norm(x)). Grid: 32 lines, groups. */
template <class L, class To>
__global__ void __launch_bounds__(256)
    halve_kernel(const float *__restrict__ x, const ChannelNorm *__restrict__ standard,
                 const float *__restrict__ weight, const float *__restrict__ bias,
                 float *__restrict__ out) {
    const int piece = threadIdx.x % 8, pixel = blockIdx.x * 32 + threadIdx.x / 8;
    const int channel = blockIdx.y * GROUP + piece * 4;
    if (pixel >= To::PIXELS) return;
    const FourNorms norms(standard + channel, weight + channel, bias + channel);
    const int image = pixel / (To::SIDE * To::SIDE), y = pixel / To::SIDE % To::SIDE;
    const int line = (image * L::WIDE + 2 * y) * L::WIDE + pixel % To::SIDE * 2;
    const float4 *from = (const float4 *)(x + blockIdx.y * L::WORDS) + line * 8 + piece;
    const float4 a = norms(__ldg(from)), b = norms(__ldg(from + 8));
    from += L::WIDE * 8;
    const float4 c = norms(__ldg(from)), d = norms(__ldg(from + 8));
    *(float4 *)(out + blockIdx.y * To::WORDS + To::line(pixel) * GROUP + piece * 4) =
        make_float4(((a.x + b.x) + (c.x + d.x)) * 0.25f, ((a.y + b.y) + (c.y + d.y)) * 0.25f,
                    ((a.z + b.z) + (c.z + d.z)) * 0.25f, ((a.w + b.w) + (c.w + d.w)) * 0.25f);
}

/* means[image][channel] = the mean of relu(norm(x)). Grid: groups, images. */
template <class L>
__global__ void __launch_bounds__(256)
    means_kernel(const float *__restrict__ x, const ChannelNorm *__restrict__ standard,
                 const float *__restrict__ weight, const float *__restrict__ bias,
                 float *__restrict__ means) {
    const int piece = threadIdx.x % 8, channel = blockIdx.x * GROUP + piece * 4;
    const FourNorms norms(standard + channel, weight + channel, bias + channel);
    const float4 *from = (const float4 *)(x + blockIdx.x * L::WORDS) + piece;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int i = threadIdx.x / 8; i < L::SIDE * L::SIDE; i += 32) {
        const float4 v = norms(__ldg(from + L::line(blockIdx.y * L::SIDE * L::SIDE + i) * 8));
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    sum = sum_lines(sum);
    constexpr float SHARE = 1.0f / (L::SIDE * L::SIDE);
    if (threadIdx.x < 8)
        *(float4 *)(means + blockIdx.y * gridDim.x * GROUP + channel) =
            make_float4(sum.x * SHARE, sum.y * SHARE, sum.z * SHARE, sum.w * SHARE);
}

} // namespace kp
