// provenance: shipped
/* softmax(kept * 1.25 * linear) of each row, x 128 x 16384, weight 16384 x 16384, with bias; kept
 * 128 x 16384. Computed as weight * transpose(x), as the smaller operand is to be split beforehand.
 *
 * Idea: one pass in TF32 and two in bf16 on the tensor cores (product.cuh), the dropout in its
 * epilogue. Tiles of 64 columns, so that 128 of an H200's 132 multiprocessors have one. Two blocks
 * share a row of the result (row_ring.cuh), which is read once.
 * Floor: 2 M N K flops over the TF32 rate and 4 M N K over that of bf16, 344 us; reading the weight
 * 229 us.
 * Measured: 479.7 us on an H200, 72 % of the floor. */
#include "task.h"
#include "operands.cuh"
#include "row_ops.cuh"
#include "row_ring.cuh"
#include "stores.cuh"

constexpr int ROWS = X_DIM0, FEATURES = MATMUL_WEIGHT_DIM0, THREADS = 256;

using Sizes = kp::Matrices<FEATURES, ROWS, X_DIM1>;
using Tile = kp::TileFor<Sizes, 64>;

struct Dropout {
    const float *matmul_bias, *kept;
    __device__ __forceinline__ float operator()(float v, int feature, int row) const {
        v += __ldg(matmul_bias + feature);
        return v * __ldg(kept + (long long)row * FEATURES + feature) * 1.25f;
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
    const kp::Along<FEATURES, X_DIM1> weight = {{}, in->matmul_weight};
    const kp::Along<ROWS, X_DIM1> x = {{}, in->x};
    const kp::StoreColumns<Dropout, FEATURES, ROWS> store = {{in->matmul_bias, in->kept}, product};
    kp::product<Sizes, Tile>(weight, x, store, scratch, stream);
    kp::rows_once<ROWS, FEATURES, THREADS>(stream, kp::Softmax(), product, out->out,
                                           (char *)product + PRODUCT);
}
