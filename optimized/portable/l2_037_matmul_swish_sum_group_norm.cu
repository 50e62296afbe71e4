// provenance: shipped
/* group norm (groups of 64 features) of swish(linear) + bias, x 32768 x 1024, weight 4096 x 1024,
 * with a bias of its own. A group is what four neighbouring lanes of the product hold of a row, so
 * that all of it is done in the epilogue.
 *
 * Idea: a product at fp32 accuracy (product.cuh), with rests in bf16: at up to half of the limit
 * where contents are badly scaled, as the norm can divide by little.
 * Floor: one product in TF32 and two in bf16, 1376 us; 0.64 GiB, 161 us.
 * Measured: 1705 us on an H200, 81 % of the floor. Spills 16 bytes a thread (stored and loaded) on
 * sm_90a. */
#include "task.h"
#include "operands.cuh"
#include "states.cuh"

constexpr int ROWS = X_DIM0, DEPTH = X_DIM1, COLUMNS = MATMUL_WEIGHT_DIM0, GROUP = 64;
static_assert(COLUMNS % GROUP == 0, "whole groups");
using Sizes = kp::Matrices<ROWS, COLUMNS, DEPTH>;
using Tile = kp::Tile<128>;

/* v * sigmoid(v) by the fast exponential and division: a few units in the last place. */
__device__ __forceinline__ float swish(float v) {
    return __fdividef(v, 1.0f + __expf(-v));
}

/* Deviations are squared in this unit, so that squares of 2^110 do not overflow. */
constexpr float UNIT = 0x1p-50f;

/* The features, normalised over their group. */
struct StoreGroupNorm {
    float *out;
    const float *matmul_bias, *bias, *weight, *norm_bias;

    template <class P>
    __device__ __forceinline__ void tile(P &part, int, int row, int column) const {
#pragma unroll
        for (int group = 0; group < 2; group++)
            if (COLUMNS % P::N == 0 || column + group * GROUP < COLUMNS)
                normalise(part, row, column + group * GROUP, group * 32);
    }

    /* One group of the thread's four rows, 16 features of each: part.v[][first] and 31 more. */
    template <class P>
    __device__ __forceinline__ void normalise(P &part, int row, int column, int first) const {
        float mean[4] = {};
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const float2 mb = __ldg((const float2 *)(matmul_bias + column + 8 * j));
            const float2 b = __ldg((const float2 *)(bias + column + 8 * j));
#pragma unroll
            for (int r = 0; r < 4; r++) {
                float *v = part.v[r / 2] + first + 4 * j + r % 2 * 2;
                v[0] = swish(v[0] + mb.x) + b.x;
                v[1] = swish(v[1] + mb.y) + b.y;
                mean[r] += v[0] + v[1];
            }
        }
#pragma unroll
        for (int r = 0; r < 4; r++) {
            float square = 0.0f;
            mean[r] = kp::lanes_sum<4>(mean[r]) * (1.0f / GROUP);
#pragma unroll
            for (int j = 0; j < 16; j++) {
                float &v = part.v[r / 2][first + j / 2 * 4 + r % 2 * 2 + j % 2];
                v = (v - mean[r]) * UNIT;
                square += v * v;
            }
            square = kp::lanes_sum<4>(square) * (1.0f / GROUP);
            const float scale = rsqrtf(square + 1e-5f * UNIT * UNIT);
#pragma unroll
            for (int j = 0; j < 16; j++)
                part.v[r / 2][first + j / 2 * 4 + r % 2 * 2 + j % 2] *= scale;
        }
        float *const to = out + (long long)row * COLUMNS + column;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const float2 w = *(const float2 *)(weight + column + 8 * j);
            const float2 b = *(const float2 *)(norm_bias + column + 8 * j);
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const float *v = part.v[r / 2] + first + 4 * j + r % 2 * 2;
                const int m = part.row(r / 2, r % 2);
                if (!kp::whole_tiles(ROWS) && row + m >= ROWS) continue;
                __stcs((float2 *)(to + m * COLUMNS + 8 * j),
                       make_float2(v[0] * w.x + b.x, v[1] * w.y + b.y));
            }
        }
    }
};

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Sizes, Tile>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const kp::Along<ROWS, DEPTH> x = {{}, in->x};
    const kp::Along<COLUMNS, DEPTH> weight = {{}, in->matmul_weight};
    const StoreGroupNorm store = {out->out, in->matmul_bias, in->bias, in->group_norm_weight,
                                  in->group_norm_bias};
    kp::product<Sizes, Tile>(x, weight, store, scratch, stream);
}
