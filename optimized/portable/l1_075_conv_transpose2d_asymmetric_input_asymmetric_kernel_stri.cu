// provenance: shipped
/* Transposed convolution over two axes: x [16][32][128][256], weight [32][16][3][5], stride 2
 * x 3, padding 1 x 2, dilation 2 x 1, 4 groups -> [16][64][257][766].
 *
 * Idea: every other row of results is zero, and the others are of 24 or 48 terms, which tensor
 * cores add up in three passes of TF32 (split_tf32.cuh): a tap is one step, of the 8 channels of a
 * group. A warp has 8 filters, whose weights stay in registers, split, and 16 places at a time; a
 * row of x, which three rows of results read, is in shared memory for them. Results of 64 places
 * go through shared memory, so that stores end where cache lines do, as the row of zeros behind
 * them. Blocks stay, and copy the next row while they multiply.
 * Floor: 0.81 GiB, 204 us; 8.1 GFLOP, three times, 59 us at 415 TFLOP/s, beside it.
 * Measured: 307.4 us on an H200, 66 % of the floor. */
#include "task.h"
#include "hopper.cuh"
#include "split_tf32.cuh"

constexpr int IMAGES = X_DIM0, GROUPS = 4, CHANNELS = X_DIM1 / GROUPS, H = X_DIM2, W = X_DIM3;
constexpr int FILTERS = CONV_TRANSPOSE2D_WEIGHT_DIM1, OUT_H = OUT_DIM2, OUT_W = OUT_DIM3;
constexpr int TAPS_Y = CONV_TRANSPOSE2D_WEIGHT_DIM2, TAPS_X = CONV_TRANSPOSE2D_WEIGHT_DIM3;
constexpr int STRIDE = 3, WARPS = 4, THREADS = WARPS * 32;
static_assert(CHANNELS == 8 && FILTERS == 16 && TAPS_Y == 3 && TAPS_X == 5, "fragments");
static_assert(OUT_H == 2 * H + 1 && OUT_W == STRIDE * W - 2, "as said below");

/* In turn m of an image, rows 2 m - 1, of what rows m, m - 1 and m - 2 of x give, and 2 m, of
 * zeros, are written. There is no row -1, and no row H of x: the first of an image reads no row of
 * the one before. Result 3 q + r - 2 of a row is by tap r of place q, and by tap r + 3 of q - 1. */
constexpr int TURNS = IMAGES * (H + 1);

constexpr int SLOTS = 4; /* rows of x: three that are read, and one that comes */
constexpr int BEFORE = 4, LINE = BEFORE + W + 4;
constexpr int PLACES = 64, PAIRS = STRIDE * PLACES / 2, STAGE = 2 * PAIRS + 12;
static_assert(W % PLACES == 0 && LINE % 32 == 8 && STAGE % 16 == 12, "whole pieces; banks");

struct Shared {
    float x[SLOTS][CHANNELS][LINE]; /* zero before place 0 */
    float stage[WARPS][8][STAGE];   /* results of a warp's filters, at PLACES places */
};

/* A warp's right operands: filter g = lane / 4 of its 8. */
using Weights = kp::WarpRight[TAPS_Y][TAPS_X];

__device__ __forceinline__ void load(Weights &weights, const float *__restrict__ weight,
                                     int filter) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < TAPS_Y * TAPS_X * 2; i++) {
        const int tap = i / 2, channel = blockIdx.y * CHANNELS + t + 4 * (i % 2);
        weights[tap / TAPS_X][tap % TAPS_X].set(
            i % 2, __ldg(weight + (channel * FILTERS + filter + g) * TAPS_Y * TAPS_X + tap));
    }
}

/* Starts to copy the row of x that a turn is the first to read, or zeros. */
__device__ __forceinline__ void fetch(Shared &s, const float *__restrict__ x, int turn) {
    const int row = turn % (H + 1), image = turn / (H + 1);
    const bool inside = turn >= 0 && row < H;
    if (inside) x += ((size_t)(image * GROUPS + blockIdx.y) * CHANNELS * H + row) * W;
#pragma unroll
    for (int i = threadIdx.x; i < CHANNELS * W / 4; i += THREADS) {
        const int c = i / (W / 4), place = i % (W / 4) * 4;
        kp::copy_async<16>(kp::shared_address(&s.x[turn & (SLOTS - 1)][c][BEFORE + place]),
                           x + c * H * W + place, inside);
    }
}

/* result[r][2 h + e]: r of place `place` + g + 8 h, of filter 2 t + e. Tensor cores cut off digits
 * as they add, so the big parts of each tap along x are a sum, and rests are others. */
__device__ __forceinline__ void multiply(const Weights &weights, const Shared &s, int turn,
                                         int place, float (&result)[STRIDE][4]) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    float sum[TAPS_X][4] = {}, rest[STRIDE][4] = {};
#pragma unroll
    for (int ky = 0; ky < TAPS_Y; ky++) {
        const float *line = &s.x[(turn - ky) & (SLOTS - 1)][t][BEFORE + place + g];
#pragma unroll
        for (int kx = 0; kx < TAPS_X; kx += STRIDE) {
            kp::WarpLeft x;
#pragma unroll
            for (int i = 0; i < 4; i++) x.set(i, line[i / 2 * 4 * LINE + i % 2 * 8 - kx / STRIDE]);
#pragma unroll
            for (int r = 0; r < STRIDE && kx + r < TAPS_X; r++) {
                const kp::WarpRight &b = weights[ky][kx + r];
                kp::mma_tf32(rest[r], x.rest, b.big);
                kp::mma_tf32(rest[r], x.big, b.rest);
                kp::mma_tf32(sum[kx + r], x.big, b.big);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < STRIDE * 4; i++) {
        const int r = i / 4, second = r + STRIDE;
        result[r][i % 4] = sum[r][i % 4] + rest[r][i % 4];
        if (second < TAPS_X) result[r][i % 4] += sum[second][i % 4];
    }
}

/* Stores PAIRS pairs by a warp, the first only if `all`: stores end where cache lines do. */
template <class F>
__device__ __forceinline__ void store_pairs(float *to, bool all, const F &value) {
    const int before = (int)((size_t)to / sizeof(float2) % 16);
    int i = (int)(threadIdx.x % 32) - before;
#pragma unroll
    for (int k = 0; k < (PAIRS + 15 + 31) / 32; k++, i += 32)
        if (i >= !all && i < PAIRS) ((float2 *)to)[i] = value(i);
}

__global__ void __launch_bounds__(THREADS, 3)
    results_kernel(const float *__restrict__ x, const float *__restrict__ weight,
                   float *__restrict__ out) {
    extern __shared__ __align__(16) unsigned char memory[];
    Shared &s = *(Shared *)memory;
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const int filter = warp % 2 * 8, end = (int)((blockIdx.x + 1) * TURNS / gridDim.x);
    int turn = (int)(blockIdx.x * TURNS / gridDim.x);
    float(&stage)[8][STAGE] = s.stage[warp];
    Weights weights;
    for (int i = threadIdx.x; i < SLOTS * CHANNELS; i += THREADS)
        s.x[i / CHANNELS][i % CHANNELS][BEFORE - 1] = 0.0f;
    for (int before = 2; before >= 0; before--) fetch(s, x, turn - before);
    load(weights, weight, filter);
    for (; turn < end; turn++) {
        kp::copies_wait();
        __syncthreads();
        if (turn + 1 < end) fetch(s, x, turn + 1);
        const int m = turn % (H + 1), plane = turn / (H + 1) * GROUPS + blockIdx.y;
        for (int place = warp / 2 * PLACES; place < W; place += WARPS / 2 * PLACES) {
#pragma unroll 1
            for (int i = 0; i < PLACES && m > 0; i += 16) {
                float result[STRIDE][4];
                multiply(weights, s, turn, place + i, result);
#pragma unroll
                for (int k = 0; k < STRIDE * 4; k++)
                    stage[2 * t + k % 2][(i + g + k % 4 / 2 * 8) * STRIDE + k / 4] =
                        result[k / 4][k % 4];
            }
            __syncwarp();
            long long to = (long long)(plane * FILTERS + filter) * OUT_H * OUT_W +
                           (2 * m - 1) * OUT_W + STRIDE * place - 2;
#pragma unroll 1
            for (int f = 0; f < 8; f++, to += OUT_H * OUT_W) {
                if (m > 0)
                    store_pairs(out + to, place,
                                [&](int i) { return *(const float2 *)&stage[f][2 * i]; });
                store_pairs(out + to + OUT_W, place, [](int) { return make_float2(0.0f, 0.0f); });
            }
            __syncwarp();
        }
    }
}

extern "C" size_t scratch_bytes(void) {
    return 0;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    int device = 0, processors = 132;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaFuncSetAttribute(results_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         sizeof(Shared));
    const int blocks = min(3 * processors / GROUPS, TURNS);
    results_kernel<<<dim3(blocks, GROUPS), THREADS, sizeof(Shared), stream>>>(
        in->x, in->conv_transpose2d_weight, out->out);
}
