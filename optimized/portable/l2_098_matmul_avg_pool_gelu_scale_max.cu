// provenance: shipped
/* The largest of each row of 2 gelu(mean of 16 neighbouring features of linear), x 1024 x 8192,
 * weight 8192 x 8192, with bias. Computed as weight * transpose(x), as the smaller operand is to be
 * split beforehand.
 *
 * Idea: one pass in TF32 and two in bf16 on the tensor cores (product.cuh). 16 features are in one
 * warp, whose epilogue takes their mean (group_stores.cuh) and leaves the largest of 32 features of
 * a row (reducing_stores.cuh): 1 MB; a small kernel joins these. Floor: 2 M N K flops over the TF32
 * rate and 4 M N K over that of bf16, 688 us; 288 MiB, 66 us. Measured: 726.0 us on an H200, 95 %
 * of the floor.
 * Spills 16 bytes a thread (stored and loaded) on sm_90a. */
#include "task.h"
#include "activations.cuh"
#include "extreme_op.cuh"
#include "group_stores.cuh"
#include "operands.cuh"
#include "reducing_stores.cuh"

constexpr int ROWS = X_DIM0, FEATURES = MATMUL_WEIGHT_DIM0;
using Sizes = kp::Matrices<FEATURES, ROWS, X_DIM1>;
using Tile = kp::TileFor<Sizes, 128>;
constexpr int WINDOW = 16;

struct Linear {
    const float *matmul_bias;
    __device__ __forceinline__ float operator()(float v, int feature, int) const {
        return v + __ldg(matmul_bias + feature);
    }
};

struct Finish {
    __device__ __forceinline__ float operator()(float v, int, int) const {
        return kp::Gelu()(v) * 2.0f;
    }
};

using Mean = kp::MeanOfGroup<WINDOW, Linear>;
using Largest = kp::ReduceColumns<Finish, kp::Extreme<true>, Sizes, Tile>;
using Store = kp::OverGroups<Sizes, WINDOW, Mean, Largest>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Sizes, Tile>() + kp::parts_bytes<Largest>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const kp::Along<FEATURES, X_DIM1> weight = {{}, in->matmul_weight};
    const kp::Along<ROWS, X_DIM1> x = {{}, in->x};
    auto *part = (Largest::State *)((char *)scratch + kp::split_bytes<Sizes, Tile>());
    const Store store = {{{}, part}, {{in->matmul_bias}}};
    kp::product<Sizes, Tile>(weight, x, store, scratch, stream);
    kp::join_parts<Largest, kp::Itself>(part, out->out, stream);
}
