// provenance: shipped
/* batch norm of linear times a number for each feature, by the batch's own mean and variance, x
 * 1024 x 8192, weight 8192 x 8192, with bias. Computed as weight * transpose(x), as the smaller
 * operand is to be split beforehand.
 *
 * Idea: a product at fp32 accuracy (product.cuh) stores its results, and a block normalises 32
 * features of all rows in registers (norm_on_chip.cuh). Sums this long hide what rests in bf16
 * lose, behind a norm, too. Floor: one product in TF32 and two in bf16, 688 us; 0.31 GiB, 78 us;
 * the norm reads and writes 64 MiB, 16 us.
 * Measured: 762 us on an H200, 90 % of the floor. Spills 16 bytes a thread (stored and loaded) on
 * sm_90a. */
#include "task.h"
#include "norm_on_chip.cuh"
#include "operands.cuh"
#include "stores.cuh"

constexpr int ROWS = X_DIM0, FEATURES = GEMM_WEIGHT_DIM0;
using Sizes = kp::Matrices<FEATURES, ROWS, X_DIM1>;
using Tile = kp::Tile<128>;

struct Scaled {
    const float *gemm_bias, *scale;
    __device__ __forceinline__ float operator()(float v, int feature, int) const {
        return (v + __ldg(gemm_bias + feature)) * __ldg(scale + feature);
    }
};

struct Finish {
    const float *weight, *bias;
    __device__ __forceinline__ float operator()(float v, long long place) const {
        const int feature = (int)(place % FEATURES);
        return v * __ldg(weight + feature) + __ldg(bias + feature);
    }
};

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Sizes, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const kp::Along<FEATURES, X_DIM1> weight = {{}, in->gemm_weight};
    const kp::Along<ROWS, X_DIM1> x = {{}, in->x};
    const kp::StoreColumns<Scaled, FEATURES, ROWS> store = {{in->gemm_bias, in->scale}, out->out};
    const Finish finish = {in->bn_weight, in->bn_bias};
    kp::product<Sizes, Tile>(weight, x, store, scratch, stream);
    kp::norm_columns<ROWS, FEATURES>(out->out, finish, 1e-5f, stream);
}
