// provenance: shipped
/* Transposed convolution over three axes: x [16][32][16][32][32], weight [32][64][3][3][3],
 * stride 2, padding 1, dilation 2 -> [16][64][33][65][65].
 *
 * Idea: as stride and dilation are equal, all results are zero but every other one along each axis,
 * and these are the convolution of stride and dilation 1: a product at fp32 accuracy whose rows,
 * the patches, are gathered (convolve.cuh), 64 filters a tile. Three quarters of the lines have
 * zeros alone: the threads that gather a slab store its share of them, while others multiply. In
 * the other lines a tile stores the zeros beside its results.
 * Floor: two products in TF32 and one in bf16, 177 us; 0.56 GiB, 141 us, beside it.
 * Measured: 591.4 us on an H200, 30 % of the floor. */
#include "task.h"
#include "convolve.cuh"
#include "stores.cuh"

/* An axis of the results that are not zero. */
template <int IN, int OUT_> struct Between : kp::TransposedAxis<IN, 3, 1, 1> {
    static constexpr int OUT = OUT_;
    static __device__ __forceinline__ int output(int point, int) { return 2 * point + 1; }
    static_assert(OUT == 2 * IN + 1, "a zero at either end");
};
static_assert(CONV_TRANSPOSE3D_WEIGHT_DIM2 == 3 && CONV_TRANSPOSE3D_WEIGHT_DIM3 == 3 &&
                  CONV_TRANSPOSE3D_WEIGHT_DIM4 == 3,
              "three taps along each axis");
using Width = Between<X_DIM4, OUT_DIM4>;
using Height = Between<X_DIM3, OUT_DIM3>;
using Depth = Between<X_DIM2, OUT_DIM2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE3D_WEIGHT_DIM1, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 64>;
static_assert(Conv::COLUMNS == Tile::N, "a tile has all filters");

/* A slab's share of the lines of results: EACH of all lines, in their order. */
constexpr int LINES = OUT_DIM0 * OUT_DIM1 * OUT_DIM2 * OUT_DIM3;
constexpr int SHARES = (int)((Conv::ROWS + kp::TILE_M - 1) / kp::TILE_M) * Conv::SLABS;
constexpr int EACH = (LINES + SHARES - 1) / SHARES;

struct PatchesAndZeros : kp::Patches<Conv> {
    using Base = kp::Patches<Conv>;
    float *out;

    struct Place : Base::Place {
        int tile;
    };
    __device__ __forceinline__ Place place(int batch, int row) const {
        return {Base::place(batch, row), row / kp::TILE_M};
    }
    __device__ __forceinline__ void fetch(const Place &p, uint32_t to, int slab) const {
        Base::fetch(p, to, slab);
        const int first = (p.tile * Conv::SLABS + slab) * EACH, end = min(first + EACH, LINES);
#pragma unroll 1
        for (int line = first + (int)(threadIdx.x / 32 % 4); line < end; line += 4) {
            if (line % OUT_DIM3 % 2 && line / OUT_DIM3 % OUT_DIM2 % 2) continue; /* has results */
            float *zeros = out + (size_t)line * OUT_DIM4;
#pragma unroll
            for (int x = threadIdx.x % 32; x < OUT_DIM4; x += 32) zeros[x] = 0.0f;
        }
    }
};

/* Results, and the zeros of their lines. */
struct StoreBetween {
    float *out;
    template <class P>
    __device__ __forceinline__ void tile(P &part, int batch, int row, int column) const {
        const kp::FourPixels<Conv> pixels(batch, row);
        kp::store_columns<Conv::COLUMNS, Conv::OUT_AREA, false>(
            part, kp::Same(), row, column, column, out + (long long)column * Conv::OUT_AREA,
            pixels.at, pixels.inside);
        const int own = row + threadIdx.x % 4; /* a lane a pixel */
        const kp::FourPixels<Conv> pixel(batch, own);
        if (!pixel.inside[0]) return;
        float *zeros = out + pixel.at[0];
        for (int n = 0; n < Conv::COLUMNS; n++, zeros += Conv::OUT_AREA) {
            zeros[-1] = 0.0f;
            if (own % Width::POINTS == Width::POINTS - 1) zeros[1] = 0.0f;
        }
    }
};

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const PatchesAndZeros patches = {{{}, in->x}, out->out};
    kp::product<Conv, Tile>(patches, kp::Filters<Conv>{in->conv_transpose3d_weight},
                            StoreBetween{out->out}, scratch, stream);
}
