// provenance: shipped
/* twice leaky relu of group norm (512 groups) of linear, x 1024 x 8192, weight 8192 x 8192, with
 * bias. Computed as weight * transpose(x), as the smaller operand is to be split beforehand.
 *
 * Idea: a group of 16 features is in one warp of the product's block, which normalises it in its
 * epilogue (product.cuh, group_stores.cuh). Sums this long hide what rests in bf16 lose, behind a
 * norm, too.
 * Floor: one product in TF32 and two in bf16, 688 us; 0.31 GiB, 78 us.
 * Measured: 738 us on an H200, 93 % of the floor. Spills 16 bytes a thread (stored and loaded) on
 * sm_90a. */
#include "task.h"
#include "activations.cuh"
#include "group_stores.cuh"
#include "operands.cuh"

constexpr int ROWS = X_DIM0, FEATURES = FC_WEIGHT_DIM0;
using Sizes = kp::Matrices<FEATURES, ROWS, X_DIM1>;
using Tile = kp::Tile<128>;
constexpr int GROUPS = 512, EACH = FEATURES / GROUPS;

struct Linear {
    const float *fc_bias;
    __device__ __forceinline__ float operator()(float v, int feature, int) const {
        return v + __ldg(fc_bias + feature);
    }
};

struct Finish {
    const float *weight, *bias;
    __device__ __forceinline__ float operator()(float v, int feature, int) const {
        v = kp::LeakyRelu{0.01f}(v * __ldg(weight + feature) + __ldg(bias + feature));
        return v + v;
    }
};

using Norm = kp::NormOfGroup<EACH, Linear>;
using Store = kp::OverGroups<Sizes, EACH, Norm, kp::StoreColumns<Finish, FEATURES, ROWS>>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Sizes, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const kp::Along<FEATURES, X_DIM1> weight = {{}, in->fc_weight};
    const kp::Along<ROWS, X_DIM1> x = {{}, in->x};
    const Store store = {{{in->gn_weight, in->gn_bias}, out->out}, {{in->fc_bias}}};
    kp::product<Sizes, Tile>(weight, x, store, scratch, stream);
}
