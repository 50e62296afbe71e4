// provenance: shipped
/* 128 products C = A * B, A 512 x 1024, B 1024 x 2048. Computed as transpose(C) = transpose(B) *
 * transpose(A), as the smaller operand is to be split beforehand.
 *
 * Idea: one pass in TF32 and two in bf16 on the tensor cores (product.cuh).
 * Floor: 2 flops over the TF32 rate and 4 over that of bf16 a product: 1377 us; 1.75 GiB, 438 us.
 * Measured: 1701 us on an H200, 81 % of the floor. */
#include "task.h"
#include "operands.cuh"
#include "stores.cuh"

using Sizes = kp::Matrices<B_DIM2, A_DIM1, A_DIM2, A_DIM0>;
using Tile = kp::TileFor<Sizes, 128>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Sizes, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    constexpr long long A_EACH = A_DIM1 * A_DIM2, B_EACH = B_DIM1 * B_DIM2, EACH = A_DIM1 * B_DIM2;
    const kp::Across<B_DIM2, B_DIM1, B_DIM2, B_EACH> b = {{}, in->B};
    const kp::Along<A_DIM1, A_DIM2, A_DIM2, A_EACH> a = {{}, in->A};
    const kp::StoreColumns<kp::Same, B_DIM2, A_DIM1, EACH> store = {{}, out->out};
    kp::product<Sizes, Tile>(b, a, store, scratch, stream);
}
