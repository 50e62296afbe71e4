// provenance: shipped
// tuned: half
/* f16 products with fp32 sums, A (M x K) * B (K x N), of any sizes that are multiples of 64.
 *
 * Idea: both operands are read along the depth, A and B transposed. wgmma on tiles that are fetched
 * some slabs ahead (half_product.cuh); where there are fewer tiles than multiprocessors, several
 * blocks share the depth of one; the smallest products go straight from memory into registers
 * (half_direct.cuh). A table and a model choose for each shape (half_choice.cuh).
 * Floor: 2 (M K + K N + M N) bytes over the copy bandwidth, or 2 M N K flops over the f16 rate; at
 * least a launch.
 * Measured: see results/. */
#include "task.h"
#include "half_direct.cuh"
#include "half_product.cuh"

constexpr int ROWS = A_DIM0, DEPTH = A_DIM1, COLUMNS = B_DIM1;
#ifdef KP_HALF_CHOICE /* all behind the sizes: kp::HALF_APART, 128, 128, 1, 1, 16 */
constexpr kp::HalfChoice C = {ROWS, COLUMNS, DEPTH, KP_HALF_CHOICE};
#else
constexpr kp::HalfChoice C = kp::half_choice(ROWS, COLUMNS, DEPTH);
#endif
constexpr bool DIRECT = C.way == kp::HALF_DIRECT;
static_assert(C.m == ROWS && kp::half_possible(C),
              "sizes are multiples of 64, and a line is right");

/* Of the two ways only the one that is chosen is compiled. */
template <bool, class S> struct Product {
    using Tile = kp::HalfTile<S, C.way, C.tile_m, C.tile_n, C.split, C.parts, C.walk>;
    static constexpr size_t SCRATCH = Tile::SCRATCH;
    static void run(const Inputs *in, const Outputs *out, void *scratch, cudaStream_t stream) {
        kp::half_product<S, Tile>(in->A, in->Bt, out->out, scratch, stream);
    }
};
template <class S> struct Product<true, S> {
    using Tile = kp::DirectTile<S::M, S::N, S::K, C.tile_m, C.tile_n, C.split>;
    static constexpr size_t SCRATCH = 0;
    static void run(const Inputs *in, const Outputs *out, void *, cudaStream_t stream) {
        kp::direct_product<Tile>(in->A, in->Bt, out->out, stream);
    }
};

using Chosen = Product<DIRECT, kp::HalfSizes<ROWS, COLUMNS, DEPTH>>;

extern "C" size_t scratch_bytes(void) {
    return Chosen::SCRATCH;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Chosen::run(in, out, scratch, stream);
}
