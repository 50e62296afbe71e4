// provenance: shipped
/* 17 linear layers with ReLUs between them: 1024 rows of 8192 features, 16 layers of 1024, and
 * 8192.
 *
 * Idea: products at fp32 accuracy in turn (product.cuh), weights times features, in tiles of 32
 * rows of features: larger ones of 1024 x 1024 would leave most multiprocessors idle.
 * Floor: 66 GFLOP of products, three times over the TF32 rate, 0.48 ms.
 * Measured: 833 us on an H200, 58 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "operands.cuh"
#include "stores.cuh"

constexpr int ROWS = X_DIM0, WIDE = X_DIM1, N = NETWORK_0_WEIGHT_DIM0;
constexpr int OUT = NETWORK_32_WEIGHT_DIM0;

template <class F> struct Biased {
    const float *bias;
    __device__ __forceinline__ float operator()(float v, int feature, int) const {
        return F()(v + __ldg(bias + feature));
    }
};
struct Same {
    __device__ __forceinline__ float operator()(float v) const { return v; }
};

/* Of 256 features of 32 rows. Rests in bf16 would lose digits that the next layers pass on. */
template <int FROM, int TO> using Sizes = kp::Matrices<TO, ROWS, FROM>;
using Tile = kp::Tile<32, kp::Tf32Rest>;

/* Enqueues to = F(from * transpose(weight) + bias), [ROWS][TO]. */
template <int FROM, int TO, class F>
static void layer(const float *weight, const float *bias, const float *from, float *to,
                  void *scratch, cudaStream_t stream) {
    const kp::Along<TO, FROM> w = {{}, weight};
    const kp::Along<ROWS, FROM> x = {{}, from};
    const kp::StoreColumns<Biased<F>, TO, ROWS> store = {{bias}, to};
    kp::product<Sizes<FROM, TO>, Tile>(w, x, store, scratch, stream);
}

/* Scratch: split features; the features of two layers. */
constexpr size_t SPLIT = kp::split_bytes<Sizes<WIDE, N>, Tile>();
static_assert(SPLIT >= kp::split_bytes<Sizes<N, OUT>, Tile>(), "the first are the most features");

extern "C" size_t scratch_bytes(void) {
    return SPLIT + 2 * (size_t)ROWS * N * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *a = (float *)((char *)scratch + SPLIT), *b = a + (size_t)ROWS * N;
    const float *const weight[] = {
        in->network_2_weight,  in->network_4_weight,  in->network_6_weight,  in->network_8_weight,
        in->network_10_weight, in->network_12_weight, in->network_14_weight, in->network_16_weight,
        in->network_18_weight, in->network_20_weight, in->network_22_weight, in->network_24_weight,
        in->network_26_weight, in->network_28_weight, in->network_30_weight};
    const float *const bias[] = {in->network_2_bias,  in->network_4_bias,  in->network_6_bias,
                                 in->network_8_bias,  in->network_10_bias, in->network_12_bias,
                                 in->network_14_bias, in->network_16_bias, in->network_18_bias,
                                 in->network_20_bias, in->network_22_bias, in->network_24_bias,
                                 in->network_26_bias, in->network_28_bias, in->network_30_bias};
    layer<WIDE, N, kp::Relu>(in->network_0_weight, in->network_0_bias, in->x, a, scratch, stream);
    for (int i = 0; i < 15; i++)
        layer<N, N, kp::Relu>(weight[i], bias[i], i % 2 ? b : a, i % 2 ? a : b, scratch, stream);
    layer<N, OUT, Same>(in->network_32_weight, in->network_32_bias, b, out->out, scratch, stream);
}
