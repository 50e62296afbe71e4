// provenance: shipped
/* Depthwise 3 x 3 convolution, then pointwise: x [16][64][512][512] -> [16][64][512][512] ->
 * [16][128][512][512].
 *
 * Idea: one product, pixels by channels (product.cuh), for whose left operand the fetching warps
 * bring x itself, and the depthwise weights: patches of 4 x 64 pixels and what lies around them, 32
 * channels a slab. The warps that multiply compute what they multiply as they read it: a thread's
 * four pixels lie one below the other, so that two cost 12 reads a channel, without bank conflicts.
 * Lanes store 32 bytes of a line of the result. Through memory (the portable kernel) it took 1395
 * us on an H200: 5 GiB.
 * Floor: 3 GiB over the copy bandwidth, 751 us, 5300 cycles a slab. Beside it, in cycles of a slab:
 * products in three passes of TF32 3072; shared memory 3500 (their right operand 1536, x and
 * weights 1920) and stores to 2048; issuing 1600.
 * Measured: 1262 us on an H200, 59 % of the floor.
 * Spills 12 bytes a thread (stored and loaded) in the product. */
#include "task.h"
#include "operands.cuh"

constexpr int CHANNELS = X_DIM1, HEIGHT = X_DIM2, WIDTH = X_DIM3, PIXELS = HEIGHT * WIDTH;
constexpr int FILTERS = POINTWISE_WEIGHT_DIM0, SIDE = 3, TAPS = SIDE * SIDE;
constexpr int DOWN = 4, ACROSS = kp::TILE_M / DOWN; /* pixels of a patch */
constexpr int LINE = ACROSS + 8, LINES = DOWN + 2;  /* of x, from 4 columns and a row before it */
constexpr int WEIGHTS = LINE * LINES;               /* where a channel has them, behind x */
constexpr int PITCH = WEIGHTS + 24;                 /* of channels, for the banks */
static_assert(DEPTHWISE_WEIGHT_DIM2 == SIDE && DEPTHWISE_WEIGHT_DIM3 == SIDE, "taps");
static_assert(OUT_DIM2 == HEIGHT && OUT_DIM3 == WIDTH, "as much padding");
static_assert(HEIGHT % DOWN == 0 && WIDTH % ACROSS == 0, "whole patches");
static_assert(kp::whole_tiles(PIXELS) && CHANNELS % kp::TILE_K == 0, "whole tiles and slabs");
static_assert(PITCH % 32 == 8 || PITCH % 32 == 24, "8 pixels of 4 channels in 32 banks");
static_assert(kp::TILE_K * PITCH % 256 == 0, "slabs of 1024 bytes");
static_assert(WEIGHTS / 4 <= 128, "a thread copies a piece of each channel");

using Sizes = kp::Matrices<PIXELS, FILTERS, CHANNELS, X_DIM0, true>;
using Tile = kp::TileFor<Sizes, 128>;
static_assert(FILTERS == Tile::N, "a patch of all filters");

/* The first pixel of the patch that has this row of the product. Rows of a patch are numbered
 * downwards first. */
__device__ __forceinline__ int2 patch_of(int row) {
    const int patch = row / kp::TILE_M;
    return make_int2(patch % (WIDTH / ACROSS) * ACROSS, patch / (WIDTH / ACROSS) * DOWN);
}

/* The left operand: slabs of x under a patch, zeros around the image, and depthwise weights. */
struct Patches {
    static constexpr bool ALONG_DEPTH = false;
    static constexpr int SLAB_BYTES = kp::TILE_K * PITCH * 4;
    const float *x, *weight;

    struct Place {
        const float *from; /* the thread's piece of the first channel */
        bool inside;
    };
    __device__ __forceinline__ Place place(int batch, int row) const {
        const int2 first = patch_of(row);
        const int own = threadIdx.x % 128;
        const int column = first.x - 4 + own % (LINE / 4) * 4,
                  line = first.y - 1 + own / (LINE / 4);
        const bool inside = (unsigned)column < (unsigned)WIDTH && (unsigned)line < (unsigned)HEIGHT;
        return {x + (long long)batch * CHANNELS * PIXELS + (inside ? line * WIDTH + column : 0),
                inside};
    }
    __device__ __forceinline__ void fetch(const Place &p, uint32_t to, int slab) const {
        const int own = threadIdx.x % 128;
        const float *from = p.from + (long long)slab * kp::TILE_K * PIXELS;
        if (own < WEIGHTS / 4)
#pragma unroll 4
            for (int k = 0; k < kp::TILE_K; k++)
                kp::copy_async<16>(to + (k * PITCH + own * 4) * 4, from + (long long)k * PIXELS,
                                   p.inside);
#pragma unroll 1 /* few registers */
        for (int i = own; i < kp::TILE_K * TAPS; i += 128)
            kp::copy_async<4>(to + (i / TAPS * PITCH + WEIGHTS + i % TAPS) * 4,
                              weight + slab * kp::TILE_K * TAPS + i);
    }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL /* the only pass that has load_part() */
/* What a thread multiplies: the depthwise convolution at two pixels. */
template <>
__device__ __forceinline__ void kp::load_part<Patches>(const float *slab, int i, float (&v)[4][4]) {
    const int t = threadIdx.x % 4, column = threadIdx.x / 4;
#pragma unroll
    for (int c = 0; c < 8; c++) {
        const float *from = slab + (4 * c + t) * PITCH;
        const float4 *weights = (const float4 *)(from + WEIGHTS);
        const float4 a = weights[0], b = weights[1];
        const float w[TAPS] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w, *(float *)(weights + 2)};
        float sum[2] = {};
#pragma unroll
        for (int line = 0; line < SIDE + 1; line++)
#pragma unroll
            for (int x = 0; x < SIDE; x++) {
                const float value = from[(2 * i + line) * LINE + 3 + column + x];
#pragma unroll
                for (int h = 0; h < 2; h++)
                    if (line - h >= 0 && line - h < SIDE)
                        sum[h] += w[(line - h) * SIDE + x] * value;
            }
        v[c / 2][c % 2 * 2] = sum[0], v[c / 2][c % 2 * 2 + 1] = sum[1];
    }
}
#endif

struct StorePatches {
    float *out;
    template <class P>
    __device__ __forceinline__ void tile(const P &part, int batch, int row, int column) const {
        const int2 first = patch_of(row);
        const int at = column * PIXELS + first.y * WIDTH + first.x + row % kp::TILE_M / DOWN;
        float *to = out + (long long)batch * FILTERS * PIXELS + at;
#pragma unroll
        for (int j = 0; j < P::N / 2; j += 4, to += 8 * PIXELS)
#pragma unroll
            for (int r = 0; r < 8; r++)
                to[r % 2 * PIXELS + P::row(r / 4, r / 2 % 2) * WIDTH] = part.v[r / 4][j + r % 4];
    }
};

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Sizes, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const Patches x = {in->x, in->depthwise_weight};
    const kp::Along<FILTERS, CHANNELS> weight = {{}, in->pointwise_weight};
    kp::product<Sizes, Tile>(x, weight, StorePatches{out->out}, scratch, stream);
}
