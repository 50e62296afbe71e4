// provenance: shipped
// tuned: half half_table_h100.cuh
/* The products of optimized/sm_90a/hgemm.cu, as an H100 likes them: its L2 and its memory give
 * less.
 *
 * Floor: 2 (M K + K N + M N) bytes over the copy bandwidth, or 2 M N K flops over the f16 rate; at
 * least a launch.
 * Not measured in a recorded run: those of results/h100 took optimized/sm_90a/hgemm.cu. */
#define KP_HALF_TABLE "half_table_h100.cuh"
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
