// provenance: shipped
/* softmax of each row of a number times batch norm of linear, by the batch's own mean and
 * variance, x 1024 x 8192, weight 8192 x 8192, with bias. Computed as weight * transpose(x), as
 * the smaller operand is to be split beforehand.
 *
 * Idea: a product at fp32 accuracy (product.cuh) stores its results in scratch memory, and a block
 * normalises 16 features of all rows in registers (norm_on_chip.cuh). A row of the result is a
 * slice of row_ring.cuh, which reads it once. Sums this long hide what rests in bf16 lose, behind
 * a norm, too.
 * Floor: one product in TF32 and two in bf16, 688 us; 288 MiB, 66 us; norm and softmax read and
 * write 64 MiB each, 32 us.
 * Measured: 781 us on an H200, 88 % of the floor. Spills 16 bytes a thread (stored and loaded) on
 * sm_90a. */
#include "task.h"
#include "norm_on_chip.cuh"
#include "operands.cuh"
#include "row_ops.cuh"
#include "row_ring.cuh"
#include "stores.cuh"

constexpr int ROWS = X_DIM0, FEATURES = GEMM_WEIGHT_DIM0;
using Sizes = kp::Matrices<FEATURES, ROWS, X_DIM1>;
using Tile = kp::Tile<128>;
constexpr int THREADS = 256;

struct Linear {
    const float *gemm_bias;
    __device__ __forceinline__ float operator()(float v, int feature, int) const {
        return v + __ldg(gemm_bias + feature);
    }
};

struct Finish {
    const float *weight, *bias, *scale;
    __device__ __forceinline__ float operator()(float v, long long place) const {
        const int feature = (int)(place % FEATURES);
        return (v * __ldg(weight + feature) + __ldg(bias + feature)) * __ldg(scale);
    }
};

/* The split x; the product; what softmax needs. */
constexpr size_t SPLIT = kp::split_bytes<Sizes, Tile>();
constexpr size_t PRODUCT = (size_t)ROWS * FEATURES * sizeof(float);

extern "C" size_t scratch_bytes(void) {
    return SPLIT + PRODUCT + kp::rows_once_scratch<ROWS, FEATURES, THREADS, kp::Softmax>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *product = (float *)((char *)scratch + SPLIT);
    const kp::Along<FEATURES, X_DIM1> weight = {{}, in->gemm_weight};
    const kp::Along<ROWS, X_DIM1> x = {{}, in->x};
    const kp::StoreColumns<Linear, FEATURES, ROWS> store = {{in->gemm_bias}, product};
    const Finish finish = {in->bn_weight, in->bn_bias, in->scale};
    kp::product<Sizes, Tile>(weight, x, store, scratch, stream);
    kp::norm_columns<ROWS, FEATURES>(product, finish, 1e-5f, stream);
    kp::rows_once<ROWS, FEATURES, THREADS>(stream, kp::Softmax(), product, out->out,
                                           (char *)product + PRODUCT);
}
