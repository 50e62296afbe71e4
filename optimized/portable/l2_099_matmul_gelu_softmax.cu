// provenance: shipped
/* softmax(gelu(linear)) of each row, x 1024 x 8192, weight 8192 x 8192, with bias. Computed as
 * weight * transpose(x), as the smaller operand is to be split beforehand.
 *
 * Idea: one pass in TF32 and two in bf16 on the tensor cores (product.cuh), gelu in its epilogue.
 * A row of the result is a slice of row_ring.cuh, which reads it once.
 * Floor: 2 M N K flops over the TF32 rate and 4 M N K over that of bf16, 688 us; 288 MiB, 66 us;
 * softmax reads and writes 64 MiB, 16 us.
 * Measured: 762.5 us on an H200, 90 % of the floor.
 * Spills 16 bytes a thread (stored and loaded) on sm_90a. */
#include "task.h"
#include "activations.cuh"
#include "operands.cuh"
#include "row_ops.cuh"
#include "row_ring.cuh"
#include "stores.cuh"

constexpr int ROWS = X_DIM0, FEATURES = LINEAR_WEIGHT_DIM0, THREADS = 256;

using Sizes = kp::Matrices<FEATURES, ROWS, X_DIM1>;
using Tile = kp::TileFor<Sizes, 128>;

struct Activated {
    const float *linear_bias;
    __device__ __forceinline__ float operator()(float v, int feature, int) const {
        return kp::Gelu()(v + __ldg(linear_bias + feature));
    }
};

/* The split x; the activated features; what softmax needs. */
constexpr size_t SPLIT = kp::split_bytes<Sizes, Tile>();
constexpr size_t ACTIVATED = (size_t)ROWS * FEATURES * sizeof(float);

extern "C" size_t scratch_bytes(void) {
    return SPLIT + ACTIVATED + kp::rows_once_scratch<ROWS, FEATURES, THREADS, kp::Softmax>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *activated = (float *)((char *)scratch + SPLIT);
    const kp::Along<FEATURES, X_DIM1> weight = {{}, in->linear_weight};
    const kp::Along<ROWS, X_DIM1> x = {{}, in->x};
    const kp::StoreColumns<Activated, FEATURES, ROWS> store = {{in->linear_bias}, activated};
    kp::product<Sizes, Tile>(weight, x, store, scratch, stream);
    kp::rows_once<ROWS, FEATURES, THREADS>(stream, kp::Softmax(), activated, out->out,
                                           (char *)activated + ACTIVATED);
}
