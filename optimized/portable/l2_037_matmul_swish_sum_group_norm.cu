// provenance: shipped
/* t = swish(x * transpose(W) + matmul_bias) + bias; out = group norm of t in 64 groups of 64
 * features, with a weight and a bias a feature.
 *
 * Idea: a group is what eight neighbouring lanes of the product hold of a row (gemm.cuh), so that
 * all of it is done in the epilogue, with shuffles: one kernel, no intermediate in memory.
 * Floor: 2 M N K flops over the fp32 rate.
 * Measured: see results/. */
#include "task.h"
#include "activation.cuh"
#include "gemm.cuh"
#include "reduce.cuh"

constexpr int ROWS = X_DIM0, DEPTH = X_DIM1, COLUMNS = MATMUL_WEIGHT_DIM0, GROUP = 64;
static_assert(ROWS % 128 == 0 && COLUMNS % TILE_N == 0 && DEPTH % TILE_K == 0, "whole tiles");

/* Epilogue: the features, normalised over the group of 64 that this lane's eight belong to. */
struct StoreGroupNorm {
    float *out;
    const float *matmul_bias, *bias, *weight, *norm_bias;

    __device__ __forceinline__ void row(int, int m, int n, const float (&v)[8]) const {
        float t[8], sum = 0;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int column = n + j + j / 4 * 28;
            t[j] = Swish()(v[j] + __ldg(matmul_bias + column)) + __ldg(bias + column);
            sum += t[j];
        }
        const float mean = warp_reduce<8>(sum, Add()) * (1.0f / GROUP);
        float square = 0;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            t[j] -= mean;
            square += t[j] * t[j];
        }
        const float variance = warp_reduce<8>(square, Add()) * (1.0f / GROUP);
        const float scale = 1.0f / sqrtf(variance + 1e-5f);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int column = n + j + j / 4 * 28;
            t[j] = t[j] * scale * __ldg(weight + column) + __ldg(norm_bias + column);
        }
        float *p = out + (long long)m * COLUMNS + n;
        *(float4 *)p = make_float4(t[0], t[1], t[2], t[3]);
        *(float4 *)(p + 32) = make_float4(t[4], t[5], t[6], t[7]);
    }
};

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    const AlongDepth x = {in->x, DEPTH, 0};
    const AlongDepth weight = {in->matmul_weight, DEPTH, 0};
    const StoreGroupNorm store = {out->out, in->matmul_bias, in->bias, in->group_norm_weight,
                                  in->group_norm_bias};
    product<128>(x, weight, store, ROWS, COLUMNS, DEPTH, 1, stream);
}
