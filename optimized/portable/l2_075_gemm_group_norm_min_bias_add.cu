// provenance: shipped
/* The least of each row of group norm (512 groups) of linear, plus a number for each feature:
 * out[feature][row], x 1024 x 8192, weight 8192 x 8192, with bias. Computed as weight *
 * transpose(x), as the smaller operand is to be split beforehand.
 *
 * Idea: a group of 16 features is in one warp of the product's block, which normalises it in its
 * epilogue (product.cuh, group_stores.cuh) and leaves the least of 32 features of a row
 * (reducing_stores.cuh): 1 MB. A small kernel joins these, another one adds. Sums this long hide
 * what rests in bf16 lose, behind a norm, too. Floor: one product in TF32 and two in bf16, 688 us;
 * 0.31 GiB, 78 us. Measured: 741 us on an H200, 93 % of the floor. Spills 16 bytes a thread
 * (stored and loaded) on sm_90a. */
#include "task.h"
#include "extreme_op.cuh"
#include "group_stores.cuh"
#include "operands.cuh"
#include "reducing_stores.cuh"

constexpr int ROWS = X_DIM0, FEATURES = GEMM_WEIGHT_DIM0;
using Sizes = kp::Matrices<FEATURES, ROWS, X_DIM1>;
using Tile = kp::Tile<128>;
constexpr int GROUPS = 512, EACH = FEATURES / GROUPS;
constexpr int THREADS = 256;

struct Linear {
    const float *gemm_bias;
    __device__ __forceinline__ float operator()(float v, int feature, int) const {
        return v + __ldg(gemm_bias + feature);
    }
};

struct Affine {
    const float *weight, *bias;
    __device__ __forceinline__ float operator()(float v, int feature, int) const {
        return v * __ldg(weight + feature) + __ldg(bias + feature);
    }
};

/* out[feature][row] = least[row] + bias[feature]. A block a feature. */
__global__ void __launch_bounds__(THREADS)
    add_kernel(const float *__restrict__ least, const float *__restrict__ bias,
               float *__restrict__ out) {
    const float add = bias[blockIdx.x];
    for (int row = threadIdx.x; row < ROWS; row += THREADS)
        out[(long long)blockIdx.x * ROWS + row] = least[row] + add;
}

using Norm = kp::NormOfGroup<EACH, Linear>;
using Least = kp::ReduceColumns<Affine, kp::Extreme<false>, Sizes, Tile>;
using Store = kp::OverGroups<Sizes, EACH, Norm, Least>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Sizes, Tile>() + kp::parts_bytes<Least>() + ROWS * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const kp::Along<FEATURES, X_DIM1> weight = {{}, in->gemm_weight};
    const kp::Along<ROWS, X_DIM1> x = {{}, in->x};
    auto *part = (Least::State *)((char *)scratch + kp::split_bytes<Sizes, Tile>());
    float *least = (float *)((char *)part + kp::parts_bytes<Least>());
    const Store store = {{{in->group_norm_weight, in->group_norm_bias}, part}, {{in->gemm_bias}}};
    kp::product<Sizes, Tile>(weight, x, store, scratch, stream);
    kp::join_parts<Least, kp::Itself>(part, least, stream);
    add_kernel<<<FEATURES, THREADS, 0, stream>>>(least, in->bias, out->out);
}
