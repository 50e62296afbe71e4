/* swin_rows.cuh: what lies between the products of the Swin networks (swin.cuh): rows of features,
 * [place][channel], that are added up, normalised and added to; patches at the start and the mean
 * at the end; sums over the places of a window.
 *
 * Idea: a row is in the registers of 8 or 32 lanes from its first load to its last store; what a
 * layer left in parts of the depth is added up by the kernel that normalises it.
 * What limits it: the bytes, most of which are in the L2 cache. Reaches: see l3_029 (no share of
 * its own was measured). */
#pragma once
#include "states.cuh"

namespace kp {

/* ---- rows ---- */

__device__ __forceinline__ float4 add_fours(const float4 &a, const float4 &b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/* A row of WIDTH values that LANES lanes hold, a float4 each in turn. */
template <int WIDTH> struct Row {
    static constexpr int LANES = WIDTH % 128 == 0 ? 32 : 8, FOURS = WIDTH / LANES / 4;
    static constexpr int OF_WARP = 32 / LANES;
    static_assert(WIDTH % (LANES * 4) == 0, "whole float4");
    float4 v[FOURS];

    static __device__ __forceinline__ int own(int j) { return j * LANES + threadIdx.x % LANES; }

    template <class F> __device__ __forceinline__ void load(const F &f) {
#pragma unroll
        for (int j = 0; j < FOURS; j++) v[j] = f(own(j));
    }
    template <class F> __device__ __forceinline__ void add(const F &f) {
#pragma unroll
        for (int j = 0; j < FOURS; j++) v[j] = add_fours(v[j], f(own(j)));
    }
    template <class F> __device__ __forceinline__ void store(const F &f) const {
#pragma unroll
        for (int j = 0; j < FOURS; j++) f(own(j), v[j]);
    }
    /* (v - mean) / sqrt(variance + 1e-5) * weight + bias. All lanes of the warp call it. */
    __device__ __forceinline__ void norm(const float *weight, const float *bias) {
        constexpr float SHARE = 1.0f / WIDTH;
        float sum = 0.0f, square = 0.0f;
#pragma unroll
        for (const float4 &f : v) /* shares, whose sum does not overflow */
            sum += (f.x * SHARE + f.y * SHARE) + (f.z * SHARE + f.w * SHARE);
        const float mean = lanes_sum<LANES>(sum);
#pragma unroll
        for (float4 &f : v) {
            f.x -= mean, f.y -= mean, f.z -= mean, f.w -= mean;
            square += (f.x * f.x + f.y * f.y) + (f.z * f.z + f.w * f.w);
        }
        const float scale = 1.0f / sqrtf(lanes_sum<LANES>(square) * SHARE + 1e-5f);
#pragma unroll
        for (int j = 0; j < FOURS; j++) {
            const float4 w = __ldg((const float4 *)weight + own(j));
            const float4 b = __ldg((const float4 *)bias + own(j));
            v[j] = make_float4(v[j].x * scale * w.x + b.x, v[j].y * scale * w.y + b.y,
                               v[j].z * scale * w.z + b.z, v[j].w * scale * w.w + b.w);
        }
    }
};

/* parts[PARTS][PLACES][C] added up, plus bias and residual unless they are null. */
template <int PLACES, int C, int PARTS> struct PartSum {
    const float *parts, *bias, *residual;
    __device__ __forceinline__ float4 at(int place, int i) const {
        const size_t at = (size_t)place * (C / 4) + i;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int p = 0; p < PARTS; p++)
            sum = add_fours(sum, ((const float4 *)parts)[at + (size_t)p * PLACES * (C / 4)]);
        if (bias) sum = add_fours(sum, __ldg((const float4 *)bias + i));
        if (residual) sum = add_fours(sum, ((const float4 *)residual)[at]);
        return sum;
    }
};

constexpr int ROW_WARPS = 4; /* of a block */
template <int WIDTH> constexpr int row_blocks(int rows) {
    return (rows + ROW_WARPS * Row<WIDTH>::OF_WARP - 1) / (ROW_WARPS * Row<WIDTH>::OF_WARP);
}
/* The thread's row. */
template <int WIDTH> __device__ __forceinline__ int own_row() {
    return (blockIdx.x * ROW_WARPS * 32 + threadIdx.x) / Row<WIDTH>::LANES;
}

/* x = the sum, unless null; y = its layer norm, plus residual unless that is null. With SIDE, rows
 * are places of squares of SIDE x SIDE, and y has the four of each square of 2 x 2 in a row: those
 * of its first column before those of its second. */
template <int SIDE, int PLACES, int C, int PARTS>
__global__ void __launch_bounds__(32 * ROW_WARPS)
    norm_sum_kernel(PartSum<PLACES, C, PARTS> sum, float *x, const float *weight, const float *bias,
                    const float *residual, float *y) {
    const int place = own_row<C>(), from = min(place, PLACES - 1);
    Row<C> row;
    row.load([&](int i) { return sum.at(from, i); });
    if (x && place < PLACES)
        row.store([&](int i, const float4 &v) { ((float4 *)x)[place * (C / 4) + i] = v; });
    row.norm(weight, bias);
    if (residual) row.add([&](int i) { return ((const float4 *)residual)[from * (C / 4) + i]; });
    int to = place;
    if (SIDE) {
        constexpr int WHOLE = SIDE ? SIDE : 1, HALF = WHOLE > 1 ? WHOLE / 2 : 1;
        const int px = place % WHOLE, py = place / WHOLE; /* of rows of all images */
        to = (py / 2 * HALF + px / 2) * 4 + px % 2 * 2 + py % 2;
    }
    if (place < PLACES)
        row.store([&](int i, const float4 &v) { ((float4 *)y)[to * (C / 4) + i] = v; });
}

template <int SIDE = 0, int PLACES, int C, int PARTS>
static void norm_sum(const PartSum<PLACES, C, PARTS> &sum, float *x, const float *weight,
                     const float *bias, const float *residual, float *y, cudaStream_t stream) {
    norm_sum_kernel<SIDE>
        <<<row_blocks<C>(PLACES), 32 * ROW_WARPS, 0, stream>>>(sum, x, weight, bias, residual, y);
}

/* ---- ends ---- */

constexpr int PATCH_SIDE = 4, PATCH_WARPS = 7, PATCHES_OF_WARP = 8;

/* x = layer norm of what a convolution by patches of 4 x 4 gives: images [][CHANNELS][H][W], weight
 * [C][CHANNELS][4][4]. A block has a row of patches, a warp eight of it, a lane every 32nd feature.
 */
template <int CHANNELS, int H, int W, int C>
__global__ void __launch_bounds__(32 * PATCH_WARPS)
    patch_kernel(const float *__restrict__ images, const float *__restrict__ weight,
                 const float *__restrict__ bias, const float *__restrict__ norm_weight,
                 const float *__restrict__ norm_bias, float *__restrict__ x) {
    constexpr int DEPTH = CHANNELS * 16, LINES = CHANNELS * 4, EACH = C / 32, THREADS = 224;
    static_assert(C % 32 == 0 && W == 4 * PATCH_WARPS * PATCHES_OF_WARP && H % 4 == 0, "a row");
    __shared__ float weights[DEPTH][C + 1];
    __shared__ __align__(16) float lines[LINES][W];
    const int y = blockIdx.x % (H / 4), image = blockIdx.x / (H / 4), lane = threadIdx.x % 32;
    for (int i = threadIdx.x; i < DEPTH * C; i += THREADS)
        weights[i % DEPTH][i / DEPTH] = weight[i];
    for (int i = threadIdx.x; i < LINES * W / 4; i += THREADS) {
        const int line = i / (W / 4), channel = line / 4;
        *(float4 *)&lines[line][i % (W / 4) * 4] = __ldg(
            (const float4 *)(images + ((image * CHANNELS + channel) * H + y * 4 + line % 4) * W) +
            i % (W / 4));
    }
    __syncthreads();
    const int first = threadIdx.x / 32 * PATCHES_OF_WARP; /* its patches */
    float sum[PATCHES_OF_WARP][EACH] = {};
#pragma unroll 2
    for (int line = 0; line < LINES; line++) {
        float4 pixels[PATCHES_OF_WARP];
#pragma unroll
        for (int p = 0; p < PATCHES_OF_WARP; p++)
            pixels[p] = *(const float4 *)&lines[line][(first + p) * 4];
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const float *w = &weights[line * 4][lane + 32 * e];
#pragma unroll
            for (int p = 0; p < PATCHES_OF_WARP; p++) {
                const float4 f = pixels[p];
                sum[p][e] +=
                    f.x * w[0] + f.y * w[C + 1] + f.z * w[2 * (C + 1)] + f.w * w[3 * (C + 1)];
            }
        }
    }
#pragma unroll
    for (int p = 0; p < PATCHES_OF_WARP; p++) {
        float mean = 0.0f, square = 0.0f;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            sum[p][e] += __ldg(bias + lane + 32 * e);
            mean += sum[p][e] * (1.0f / C);
        }
        mean = lanes_sum(mean);
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            sum[p][e] -= mean;
            square += sum[p][e] * sum[p][e];
        }
        const float scale = 1.0f / sqrtf(lanes_sum(square) * (1.0f / C) + 1e-5f);
#pragma unroll
        for (int e = 0; e < EACH; e++)
            x[(size_t)(blockIdx.x * (W / 4) + first + p) * C + lane + 32 * e] =
                sum[p][e] * scale * __ldg(norm_weight + lane + 32 * e) +
                __ldg(norm_bias + lane + 32 * e);
    }
}

/* out[image][channel] = the mean of y over PLACES places. A block an image, 32 channels. */
template <int PLACES, int C>
__global__ void __launch_bounds__(256)
    mean_kernel(const float *__restrict__ y, float *__restrict__ out) {
    __shared__ float part[8][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, channel = blockIdx.x * 32 + lane;
    float sum = 0.0f;
#pragma unroll 4
    for (int p = warp; p < PLACES; p += 8)
        sum += y[((size_t)blockIdx.y * PLACES + p) * C + channel] * (1.0f / PLACES);
    part[warp][lane] = sum;
    __syncthreads();
    if (warp > 0) return;
    for (int i = 1; i < 8; i++) sum += part[i][lane];
    out[blockIdx.y * C + channel] = sum;
}

/* ---- windows ---- */

/* Windows of 7 x 7 places; heads of 32 features; of a row of a window's weights, of which what is
 * beyond 49 is zero. */
constexpr int WINDOW = 7, IN_WINDOW = WINDOW * WINDOW, HEAD = 32, WINDOW_PITCH = 52;

/* The products of a window: sums over the places of `in` for one row of the window, four features.
 */
template <int WIDTH>
__device__ __forceinline__ void mix_window(const float *weight, const float *in,
                                           float4 (&sum)[WINDOW]) {
#pragma unroll 1
    for (int q = 0; q < WINDOW_PITCH; q += 4) {
        float4 f[4];
#pragma unroll
        for (int e = 0; e < 4; e++) f[e] = *(const float4 *)(in + (q + e) * WIDTH);
#pragma unroll
        for (int j = 0; j < WINDOW; j++) {
            const float4 w = *(const float4 *)(weight + j * WINDOW_PITCH + q);
            const float by[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
            for (int e = 0; e < 4; e++) {
                sum[j].x += by[e] * f[e].x, sum[j].y += by[e] * f[e].y;
                sum[j].z += by[e] * f[e].z, sum[j].w += by[e] * f[e].w;
            }
        }
    }
}

} // namespace kp
