// provenance: shipped
/* group norm (16 groups) of linear, between -2 and 2, x 1024 x 8192, weight 8192 x 8192, with
 * bias. Computed as weight * transpose(x), as the smaller operand is to be split beforehand.
 *
 * Idea: a product at fp32 accuracy (product.cuh) stores its results, and a block normalises each
 * group of 512 features in registers (norm_on_chip.cuh). Sums this long hide what rests in bf16
 * lose, behind a norm, too. Floor: one product in TF32 and two in bf16, 688 us; 0.31 GiB, 78 us;
 * the norm reads and writes 64 MiB, 16 us.
 * Measured: 748 us on an H200, 92 % of the floor. Spills 16 bytes a thread (stored and loaded) on
 * sm_90a. */
#include "task.h"
#include "activations.cuh"
#include "norm_on_chip.cuh"
#include "operands.cuh"
#include "stores.cuh"

constexpr int ROWS = X_DIM0, FEATURES = GEMM_WEIGHT_DIM0;
using Sizes = kp::Matrices<FEATURES, ROWS, X_DIM1>;
using Tile = kp::Tile<128>;
constexpr int GROUPS = 16;

struct Linear {
    const float *gemm_bias;
    __device__ __forceinline__ float operator()(float v, int feature, int) const {
        return v + __ldg(gemm_bias + feature);
    }
};

struct Finish {
    const float *weight, *bias;
    __device__ __forceinline__ float operator()(float v, long long place) const {
        const int feature = (int)(place % FEATURES);
        return kp::Clamp{-2.0f, 2.0f}(v * __ldg(weight + feature) + __ldg(bias + feature));
    }
};

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Sizes, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const kp::Along<FEATURES, X_DIM1> weight = {{}, in->gemm_weight};
    const kp::Along<ROWS, X_DIM1> x = {{}, in->x};
    const kp::StoreColumns<Linear, FEATURES, ROWS> store = {{in->gemm_bias}, out->out};
    const Finish finish = {in->group_norm_weight, in->group_norm_bias};
    kp::product<Sizes, Tile>(weight, x, store, scratch, stream);
    kp::norm_runs<ROWS * GROUPS, FEATURES / GROUPS>(out->out, finish, 1e-5f, stream);
}
