// provenance: shipped
/* t hardswish(t), t = conv + a tensor, conv a transposed convolution over three axes with bias,
 * stride 2 and padding 1: x [128][32][16][16][16], weight [32][64][3][3][3] ->
 * [128][64][32][32][32].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh); its
 * epilogue adds the tensor, and does the rest. Floor: three products in TF32, 424 us; 1.06 GiB read
 * and 1.00 GiB written, 518 us. Measured: 2076 us on an H200, 25 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve.cuh"

using Width = kp::TransposedAxis<X_DIM4, CONV_TRANSPOSE_WEIGHT_DIM4, 2, 1, 1, 1>;
using Height = kp::TransposedAxis<X_DIM3, CONV_TRANSPOSE_WEIGHT_DIM3, 2, 1, 1, 1>;
using Depth = kp::TransposedAxis<X_DIM2, CONV_TRANSPOSE_WEIGHT_DIM2, 2, 1, 1, 1>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, 1, Width, Height, Depth>;
using Tile = kp::TileFor<Conv, 64>;

struct Finish {
    __device__ __forceinline__ float operator()(float v, int, int) const {
        return v * kp::Hardswish()(v);
    }
};

/* Adds the bias and the tensor, then stores. */
struct AddAndStore : kp::StorePixels<Finish, Conv> {
    const float *conv_transpose_bias, *add_input;

    template <class P>
    __device__ __forceinline__ void tile(P &part, int batch, int row, int column) const {
        const kp::FourPixels<Conv> pixels(batch, row);
#pragma unroll
        for (int j = 0; j < P::N / 4; j++) {
            const int filter = column + j / 2 * 8 + j % 2;
            if (Conv::FILTERS % P::N && filter >= Conv::FILTERS) continue;
            const float bias = __ldg(conv_transpose_bias + filter);
            const float *add = add_input + (long long)filter * Conv::OUT_AREA;
#pragma unroll
            for (int r = 0; r < 4; r++)
                if (pixels.inside[r])
                    part.v[r / 2][j / 2 * 4 + r % 2 * 2 + j % 2] +=
                        bias + __ldg(add + pixels.at[r]);
        }
        kp::StorePixels<Finish, Conv>::tile(part, batch, row, column);
    }
};

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Conv, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const kp::Patches<Conv> patches = {{}, in->x};
    const kp::Filters<Conv> filters = {in->conv_transpose_weight};
    const AddAndStore store = {{{}, out->out}, in->conv_transpose_bias, in->add_input};
    kp::product<Conv, Tile>(patches, filters, store, scratch, stream);
}
