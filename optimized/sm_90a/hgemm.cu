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
#include "half_gemm.cuh"

struct Choice {
#ifdef KP_HALF_CHOICE /* all behind the sizes: kp::HALF_APART, 128, 128, 1, 1, 16 */
    static constexpr kp::HalfChoice C = {A_DIM0, B_DIM1, A_DIM1, KP_HALF_CHOICE};
#else
    static constexpr kp::HalfChoice C = kp::half_choice(A_DIM0, B_DIM1, A_DIM1);
#endif
};
using Gemm = kp::HalfGemm<Choice>;

extern "C" size_t scratch_bytes(void) {
    return Gemm::scratch_bytes();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Gemm::run(in->A, in->Bt, out->out, scratch, stream);
}
