// provenance: shipped
/* Half the sum, over each row of linear, of the larger of two neighbouring features; x 128 x 32768,
 * weight 32768 x 32768, with bias. Computed as weight * transpose(x), as the smaller operand is to
 * be split beforehand.
 *
 * Idea: one pass in TF32 and two in bf16 on the tensor cores (product.cuh), whose epilogue leaves
 * the sum of 32 features of a row (reducing_stores.cuh): 0.5 MB; a small kernel adds them. Two
 * neighbouring features lie in two lanes of a warp; both take the larger, and half of it. An H200
 * has 132 multiprocessors, of which 128 have a tile.
 * Floor: 2 M N K flops over the TF32 rate and 4 M N K over that of bf16, 1376 us; reading the
 * weight 917 us.
 * Measured: 1480 us on an H200, 93 % of the floor. */
#include "task.h"
#include "operands.cuh"
#include "reducing_stores.cuh"
#include "row_ops.cuh"

using Sizes = kp::Matrices<MATMUL_WEIGHT_DIM0, X_DIM0, X_DIM1>;
using Tile = kp::TileFor<Sizes, 128>;
static_assert(MATMUL_WEIGHT_DIM0 % (kp::TILE_M * Tile::CLUSTER) == 0 && X_DIM0 % Tile::N == 0,
              "whole tiles: all lanes of a warp have features");

/* The larger of a feature and its neighbour, times a quarter: of each pair that is half. */
struct LargerOfTwo {
    const float *matmul_bias;
    __device__ __forceinline__ float operator()(float v, int feature, int) const {
        v += __ldg(matmul_bias + feature);
        const float next = __shfl_xor_sync(0xffffffffu, v, 4); /* as kp::Part has them */
        return (isnan(next) || next > v ? next : v) * 0.25f;
    }
};

using Store = kp::ReduceColumns<LargerOfTwo, kp::Sum, Sizes, Tile>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Sizes, Tile>() + kp::parts_bytes<Store>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const kp::Along<MATMUL_WEIGHT_DIM0, X_DIM1> weight = {{}, in->matmul_weight};
    const kp::Along<X_DIM0, X_DIM1> x = {{}, in->x};
    auto *part = (Store::State *)((char *)scratch + kp::split_bytes<Sizes, Tile>());
    const Store store = {{in->matmul_bias}, part};
    kp::product<Sizes, Tile>(weight, x, store, scratch, stream);
    kp::join_parts<Store, kp::Itself>(part, out->out, stream);
}
