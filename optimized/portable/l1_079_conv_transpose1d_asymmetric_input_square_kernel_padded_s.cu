// provenance: shipped
/* Transposed convolution over one axis: x [16][32][131072], weight [32][64][3], stride 2,
 * padding 1, dilation 2 -> [16][64][262145].
 *
 * Idea: every other result is zero, and the others are a convolution with 3 neighbours: 96 terms,
 * so few that a tile of a product spends more on its ends than on its sums. Here sums are in fp32:
 * a block has 256 places of an image and all filters, a warp 16 filters of 128, a lane four. A line
 * of 256 results goes through shared memory, and leaves as a whole.
 * Floor: 12.9 G FMA, 506 us at 51 TFLOP/s; 1.25 GiB, 313 us, beside it.
 * Measured on an H200: 1003 us, 50 % of the floor; 620 predicted. */
#include "task.h"
#include "line_stores.cuh"

constexpr int IMAGES = X_DIM0, CHANNELS = X_DIM1, WIDTH = X_DIM2, OUT_WIDTH = OUT_DIM2;
constexpr int FILTERS = CONV1D_TRANSPOSE_WEIGHT_DIM1, TAPS = 3, OF_WARP = 16;
constexpr int OF_LANE = 4, WIDE = 32 * OF_LANE, PLACES = 2 * WIDE; /* of a warp and a block */
constexpr int WARPS = FILTERS / OF_WARP * 2, THREADS = WARPS * 32;
static_assert(CONV1D_TRANSPOSE_WEIGHT_DIM2 == TAPS && OUT_WIDTH == 2 * WIDTH + 1, "as said above");
static_assert(FILTERS % OF_WARP == 0 && WARPS <= 8, "a block has all filters");

/* Results are places in turn: result 2 m - 1 is that of place m, which reads x[m], x[m - 1] and
 * x[m - 2], and 2 m is zero. Places 1 to WIDTH have results. */
struct Shared {
    float x[CHANNELS][PLACES + 4]; /* from x[first - 2] on */
    float weight[CHANNELS][FILTERS][TAPS];
    float line[WARPS][WIDE]; /* results but for zeros */
};

using Sums = float[OF_WARP][OF_LANE];

/* Adds up what filters from `filter` on have at places from `place` on, of the block's. */
__device__ __forceinline__ void multiply(Sums &sums, const Shared &s, int filter, int place) {
#pragma unroll 1
    for (int c = 0; c < CHANNELS; c++) {
        const float4 four = *(const float4 *)&s.x[c][place];
        const float2 two = *(const float2 *)&s.x[c][place + 4];
        const float x[OF_LANE + TAPS - 1] = {four.x, four.y, four.z, four.w, two.x, two.y};
#pragma unroll
        for (int f = 0; f < OF_WARP; f += 4) {
            float w[4 * TAPS];
#pragma unroll
            for (int i = 0; i < 4 * TAPS; i += 4)
                *(float4 *)&w[i] = *(const float4 *)(&s.weight[c][filter + f][0] + i);
#pragma unroll
            for (int i = 0; i < 4 * TAPS; i++)
#pragma unroll
                for (int p = 0; p < OF_LANE; p++)
                    sums[f + i / TAPS][p] += w[i] * x[p + TAPS - 1 - i % TAPS];
        }
    }
}

__global__ void __launch_bounds__(THREADS, 2)
    results_kernel(const float *__restrict__ x, const float *__restrict__ weight,
                   float *__restrict__ out) {
    extern __shared__ __align__(16) unsigned char memory[];
    Shared &s = *(Shared *)memory;
    constexpr int BLOCKS = (WIDTH + PLACES - 1) / PLACES, READ = PLACES + TAPS - 1;
    const int image = blockIdx.x / BLOCKS, first = 1 + blockIdx.x % BLOCKS * PLACES;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int filter = warp / 2 * OF_WARP, from = warp % 2 * WIDE; /* of the block's places */
#pragma unroll 8
    for (int i = threadIdx.x; i < CHANNELS * READ; i += THREADS) {
        const int c = i / READ, at = first - (TAPS - 1) + i % READ;
        const bool inside = at >= 0 && at < WIDTH;
        s.x[c][i % READ] = inside ? __ldg(x + (size_t)(image * CHANNELS + c) * WIDTH + at) : 0.0f;
    }
    for (int i = threadIdx.x; i < CHANNELS * FILTERS * TAPS / 4; i += THREADS)
        ((float4 *)s.weight)[i] = __ldg((const float4 *)weight + i);
    __syncthreads();
    Sums sums = {};
    multiply(sums, s, filter, from + lane * OF_LANE);
    float *line = s.line[warp], *to = out + (size_t)(image * FILTERS + filter) * OUT_WIDTH;
    const int begin = 2 * (first + from) - 1, length = min(2 * WIDE, OUT_WIDTH - begin);
#pragma unroll
    for (int f = 0; f < OF_WARP; f++) {
        __syncwarp();
        *(float4 *)&line[lane * OF_LANE] =
            make_float4(sums[f][0], sums[f][1], sums[f][2], sums[f][3]);
        __syncwarp();
        kp::store_line(to + begin, length, [&](int i) { return i % 2 ? 0.0f : line[i / 2]; });
        if (begin == 1 && lane == 0) to[0] = 0.0f;
        to += OUT_WIDTH;
    }
}

extern "C" size_t scratch_bytes(void) {
    return 0;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    cudaFuncSetAttribute(results_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         sizeof(Shared));
    results_kernel<<<IMAGES *((WIDTH + PLACES - 1) / PLACES), THREADS, sizeof(Shared), stream>>>(
        in->x, in->conv1d_transpose_weight, out->out);
}
