// provenance: shipped
/* Three linear layers with ReLUs between them: 128 rows of 16384 features, to 16384, 16384 and
 * 8192 (l3_001), or to 32768, 32768 and 16384 (l3_002).
 *
 * Idea: weights times features (split_linear.cuh), one pass in TF32 and two in bf16 on the tensor
 * cores (product.cuh). All 128 rows are a tile; the depth comes in parts where a layer has fewer
 * tiles than an H200 has multiprocessors: 2, 2 and 4, or 1, 1 and 2.
 * Floor: 172 GFLOP of products with residuals in bf16, 860 us; 2.7 GB of weights, 0.60 ms. l3_002:
 * 550 GFLOP, 2.75 ms; 8.6 GB, 1.9 ms.
 * Measured on an H200: 973 us, 88 % of the floor; l3_002: 2974 us, 92 %. */
#include "task.h"
#include <algorithm>
#include "split_linear.cuh"

constexpr int ROWS = X_DIM0, WIDE = X_DIM1, INNER = NETWORK_0_WEIGHT_DIM0;
constexpr int MIDDLE = NETWORK_2_WEIGHT_DIM0, OUT = NETWORK_4_WEIGHT_DIM0;
using First = kp::SplitLinear<ROWS, WIDE, INNER, kp::RestFor<WIDE>>;
using Second = kp::SplitLinear<ROWS, INNER, MIDDLE, kp::RestFor<INNER>>;
using Third = kp::SplitLinear<ROWS, MIDDLE, OUT, kp::RestFor<MIDDLE>>;

struct Scratch {
    alignas(16) char split[std::max({First::SPLIT, Second::SPLIT, Third::SPLIT})];
    alignas(16) float parts[std::max({First::WORDS, Second::WORDS, Third::WORDS})];
};

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

/* A layer's sums overwrite those of the layer before: these are split by then. */
extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Scratch *s = (Scratch *)scratch;
    const kp::Along<ROWS, WIDE> x = {{}, in->x};
    const First::Features first = {s->parts, in->network_0_bias};
    const Second::Features second = {s->parts, in->network_2_bias};
    First::multiply(in->network_0_weight, x, s->parts, s->split, stream);
    Second::multiply(in->network_2_weight, first, s->parts, s->split, stream);
    Third::multiply(in->network_4_weight, second, s->parts, s->split, stream);
    Third::finish(s->parts, in->network_4_bias, out->out, stream);
}
