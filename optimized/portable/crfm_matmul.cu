// provenance: shipped
/* Square product in fp32: out = A * B, all 4096 x 4096.
 *
 * Idea: register-tiled FMA on the CUDA cores, double-buffered through shared memory (gemm.cuh).
 * Floor: 2 M N K flops over the fp32 rate; 4 (M K + K N + M N) bytes hide behind them.
 * Measured: see results/. */
#include "task.h"
#include "gemm.cuh"

constexpr int ROWS = A_DIM0, DEPTH = A_DIM1, COLUMNS = B_DIM1;
static_assert(ROWS % 128 == 0 && COLUMNS % TILE_N == 0 && DEPTH % TILE_K == 0, "whole tiles");

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    const AlongDepth a = {in->A, DEPTH, 0};
    const AcrossDepth b = {in->B, COLUMNS, 0};
    const StoreRows<Same> store = {{}, out->out, COLUMNS, 0};
    product<128>(a, b, store, ROWS, COLUMNS, DEPTH, 1, stream);
}
