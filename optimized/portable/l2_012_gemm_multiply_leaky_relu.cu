// provenance: shipped
/* out = leaky_relu((x * transpose(W) + bias) * 2, 0.1).
 *
 * Idea: one fp32 product (gemm.cuh), the rest in its epilogue: no intermediate in memory.
 * Floor: 2 M N K flops over the fp32 rate.
 * Measured: see results/. */
#include "task.h"
#include "activation.cuh"
#include "gemm.cuh"

constexpr int ROWS = X_DIM0, DEPTH = X_DIM1, COLUMNS = GEMM_WEIGHT_DIM0;
static_assert(ROWS % 128 == 0 && COLUMNS % TILE_N == 0 && DEPTH % TILE_K == 0, "whole tiles");

struct Finish {
    const float *bias;
    __device__ __forceinline__ float operator()(float v, int column) const {
        return LeakyRelu{0.1f}((v + __ldg(bias + column)) * 2.0f);
    }
};

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    const AlongDepth x = {in->x, DEPTH, 0};
    const AlongDepth weight = {in->gemm_weight, DEPTH, 0};
    const StoreRows<Finish> store = {{in->gemm_bias}, out->out, COLUMNS, 0};
    product<128>(x, weight, store, ROWS, COLUMNS, DEPTH, 1, stream);
}
