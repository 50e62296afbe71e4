/* conv_f16_alexnet.cuh: plan for conv_f16.cuh of AlexNet's first convolution, 3 channels, 11 x 11
 * filter, stride 4, padding 2.
 *
 * A tile is 64 x WGS pixels in row order, which touch at most OUT_ROWS_A_TILE output rows; their
 * image rows lie in shared memory with the padding's zeros around them. A filter row is 3 quads of
 * columns (the last has 3); a step is one quad of four filter rows, a group the 3 quads. Pixels are
 * 4 words apart and rows 16 banks, so that a fragment's reads meet no bank twice. */
#pragma once
#include "conv_f16.cuh"

template <int IMAGES, int WGS_, int W_STAGES_> struct AlexnetPlan {
    static constexpr int N = 96, WGS = WGS_, X_STAGES = 2, W_STAGES = W_STAGES_;
    static constexpr int SIDE = 224, OUT = 55, PIXELS = OUT * OUT, CHANNELS = 3, TAPS = 11;
    static constexpr int DEPTH = CHANNELS * TAPS * TAPS, LINES = CHANNELS * TAPS;
    static constexpr int TILE = 64 * WGS, TILES_EACH = (PIXELS + TILE - 1) / TILE;
    static constexpr int TILES = IMAGES * TILES_EACH, CHUNKS = 1, GROUPS = (LINES + 3) / 4,
                         SPLIT = 1;
    static constexpr int OUT_ROWS_A_TILE = (TILE - 2) / OUT + 2;
    static constexpr int ROWS = (OUT_ROWS_A_TILE - 1) * 4 + TAPS, ROW = SIDE + 16;
    static constexpr int X_WORDS = CHANNELS * ROWS * ROW, COPIES = CHANNELS * ROWS;
    static constexpr int PAIRS = 12;
    static constexpr int STORERS = 0;

    static __device__ __forceinline__ int depth(int step, int column) {
        const int line = step / 3 * 4 + column / 4, tap = step % 3 * 4 + column % 4;
        return line < LINES && tap < TAPS ? line * TAPS + tap : -1;
    }
    static __device__ __forceinline__ constexpr int pick(int j, int i) { return j * 4 + i; }
    static __device__ __forceinline__ int first_row(int tile) {
        return tile % TILES_EACH * TILE / OUT;
    }
    static __device__ __forceinline__ int copy_bytes(int) { return SIDE * 4; }
    static __device__ __forceinline__ const float *copy(int tile, int, int i, const float *x,
                                                        const float *zeros, int *to) {
        const int channel = i / ROWS, row = first_row(tile) * 4 - 2 + i % ROWS;
        const int image = tile / TILES_EACH;
        *to = i * ROW + 4;
        if ((unsigned)row >= (unsigned)SIDE) return zeros;
        return x + ((image * CHANNELS + channel) * SIDE + row) * SIDE;
    }
    /* Zeros around the rows, which no copy touches. */
    static __device__ __forceinline__ void prepare(float *x, int) {
        for (int i = threadIdx.x; i < X_STAGES * COPIES * 8; i += blockDim.x)
            x[i / 8 * ROW + (i % 8 < 4 ? i % 8 : SIDE + i % 8)] = 0.0f;
    }

    struct At {
        int first, second, line; /* words of the patches of rows g and g + 8; filter row */
        __device__ __forceinline__ At(int tile, int wg, int warp, int lane) {
            const int i = tile % TILES_EACH * TILE + wg * 64 + warp * 16 + lane / 4;
            line = lane / 2 % 2;
            first = word(tile, i) + lane % 2 * 2;
            second = word(tile, i + 8) + lane % 2 * 2;
        }
        static __device__ __forceinline__ int word(int tile, int pixel) {
            const int i = min(pixel, PIXELS - 1);
            return (i / OUT - first_row(tile)) * 4 * ROW + i % OUT * 4 + 2;
        }
        /* Of the filter's last group only the first row is one. */
        static __device__ __forceinline__ int row(int i) {
            const int real = min(i, LINES - 1);
            return (real / TAPS * ROWS + real % TAPS) * ROW;
        }
        __device__ __forceinline__ void fetch(const float *x, int g, float2 (&v)[PAIRS]) const {
            const float *p = x + row(4 * g + line), *q = x + row(4 * g + line + 2);
#pragma unroll
            for (int j = 0; j < STEPS; j++) {
                v[4 * j] = *(const float2 *)(p + first + 4 * j);
                v[4 * j + 1] = *(const float2 *)(p + second + 4 * j);
                v[4 * j + 2] = *(const float2 *)(q + first + 4 * j);
                v[4 * j + 3] = *(const float2 *)(q + second + 4 * j);
            }
        }
    };

    template <class F>
    static __device__ __forceinline__ void store(int tile, int wg, int warp, int lane,
                                                 const float (&sum)[N / 2], const Scales &scales,
                                                 const float *bias, float *out) {
        const int i = tile % TILES_EACH * TILE + wg * 64 + warp * 16 + lane / 4;
        float *p = out + (long long)(tile / TILES_EACH) * N * PIXELS + i;
#pragma unroll
        for (int k = 0; k < N / 2; k++) {
            const int n = k / 4 * 8 + lane % 4 * 2 + k % 2, down = k % 4 / 2 * 8;
            if (i + down < PIXELS) p[n * PIXELS + down] = F::apply(sum[k] * scales.of(n), bias, n);
        }
    }
};
