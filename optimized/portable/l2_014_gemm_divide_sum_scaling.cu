// provenance: shipped
/* 1.5 times the sum of each row of x * transpose(weight) / 2, x 1024 x 8192, weight 8192 x 8192.
 * Computed as weight * transpose(x), as the smaller operand is to be split beforehand.
 *
 * Idea: one pass in TF32 and two in bf16 on the tensor cores (product.cuh), whose epilogue leaves
 * the sum of 32 features of a row (reducing_stores.cuh): 1 MB; a small kernel adds them. All of the
 * product is computed, though x times the sum of the weight's rows is the same number (as l2_018).
 * Floor: 2 M N K flops over the TF32 rate and 4 M N K over that of bf16, 688 us; 288 MiB, 66 us.
 * Measured: 721.3 us on an H200, 95 % of the floor.
 * Spills 16 bytes a thread (stored and loaded) on sm_90a. */
#include "task.h"
#include "operands.cuh"
#include "reducing_stores.cuh"
#include "row_ops.cuh"

using Sizes = kp::Matrices<WEIGHT_DIM0, X_DIM0, X_DIM1>;
using Tile = kp::TileFor<Sizes, 128>;

struct Half {
    __device__ __forceinline__ float operator()(float v, int, int) const { return v * 0.5f; }
};

struct Finish {
    __device__ __forceinline__ float operator()(float v) const { return v * 1.5f; }
};

using Store = kp::ReduceColumns<Half, kp::Sum, Sizes, Tile>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Sizes, Tile>() + kp::parts_bytes<Store>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const kp::Along<WEIGHT_DIM0, X_DIM1> weight = {{}, in->weight};
    const kp::Along<X_DIM0, X_DIM1> x = {{}, in->x};
    auto *part = (Store::State *)((char *)scratch + kp::split_bytes<Sizes, Tile>());
    const Store store = {{}, part};
    kp::product<Sizes, Tile>(weight, x, store, scratch, stream);
    kp::join_parts<Store, Finish>(part, out->out, stream);
}
