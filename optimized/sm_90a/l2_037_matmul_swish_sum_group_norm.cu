// provenance: shipped
/* t = swish(x * transpose(W) + matmul_bias) + bias; out = group norm of t in 64 groups of 64
 * features, with a weight and a bias a feature. A group is what four neighbouring lanes of the
 * product hold of a row, so that all of it is done in the epilogue.
 *
 * Idea: three TF32 passes on the tensor cores (gemm_tf32x3.cuh). The passes in bf16 of the other
 * products miss the tolerance here: the norm can divide by little.
 * Floor: 6 M N K flops over the TF32 rate: 1990 us.
 * Measured on an H200: 2230 us, 89 % of the floor; cuBLAS fp32, the product alone: 5470 us. */
#include "task.h"
#include "gemm_tf32x3.cuh"
#include "reduce.cuh"

constexpr int ROWS = X_DIM0, DEPTH = X_DIM1, COLUMNS = MATMUL_WEIGHT_DIM0, GROUP = 64;

/* v * sigmoid(v) by the fast exponential and division: a few units in the last place. */
__device__ __forceinline__ float swish(float v) {
    return __fdividef(v, 1.0f + __expf(-v));
}

/* Epilogue: the features, normalised over their group. */
struct StoreGroupNorm {
    float *out;
    const float *matmul_bias, *bias, *weight, *norm_bias;

    __device__ __forceinline__ void tile(const tf32x3::Part<true> &part, int row,
                                         int column) const {
#pragma unroll
        for (int group = 0; group < 2; group++) normalise(part, row, column, group);
    }

    /* One group of the thread's four rows: 16 features of each. */
    __device__ __forceinline__ void normalise(const tf32x3::Part<true> &part, int row, int column,
                                              int group) const {
        float t[4][16], mean[4] = {}, scale[4] = {};
        column += group * GROUP;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const float2 mb = __ldg((const float2 *)(matmul_bias + column + 8 * j));
            const float2 b = __ldg((const float2 *)(bias + column + 8 * j));
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const float *v = part.v[r / 2] + group * 32 + 4 * j + r % 2 * 2;
                t[r][2 * j] = swish(v[0] + mb.x) + b.x;
                t[r][2 * j + 1] = swish(v[1] + mb.y) + b.y;
                mean[r] += t[r][2 * j] + t[r][2 * j + 1];
            }
        }
#pragma unroll
        for (int r = 0; r < 4; r++) mean[r] = warp_reduce<4>(mean[r], Add()) * (1.0f / GROUP);
#pragma unroll
        for (int r = 0; r < 4; r++)
#pragma unroll
            for (int j = 0; j < 16; j++) {
                t[r][j] -= mean[r];
                scale[r] += t[r][j] * t[r][j];
            }
#pragma unroll
        for (int r = 0; r < 4; r++)
            scale[r] = rsqrtf(warp_reduce<4>(scale[r], Add()) * (1.0f / GROUP) + 1e-5f);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const float2 w = __ldg((const float2 *)(weight + column + 8 * j));
            const float2 b = __ldg((const float2 *)(norm_bias + column + 8 * j));
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const long long at = (long long)(row + part.row(r / 2, r % 2)) * COLUMNS + column;
                __stcs((float2 *)(out + at + 8 * j),
                       make_float2(t[r][2 * j] * scale[r] * w.x + b.x,
                                   t[r][2 * j + 1] * scale[r] * w.y + b.y));
            }
        }
    }
};

extern "C" size_t scratch_bytes(void) {
    return tf32x3::split_bytes(COLUMNS, DEPTH);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const tf32x3::AlongDepth<DEPTH> x = {in->x};
    const StoreGroupNorm store = {out->out, in->matmul_bias, in->bias, in->group_norm_weight,
                                  in->group_norm_bias};
    tf32x3::product<false, true>(x, in->matmul_weight, DEPTH, store, ROWS, COLUMNS, DEPTH, scratch,
                                 stream);
}
