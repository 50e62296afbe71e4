// provenance: shipped
/* t = the log of the sum of exponentials of each row of linear; out = gelu(gelu(leaky(leaky(t)))),
 * x 1024 x 8192, weight 8192 x 8192, with bias. Computed as weight * transpose(x), as the smaller
 * operand is to be split beforehand.
 *
 * Idea: one pass in TF32 and two in bf16 on the tensor cores (product.cuh), whose epilogue leaves
 * the largest value and the sum of 32 features of a row (reducing_stores.cuh): 2 MB; a small kernel
 * joins them.
 * Floor: 2 M N K flops over the TF32 rate and 4 M N K over that of bf16, 688 us; 288 MiB, 66 us.
 * Measured: 731.7 us on an H200, 94 % of the floor.
 * Spills 72 bytes a thread (stored and loaded) on sm_90a. */
#include "task.h"
#include "activations.cuh"
#include "operands.cuh"
#include "reducing_stores.cuh"
#include "row_ops.cuh"

using Sizes = kp::Matrices<LINEAR_WEIGHT_DIM0, X_DIM0, X_DIM1>;
using Tile = kp::TileFor<Sizes, 128>;

struct Linear {
    const float *linear_bias;
    __device__ __forceinline__ float operator()(float v, int feature, int) const {
        return v + __ldg(linear_bias + feature);
    }
};

struct Finish {
    __device__ __forceinline__ float operator()(float v) const {
        const kp::LeakyRelu leaky = {0.01f};
        return kp::Gelu()(kp::Gelu()(leaky(leaky(v))));
    }
};

using Store = kp::ReduceColumns<Linear, kp::LogSumExp, Sizes, Tile>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Sizes, Tile>() + kp::parts_bytes<Store>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const kp::Along<LINEAR_WEIGHT_DIM0, X_DIM1> weight = {{}, in->linear_weight};
    const kp::Along<X_DIM0, X_DIM1> x = {{}, in->x};
    auto *part = (Store::State *)((char *)scratch + kp::split_bytes<Sizes, Tile>());
    const Store store = {{in->linear_bias}, part};
    kp::product<Sizes, Tile>(weight, x, store, scratch, stream);
    kp::join_parts<Store, Finish>(part, out->out, stream);
}
