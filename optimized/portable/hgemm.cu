// provenance: shipped
/* f16 products with fp32 sums, A (M x K) * B (K x N), of any sizes that are multiples of 64.
 *
 * Idea: warps multiply fragments of tiles that asynchronous copies have brought some slabs ahead
 * (tensor_gemm.cuh); tiles are large where there are enough of them. The smallest products go
 * straight from memory into registers, the depth shared among warps (half_direct.cuh).
 * Floor: 2 (M K + K N + M N) bytes over the copy bandwidth, or 2 M N K flops over the f16 rate; at
 * least a launch.
 * Measured: see results/. */
#include "task.h"
#include "half_direct.cuh"
#include "tensor_gemm.cuh"

constexpr int ROWS = A_DIM0, DEPTH = A_DIM1, COLUMNS = B_DIM1;
static_assert(ROWS % 64 == 0 && COLUMNS % 64 == 0 && DEPTH % 64 == 0, "whole tiles");

constexpr bool DIRECT = (long long)ROWS * COLUMNS <= 256 * 256;
constexpr int WARPS = DEPTH % 256 == 0 ? 8 : DEPTH % 128 == 0 ? 4 : 2; /* that share the depth */
/* Large tiles where there is one for most multiprocessors. */
constexpr bool LARGE = ROWS % 128 == 0 && COLUMNS % 128 == 0 && ROWS / 128 * (COLUMNS / 128) >= 96;

/* Of the ways only the one that is chosen is compiled: Half is __half. */
template <bool, class Half> struct Product {
    static void run(const Half *a, const Half *b, const Half *, Half *out, cudaStream_t stream) {
        using Tile = std::conditional_t<LARGE, TensorTile<Half, 128, 128, 32, 2, 4, 3>,
                                        TensorTile<Half, 64, 64, 64, 2, 2, 4>>;
        const StoreAs<Half, Same> store = {{}, out};
        tensor_product<Tile>(a, b, store, ROWS, COLUMNS, DEPTH, stream);
    }
};
template <class Half> struct Product<true, Half> {
    static void run(const Half *a, const Half *, const Half *bt, Half *out, cudaStream_t stream) {
        using Tile = kp::DirectTile<ROWS, COLUMNS, DEPTH, 16, 16, WARPS>;
        kp::direct_product<Tile>(a, bt, out, stream);
    }
};

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    Product<DIRECT, __half>::run(in->A, in->B, in->Bt, out->out, stream);
}
