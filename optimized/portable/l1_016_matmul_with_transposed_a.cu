// provenance: shipped
/* out = transpose(A) * B: A is stored K x M (8192 x 2048), B K x N (8192 x 4096).
 *
 * Idea: both operands lie across the depth, so both slabs are copied to shared memory as they are
 * (gemm.cuh).
 * Floor: 2 M N K flops over the fp32 rate.
 * Measured: see results/. */
#include "task.h"
#include "gemm.cuh"

constexpr int ROWS = A_DIM1, DEPTH = A_DIM0, COLUMNS = B_DIM1;
static_assert(ROWS % 128 == 0 && COLUMNS % TILE_N == 0 && DEPTH % TILE_K == 0, "whole tiles");

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    const AcrossDepth a = {in->A, ROWS, 0};
    const AcrossDepth b = {in->B, COLUMNS, 0};
    const StoreRows<Same> store = {{}, out->out, COLUMNS, 0};
    product<128>(a, b, store, ROWS, COLUMNS, DEPTH, 1, stream);
}
