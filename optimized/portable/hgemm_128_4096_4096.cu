// provenance: shipped
/* f16 product with fp32 sums: A 128 x 4096, B 4096 x 4096.
 *
 * Idea: B is nearly all the traffic. Small tiles, so that 128 blocks share its reading, and deep
 * slabs in four stages, so that each has much under way (tensor_gemm.cuh).
 * Floor: 2 (M K + K N + M N) bytes over the copy bandwidth, or 2 M N K flops over the f16 rate.
 * Measured: see results/. */
#include "task.h"
#include "tensor_gemm.cuh"

constexpr int ROWS = A_DIM0, DEPTH = A_DIM1, COLUMNS = B_DIM1;
using Tile = TensorTile<__half, 64, 64, 64, 2, 2, 4>;
static_assert(ROWS % Tile::M == 0 && COLUMNS % Tile::N == 0 && DEPTH % Tile::K == 0, "whole tiles");

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    const StoreAs<__half, Same> store = {{}, out->out};
    tensor_product<Tile>(in->A, in->B, store, ROWS, COLUMNS, DEPTH, stream);
}
