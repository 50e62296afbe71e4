// provenance: shipped
/* The largest of windows of 3 x 3, stride 2, of relu(conv), conv AlexNet's first convolution with
 * bias: x [100][3][224][224], weight [96][3][11][11], stride 4, padding 2 -> [100][96][55][55] ->
 * [100][96][27][27].
 *
 * Idea: a product at fp32 accuracy whose rows, the patches, are gathered (convolve.cuh), with bias
 * and ReLU in its epilogue, goes to scratch memory: 116 MB, of which L2 may still hold a part when
 * windows are joined, a block a plane (pools.cuh). Floor: two products in TF32 and one in bf16, 129
 * us; 0.08 GiB read and written, 0.11 GiB written and read, 74 us. Measured: 296.5 us on an H200,
 * 44 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "convolve.cuh"
#include "pools.cuh"

using Width = kp::Axis<X_DIM3, WEIGHT_DIM3, 4, 2>;
using Height = kp::Axis<X_DIM2, WEIGHT_DIM2, 4, 2>;
using Conv = kp::Convolution<X_DIM0, X_DIM1, WEIGHT_DIM0, 1, Width, Height>;
using Tile = kp::TileFor<Conv, 96>;
using Pool = kp::PoolShape<kp::Windows<1, 1>, kp::Windows<Height::OUT, 3, 2>,
                           kp::Windows<Width::OUT, 3, 2>, 64, 1, 27>;
static_assert(Pool::H::OUT == OUT_DIM2 && Pool::W::OUT == OUT_DIM3, "the sizes of the result");

struct BiasRelu {
    const float *bias;
    __device__ __forceinline__ float operator()(float v, int, int filter) const {
        return kp::Relu()(v + __ldg(bias + filter));
    }
};

constexpr size_t SPLIT = kp::split_bytes<Conv, Tile>();

extern "C" size_t scratch_bytes(void) {
    return SPLIT + (size_t)X_DIM0 * WEIGHT_DIM0 * Conv::OUT_AREA * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *results = (float *)((char *)scratch + SPLIT);
    const BiasRelu finish = {in->bias};
    kp::convolve<Conv, Tile>(in->x, in->weight, results, finish, scratch, stream);
    kp::pool_windows<kp::MaxOfWindow, Pool>(results, out->out, X_DIM0 * WEIGHT_DIM0, stream);
}
