// provenance: shipped
/* 3-D convolution: 3 -> 64 channels, 3 x 3 x 3, no padding, no bias.
 *
 * Idea: three products of f16 parts on the tensor cores, fp32 sums (conv_f16.cuh). Neighbouring pixels
 * and channels share a scale, so the class is fp32-normwise.
 * Floor: writing 976 MB, 0.24 ms; three f16 passes at 770 Tflop/s, 0.15 ms.
 * Measured: 430 us on an H200, 1.8 times the floor; cuDNN fp32 takes 1844. */
#include "task.h"
#include "conv_f16_unit.cuh"

/* A tile is WGS rows of one output plane, a step 16 of the 27 filter rows at one tap. The 9 image
 * planes that a tile needs (channel, depth) are each one copy of WGS + 2 whole rows. Filter row i
 * is row i / 9 of the filter's plane i % 9, and 27 to 31 are zero. */
struct Plan : UnitBase<Plan> {
    static constexpr int STORERS = 4;
    static constexpr int N = CONV3D_WEIGHT_DIM0, WGS = 2, X_STAGES = 6, W_STAGES = 0, SPLIT = 1;
    static constexpr int CHANNELS = X_DIM1, D = X_DIM2, H = X_DIM3, W = X_DIM4;
    static constexpr int OUT_D = D - 2, OUT_H = H - 2, OUT_W = W - 2;
    static constexpr int PIXELS = OUT_D * OUT_H * OUT_W, DEPTH = CHANNELS * 27;
    static constexpr int BANDS = (OUT_H + WGS - 1) / WGS, TILES = X_DIM0 * OUT_D * BANDS;
    static constexpr int PLANES = CHANNELS * 3, LINES = PLANES * 3, CHUNKS = 1;
    static constexpr int GROUPS = (LINES + 15) / 16;
    static constexpr int PLANE = (WGS + 2) * W + 8; /* 8 more than a multiple of 32: banks */
    static constexpr int X_WORDS = PLANES * PLANE, COPIES = PLANES;
    static_assert(W == 64 && OUT_D == OUT_DIM2 && OUT_H == OUT_DIM3 && OUT_W == OUT_DIM4, "size");

    static __device__ __forceinline__ int depth(int step, int column) {
        const int line = step / 3 * 16 + channel(column);
        return line < LINES ? line % PLANES * 9 + line / PLANES * 3 + step % 3 : -1;
    }
    static __device__ __forceinline__ int copy_bytes(int tile) {
        return 4 * W * min(WGS + 2, H - tile % BANDS * WGS);
    }
    static __device__ __forceinline__ const float *copy(int tile, int, int i, const float *x,
                                                        const float *, int *to) {
        const int band = tile % BANDS, d = tile / BANDS % OUT_D, image = tile / BANDS / OUT_D;
        *to = i * PLANE;
        return x + (((image * CHANNELS + i / 3) * D + d + i % 3) * H + band * WGS) * W;
    }

    /* The two pixels behind a row's outputs take the words of the last two: the next row's must not
     * count in the warp's scale. */
    struct At {
        int word[4 * GROUPS]; /* of the thread's four filter rows of each group */
        __device__ __forceinline__ At(int, int wg, int warp, int lane) {
            const int pixel = min(warp * 16 + lane / 4 * 2, OUT_W - 2);
#pragma unroll
            for (int i = 0; i < 4 * GROUPS; i++) {
                const int line = i * 4 + lane % 4, real = line < LINES ? line : 0;
                word[i] = wg * W + pixel + real % PLANES * PLANE + real / PLANES * W;
            }
        }
        __device__ __forceinline__ void fetch(const float *x, int g, float2 (&v)[8]) const {
            read(x + word[4 * g], x + word[4 * g + 1], v);
            read(x + word[4 * g + 2], x + word[4 * g + 3], v + 4);
        }
    };

    static constexpr int STEP = 0;
    static __device__ __forceinline__ int staged_word(int i) {
        return i / OUT_W * W + i % OUT_W;
    }
    static __device__ __forceinline__ Span span(int tile) {
        const int row = tile % BANDS * WGS, d = tile / BANDS % OUT_D, image = tile / BANDS / OUT_D;
        return {(long long)image * N * PIXELS + (d * OUT_H + row) * OUT_W,
                min(WGS, OUT_H - row) * OUT_W, true, true};
    }
    static __device__ __forceinline__ long long run(int tile, int wg, int *width) {
        const int row = tile % BANDS * WGS + wg;
        const int d = tile / BANDS % OUT_D, image = tile / BANDS / OUT_D;
        *width = row < OUT_H ? OUT_W : 0;
        return (long long)image * N * PIXELS + (d * OUT_H + row) * OUT_W;
    }
};

extern "C" size_t scratch_bytes(void) {
    return convolve_scratch<Plan>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    convolve<Plan, Plain>(in->x, in->conv3d_weight, nullptr, out->out, scratch, stream);
}
