// provenance: shipped
/* The means of windows of 2 x 2 x 2 of a transposed convolution, stride 2, scaled, plus a number
 * for each filter, scaled: x [128][3][16][32][32], weight [3][16][3][3][3] ->
 * [128][16][15][31][31].
 *
 * Idea: a window is computed by one thread, and only its mean is stored (doubled.cuh).
 * Floor: 5.4 GFLOP in fp32, 107 us; 0.02 GiB read and 0.11 GiB written, 34 us.
 * Measured: 151.1 us on an H200, 71 % of the floor. */
#include "task.h"
#include "doubled.cuh"

using Conv = kp::Doubled<X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, X_DIM2, X_DIM3, X_DIM4, false>;

/* What a thread adds up of its windows, for four filters. */
struct Means {
    static constexpr int BLOCKS = 3;
    struct State {
        float sum[Conv::WINDOWS][4];
    };
    const float *scale1, *bias, *scale2;
    float *out;

    __device__ __forceinline__ void begin(State &) const {}
    __device__ __forceinline__ void take(State &s, const Conv::Place &, int part,
                                         const float (&v)[Conv::WINDOWS][4]) const {
        const float scale = __ldg(scale1);
#pragma unroll
        for (int i = 0; i < Conv::WINDOWS; i++)
#pragma unroll
            for (int f = 0; f < 4; f++)
                s.sum[i][f] = part ? fmaf(v[i][f], scale, s.sum[i][f]) : v[i][f] * scale;
    }
    __device__ __forceinline__ void next(State &s, const Conv::Place &at, int filter) const {
        const float scale = __ldg(scale2);
#pragma unroll
        for (int f = 0; f < 4; f++) {
            const float add = __ldg(bias + filter + f);
            float *to = out + (long long)(at.image * Conv::FILTERS + filter + f) * OUT_DIM2 *
                                  OUT_DIM3 * OUT_DIM4;
#pragma unroll
            for (int i = 0; i < Conv::WINDOWS; i++)
                if (at.whole(i)) to[at.window(i)] = (s.sum[i][f] * 0.125f + add) * scale;
        }
    }
    __device__ __forceinline__ void end(State &, const Conv::Place &) const {}
};

extern "C" size_t scratch_bytes(void) {
    return 0;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    kp::doubled<Conv>(in->x, in->conv_transpose_weight, in->conv_transpose_bias, X_DIM0,
                      Means{in->scale1, in->bias, in->scale2, out->out}, stream);
}
