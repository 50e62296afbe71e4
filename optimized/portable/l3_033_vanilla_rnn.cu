// provenance: shipped
/* One step of a plain recurrent network: linear(tanh(linear(x beside hidden))), 256 rows of 16384
 * and 16384 features to 16384, to 8192.
 *
 * Idea: two products at fp32 accuracy (product.cuh), weights times features; 16384 x 256 are 128
 * tiles, one for each multiprocessor but four.
 * Floor: 344 GFLOP of products with residuals in bf16, 1720 us; 2.6 GB read, 0.58 ms.
 * Measured: 1982 us on an H200, 87 % of the floor.
 * Spills 16 bytes a thread (stored and loaded) on sm_90a. */
#include "task.h"
#include "activations.cuh"
#include "operands.cuh"
#include "stores.cuh"

constexpr int ROWS = X_DIM0, HIDDEN = I2H_WEIGHT_DIM0, BOTH = I2H_WEIGHT_DIM1;
constexpr int OUT = H2O_WEIGHT_DIM0, X = X_DIM1;
static_assert(X + INITIAL_HIDDEN_DIM1 == BOTH && X % 4 == 0 && BOTH % 4 == 0, "whole float4");

struct Activate {
    const float *bias;
    __device__ __forceinline__ float operator()(float v, int feature, int) const {
        return kp::Tanh()(v + __ldg(bias + feature));
    }
};
struct Finish {
    const float *bias;
    __device__ __forceinline__ float operator()(float v, int feature, int) const {
        return v + __ldg(bias + feature);
    }
};

using ToHidden = kp::Matrices<HIDDEN, ROWS, BOTH>;
using ToOut = kp::Matrices<OUT, ROWS, HIDDEN>;
using Tile = kp::TileFor<ToHidden, 128>;
using OutTile = kp::TileFor<ToOut, 64>; /* as many tiles as in the first product */

/* to[row] = x[row] beside hidden[row]. */
__global__ void __launch_bounds__(256)
    join(const float *__restrict__ x, const float *__restrict__ hidden, float *__restrict__ to) {
    const int i = blockIdx.x * 256 + threadIdx.x, row = i / (BOTH / 4), k = i % (BOTH / 4) * 4;
    if (row >= ROWS) return;
    const float *from =
        k < X ? x + (long long)row * X + k : hidden + (long long)row * (BOTH - X) + (k - X);
    ((float4 *)to)[i] = __ldg((const float4 *)from);
}

/* Scratch: a split operand; what was joined; the hidden features. */
constexpr size_t FIRST = kp::split_bytes<ToHidden, Tile>();
constexpr size_t SECOND = kp::split_bytes<ToOut, OutTile>();
constexpr size_t SPLIT = FIRST > SECOND ? FIRST : SECOND;

extern "C" size_t scratch_bytes(void) {
    return SPLIT + (size_t)ROWS * (BOTH + HIDDEN) * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *joined = (float *)((char *)scratch + SPLIT), *hidden = joined + (size_t)ROWS * BOTH;
    const kp::Along<HIDDEN, BOTH> to_hidden = {{}, in->i2h_weight};
    const kp::Along<ROWS, BOTH> features = {{}, joined};
    const kp::Along<OUT, HIDDEN> to_out = {{}, in->h2o_weight};
    const kp::Along<ROWS, HIDDEN> said = {{}, hidden};
    const kp::StoreColumns<Activate, HIDDEN, ROWS> store = {{in->i2h_bias}, hidden};
    const kp::StoreColumns<Finish, OUT, ROWS> store_out = {{in->h2o_bias}, out->out};
    join<<<(ROWS * (BOTH / 4) + 255) / 256, 256, 0, stream>>>(in->x, in->initial_hidden, joined);
    kp::product<ToHidden, Tile>(to_hidden, features, store, scratch, stream);
    kp::product<ToOut, OutTile>(to_out, said, store_out, scratch, stream);
}
