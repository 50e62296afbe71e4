// provenance: shipped
/* t hardswish(t), t = conv + a tensor, conv a transposed convolution over three axes with bias,
 * stride 2 and padding 1: x [128][32][16][16][16], weight [32][64][3][3][3] ->
 * [128][64][32][32][32].
 *
 * Idea: a product at fp32 accuracy whose rows are places of x, and its columns the taps along x of
 * 32 filters: a tile has both phases of a line, and stores it whole (both_phases.cuh). The tensor
 * is added to what one tap of each result gives, before the others are; the rest is its epilogue.
 * Floor: three products in TF32, 424 us; 1.06 GiB read and 1.00 GiB written, 518 us.
 * Measured: 1007 us on an H200, 51 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "both_phases.cuh"

using Width = kp::TransposedAxis<X_DIM4, CONV_TRANSPOSE_WEIGHT_DIM4, 2, 1, 1, 1>;
using Height = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 2, 1, 1, 1>;
using Depth = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 2, 1, 1, 1>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height, Depth>;
using Sizes = kp::both_phases::Sizes<Conv>;
using Tile = kp::both_phases::TileOf<Conv>;

struct Finish {
    const float *conv_transpose_bias;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        v += __ldg(conv_transpose_bias + filter);
        return v * kp::Hardswish()(v);
    }
};

/* Adds the tensor, then does and stores the rest. */
struct AddAndStore : kp::both_phases::Results<Finish, Sizes, Tile> {
    const float *add_input;

    template <class P>
    __device__ __forceinline__ void tile(P &part, int batch, int row, int column) const {
        constexpr int FILTERS = kp::both_phases::TILE_FILTERS;
        const long long at = Sizes::result(batch, row / kp::TILE_M, row % kp::TILE_M, 0);
        const int filter = column / P::N * FILTERS + threadIdx.x % 4;
        const float *const from = add_input + at + (long long)filter * Conv::OUT_AREA;
#pragma unroll
        for (int q = 0; q < FILTERS / 4; q++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float4 add = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                if (at >= 0) add = __ldg((const float4 *)(from + q * 4LL * Conv::OUT_AREA) + i);
                by_tap(part, q, 2 * i, 1) += add.x;
                by_tap(part, q, 2 * i, 2) += add.y;
                by_tap(part, q, 2 * i + 1, 1) += add.z;
                by_tap(part, q, 2 * i + 1, 2) += add.w;
            }
        Results::tile(part, batch, row, column);
    }
};

extern "C" size_t scratch_bytes(void) {
    return kp::both_phases::scratch_bytes<Conv>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const kp::both_phases::Places<Sizes> places = {{}, in->x};
    const kp::both_phases::Taps<Sizes> taps = {in->conv_transpose_weight};
    const AddAndStore store = {{{in->conv_transpose_bias}, out->out}, in->add_input};
    kp::product<Sizes, Tile>(places, taps, store, scratch, stream);
}
