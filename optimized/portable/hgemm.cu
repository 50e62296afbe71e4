// provenance: shipped
/* f16 products with fp32 sums, A (M x K) * B (K x N), of any sizes that are multiples of 64.
 *
 * Idea: tensor cores fed by asynchronous copies (tensor_gemm.cuh), in tiles of 128 x 128 where
 * these fill the chip, else of 64 x 64 with deeper slabs. Where even those are few, or the depth is
 * short, time is latency: tiles of 16 x 16 straight from memory, whose depth warps share
 * (half_direct.cuh). Floor: 2 (M K + K N + M N) bytes over the copy bandwidth, or 2 M N K flops
 * over the f16 rate; at least a launch. Not measured: the H200 and the H100 have kernels of
 * their own. */
#include "task.h"
#include "half_direct.cuh"
#include "tensor_gemm.cuh"

constexpr int ROWS = A_DIM0, DEPTH = A_DIM1, COLUMNS = B_DIM1;
static_assert(ROWS % 64 == 0 && COLUMNS % 64 == 0 && DEPTH % 64 == 0, "whole tiles");

/* How many warps share the depth of a tile: up to 16, each with at most four chunks of 32 or a
 * multiple of four; 0 if no number does it. */
constexpr int warps(int k) {
    int most = k / 64 < 16 ? k / 64 : 16;
    while (most && (k % (32 * most) || (k > 128 * most && k % (128 * most)))) most--;
    return most;
}

/* What a shape is computed by: 0 tiles of 128 x 128, 1 of 64 x 64, 2 straight from memory. */
template <int M, int N, int K> constexpr int way() {
    constexpr long long tiles = (long long)M / 64 * (N / 64);
    if (warps(K) && (tiles <= 16 || (tiles <= 64 && K <= 512))) return 2;
    return M % 128 == 0 && N % 128 == 0 && tiles / 4 >= 100 ? 0 : 1;
}

template <class Tile>
static void staged(const Inputs *in, const Outputs *out, cudaStream_t stream) {
    const StoreAs<__half, Same> store = {{}, out->out};
    tensor_product<Tile>(in->A, in->B, store, ROWS, COLUMNS, DEPTH, stream);
}

template <int WAY, int M, int N, int K>
static void product(const Inputs *in, const Outputs *out, cudaStream_t stream) {
    if constexpr (WAY == 2)
        kp::direct_product<kp::DirectTile<M, N, K, 16, 16, warps(K)>>(in->A, in->Bt, out->out,
                                                                      stream);
    else if constexpr (WAY == 1)
        staged<TensorTile<__half, 64, 64, 64, 2, 2, 4>>(in, out, stream);
    else
        staged<TensorTile<__half, 128, 128, 32, 2, 4, 3>>(in, out, stream);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    product<way<ROWS, COLUMNS, DEPTH>(), ROWS, COLUMNS, DEPTH>(in, out, stream);
}
