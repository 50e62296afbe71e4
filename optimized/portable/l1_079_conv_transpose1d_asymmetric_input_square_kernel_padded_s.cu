// provenance: shipped
/* Transposed convolution over one axis: x [16][32][131072], weight [32][64][3], stride 2,
 * padding 1, dilation 2 -> [16][64][262145].
 *
 * Idea: every other result is zero, and the others are a convolution with 3 neighbours: 96 terms,
 * which tensor cores add up in three passes of TF32 (split_tf32.cuh), 32 at a time. A warp has 16
 * filters, whose weights stay in registers, split. What a lane reads of a channel, four neighbours,
 * is split once for two places and three taps. Its results of two neighbours and the zeros beside
 * them are 16 bytes of a line, and leave from registers: lines are odd, but a warp has the filters
 * whose lines begin alike within 32 bytes, and begins its places as much earlier. Blocks stay, and
 * copy the next places while they multiply.
 * Floor: 1.25 GiB, 313 us; 25.8 GFLOP, three times, 186 us at 415 TFLOP/s, beside it.
 * Measured: 522.4 us on an H200, 60 % of the floor. */
#include "task.h"
#include "hopper.cuh"
#include "split_tf32.cuh"

constexpr int IMAGES = X_DIM0, CHANNELS = X_DIM1, WIDTH = X_DIM2, OUT_WIDTH = OUT_DIM2;
constexpr int FILTERS = CONV1D_TRANSPOSE_WEIGHT_DIM1, TAPS = 3, WARPS = 4, THREADS = WARPS * 32;
constexpr int PLACES = 128, CHUNKS = WIDTH / PLACES + 1; /* of an image; the last has few places */
constexpr int BEFORE = WARPS - 1 + TAPS - 1, READ = BEFORE + PLACES; /* of x, for a chunk */
constexpr int LINE = 161; /* so that a warp's reads lie in different banks */
static_assert(CONV1D_TRANSPOSE_WEIGHT_DIM2 == TAPS && OUT_WIDTH == 2 * WIDTH + 1, "as said above");
static_assert(CHANNELS == 32 && FILTERS == 16 * WARPS, "fragments");
static_assert(WIDTH % PLACES == 0 && READ <= LINE && LINE % 32 == 1, "whole chunks; banks");

/* Results are places in turn: result 2 m - 1 is that of place m, which reads x[m], x[m - 1] and
 * x[m - 2], and 2 m is zero. Places 1 to WIDTH have results. */
using Lines = float[CHANNELS][LINE];

/* The channel that a lane with t = lane % 4 has as depth t + 4 u of a step is 4 step + 2 u behind
 * this. */
__device__ __forceinline__ int first_channel() {
    return threadIdx.x % 4 / 2 * (CHANNELS / 2) + threadIdx.x % 2;
}

/* The filter of row g + 8 h, g = lane / 4. Its line begins 4 (2 warp + 1 + h) bytes behind a
 * multiple of 32, so places from a multiple of 4 less `warp` on begin a multiple of 32 bytes: with
 * the result of the first if h = 0, with a zero before it if h = 1. */
__device__ __forceinline__ int filter_of(int h) {
    return threadIdx.x % 32 / 4 * 8 + (threadIdx.x / 32 * 2 + 1 + h) % 8;
}

/* A warp's left operands. */
using Weights = kp::WarpLeft[CHANNELS / 8][TAPS];

__device__ __forceinline__ void load(Weights &weights, const float *__restrict__ weight) {
#pragma unroll
    for (int i = 0; i < CHANNELS / 8 * TAPS * 4; i++) {
        const int step = i / (TAPS * 4), tap = i / 4 % TAPS, h = i % 2, u = i / 2 % 2;
        const int channel = first_channel() + 4 * step + 2 * u;
        weights[step][tap].set(i % 4,
                               __ldg(weight + (channel * FILTERS + filter_of(h)) * TAPS + tap));
    }
}

/* Starts to copy what a chunk reads. */
__device__ __forceinline__ void fetch(Lines &to, const float *__restrict__ x, int chunk) {
    const int first = chunk % CHUNKS * PLACES - BEFORE, warp = threadIdx.x / 32;
    const float *from = x + (size_t)(chunk / CHUNKS * CHANNELS + warp) * WIDTH;
#pragma unroll 1
    for (int i = threadIdx.x % 32; i < READ; i += 32) {
        const bool inside = (unsigned)(first + i) < WIDTH;
        const float *line = from + (inside ? first + i : 0);
#pragma unroll
        for (int c = 0; c < CHANNELS; c += WARPS, line += WARPS * WIDTH)
            kp::copy_async<4>(kp::shared_address(&to[warp + c][i]), line, inside);
    }
}

/* result[n][2 h + e]: of row g + 8 h and column 2 t + e, n places on; `from` is what the lane's own
 * column, g, reads first. Tensor cores cut off digits as they add, so each tap's big parts are a
 * sum; rests of all taps are two, for the length of the chains. */
__device__ __forceinline__ void multiply(const Weights &weights, const float *from,
                                         float (&result)[2][4]) {
    float rest[2][2][4] = {}, sum[TAPS][2][4] = {};
#pragma unroll
    for (int step = 0; step < CHANNELS / 8; step++) {
        kp::WarpRight x[TAPS + 1];
#pragma unroll
        for (int i = 0; i < 2 * (TAPS + 1); i++)
            x[i / 2].set(i % 2, from[(4 * step + 2 * (i % 2)) * LINE + i / 2]);
#pragma unroll
        for (int tap = 0; tap < TAPS; tap++)
#pragma unroll
            for (int n = 0; n < 2; n++) {
                const kp::WarpLeft &a = weights[step][tap];
                const kp::WarpRight &b = x[n + TAPS - 1 - tap];
                kp::mma_tf32(rest[0][n], a.rest, b.big);
                kp::mma_tf32(rest[1][n], a.big, b.rest);
                kp::mma_tf32(sum[tap][n], a.big, b.big);
            }
    }
#pragma unroll
    for (int n = 0; n < 2; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            result[n][i] =
                (sum[0][n][i] + sum[1][n][i]) + (sum[2][n][i] + (rest[0][n][i] + rest[1][n][i]));
}

/* Stores the results of two places from `place` on, and the zeros before (h = 1) or behind them. */
__device__ __forceinline__ void store(float *line, int h, int place, float first, float second) {
    const float v[4] = {h ? 0.0f : first, h ? first : 0.0f, h ? 0.0f : second, h ? second : 0.0f};
    const int at = 2 * place - 1 - h;
    if ((unsigned)(place - 1) < WIDTH - 1) {
        *(float4 *)(line + at) = make_float4(v[0], v[1], v[2], v[3]);
    } else { /* at an end of the line */
        for (int i = 0; i < 4; i++)
            if ((unsigned)(at + i) < OUT_WIDTH) line[at + i] = v[i];
    }
}

__global__ void __launch_bounds__(THREADS, 3)
    results_kernel(const float *__restrict__ x, const float *__restrict__ weight,
                   float *__restrict__ out) {
    __shared__ Lines lines[2];
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    int turn = 0;
    Weights weights;
    fetch(lines[0], x, blockIdx.x);
    load(weights, weight);
    for (int chunk = blockIdx.x; chunk < IMAGES * CHUNKS; chunk += gridDim.x, turn ^= 1) {
        kp::copies_wait();
        __syncthreads();
        if (chunk + (int)gridDim.x < IMAGES * CHUNKS) fetch(lines[turn ^ 1], x, chunk + gridDim.x);
        float *image = out + (size_t)(chunk / CHUNKS) * FILTERS * OUT_WIDTH;
        /* Column g is 2 (g / 2) + 8 (g % 2) places on, so that four lanes store 64 bytes. */
        const int first = chunk % CHUNKS * PLACES - warp;
        const float *from = lines[turn][first_channel()] + WARPS - 1 - warp + g / 2 * 2 + g % 2 * 8;
#pragma unroll 1
        for (int i = 0; i < PLACES && first + i <= WIDTH + 1; i += 16) {
            float result[2][4];
            multiply(weights, from + i, result);
#pragma unroll
            for (int r = 0; r < 4; r++)
                store(image + (size_t)filter_of(r / 2) * OUT_WIDTH, r / 2,
                      first + i + 2 * t + r % 2 * 8, result[0][r], result[1][r]);
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
    const int blocks = min(3 * processors, IMAGES * CHUNKS);
    results_kernel<<<blocks, THREADS, 0, stream>>>(in->x, in->conv1d_transpose_weight, out->out);
}
