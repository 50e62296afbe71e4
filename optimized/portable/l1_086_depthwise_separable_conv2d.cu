// provenance: shipped
/* Depthwise 3 x 3 convolution, then pointwise: x [16][64][512][512] -> [16][64][512][512] ->
 * [16][128][512][512].
 *
 * Idea: two kernels: depthwise_conv.cuh into scratch memory, then a product an image, pixels
 * by channels (product.cuh).
 * Floor: 3 GiB over the copy bandwidth, 755 us; this method moves 5 GiB, 1260 us. Products in TF32
 * 504 us.
 * Measured: 1391 us on an H200, 91 % of the floor. */
#include "task.h"
#include "depthwise_conv.cuh"
#include "operands.cuh"
#include "stores.cuh"

constexpr int PIXELS = X_DIM2 * X_DIM3, FILTERS = POINTWISE_WEIGHT_DIM0;

using Depthwise =
    kp::DepthwiseConv<X_DIM1, kp::Windows<X_DIM2, 3, 1, 1>, kp::Windows<X_DIM3, 3, 1, 1>, 8>;
using Sizes = kp::Matrices<PIXELS, FILTERS, X_DIM1, X_DIM0, true>;
using Tile = kp::TileFor<Sizes, 128>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Sizes, Tile>() + X_ELEMENTS * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *between = (float *)((char *)scratch + kp::split_bytes<Sizes, Tile>());
    const kp::Across<PIXELS, X_DIM1, PIXELS, (long long)X_DIM1 *PIXELS> x = {{}, between};
    const kp::Along<FILTERS, X_DIM1> weight = {{}, in->pointwise_weight};
    const kp::StoreColumns<kp::Same, PIXELS, FILTERS, (long long)FILTERS *PIXELS> store = {
        {}, out->out};
    kp::depthwise_conv<Depthwise>(in->x, in->depthwise_weight, between, X_DIM0, stream);
    kp::product<Sizes, Tile>(x, weight, store, scratch, stream);
}
