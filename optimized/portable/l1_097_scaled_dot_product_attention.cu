// provenance: shipped
/* Attention without mask: softmax(Q K^T / sqrt(1024)) V for 32 x 32 heads, 512 x 1024 each.
 *
 * Idea: three passes, the scores of all heads in scratch: a batched product, a softmax with one
 * warp a row, a batched product (gemm.cuh). A head of 1024 is too wide for a fused pass in fp32
 * registers, and the scores are a quarter of the traffic.
 * Floor: 4 B S S D flops over the fp32 rate (B heads of S x D); memory hides behind them.
 * Not measured: the H200 and the H100 take the kernel of sm_90a. */
#include "task.h"
#include "gemm.cuh"
#include "reduce.cuh"

constexpr int HEADS = Q_DIM0 * Q_DIM1, QUERIES = Q_DIM2, KEYS = K_DIM2, WIDTH = Q_DIM3;
constexpr int WARPS = 8, FOURS = KEYS / 128; /* warps a block; float4 of a row a lane */
static_assert(QUERIES % 128 == 0, "heads of whole tiles");
static_assert(KEYS % 128 == 0 && HEADS * QUERIES % WARPS == 0, "whole rows in registers");

/* The scores' factor, 1 / sqrt(WIDTH). */
struct Scale {
    __device__ __forceinline__ float operator()(float v, int) const { return v * (1.0f / 32); }
};
static_assert(WIDTH == 32 * 32, "the root in Scale");

/* Softmax of each row of scores, in place, a warp a row. */
__global__ void __launch_bounds__(WARPS * 32) softmax_rows_kernel(float *__restrict__ score) {
    const long long row = (long long)blockIdx.x * WARPS + threadIdx.x / 32;
    float4 *p = (float4 *)(score + row * KEYS) + threadIdx.x % 32;
    float4 v[FOURS];
    float top = __int_as_float(0xff800000); /* -inf */
#pragma unroll
    for (int j = 0; j < FOURS; j++) {
        v[j] = p[j * 32];
        top = fmaxf(top, fmaxf(fmaxf(v[j].x, v[j].y), fmaxf(v[j].z, v[j].w)));
    }
    top = warp_reduce(top, Max());
    float sum = 0;
#pragma unroll
    for (int j = 0; j < FOURS; j++) {
        v[j] = make_float4(expf(v[j].x - top), expf(v[j].y - top), expf(v[j].z - top),
                           expf(v[j].w - top));
        sum += (v[j].x + v[j].y) + (v[j].z + v[j].w);
    }
    const float f = 1.0f / warp_reduce(sum, Add());
#pragma unroll
    for (int j = 0; j < FOURS; j++)
        p[j * 32] = make_float4(v[j].x * f, v[j].y * f, v[j].z * f, v[j].w * f);
}

extern "C" size_t scratch_bytes(void) {
    return (size_t)HEADS * QUERIES * KEYS * sizeof(float);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    float *score = (float *)scratch;
    const AlongDepth q = {in->Q, WIDTH, QUERIES * WIDTH};
    const AlongDepth k = {in->K, WIDTH, KEYS * WIDTH};
    const StoreRows<Scale> to_score = {{}, score, KEYS, QUERIES * KEYS};
    product<128>(q, k, to_score, QUERIES, KEYS, WIDTH, HEADS, stream);

    softmax_rows_kernel<<<HEADS * QUERIES / WARPS, WARPS * 32, 0, stream>>>(score);

    const AlongDepth p = {score, KEYS, QUERIES * KEYS};
    const AcrossDepth v = {in->V, WIDTH, KEYS * WIDTH};
    const StoreRows<Same> to_out = {{}, out->out, WIDTH, QUERIES * WIDTH};
    product<128>(p, v, to_out, QUERIES, WIDTH, KEYS, HEADS, stream);
}
