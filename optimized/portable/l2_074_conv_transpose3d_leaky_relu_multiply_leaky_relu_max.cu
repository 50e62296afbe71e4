// provenance: shipped
/* The largest of windows of 2 x 2 x 2 of leaky(leaky(conv) * a number for each filter), conv a
 * transposed convolution, stride 2: x [16][16][16][32][32], weight [16][32][3][3][3] ->
 * [16][32][16][32][32].
 *
 * Idea: a window is computed by one thread, and only its largest is stored (doubled.cuh).
 * Floor: 7.2 GFLOP in fp32, 142 us; 0.02 GiB read and 0.03 GiB written, 12 us.
 * Measured: 290 us on an H200, 49 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "doubled.cuh"
#include "extremes.cuh"

using Conv = kp::Doubled<X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, X_DIM2, X_DIM3, X_DIM4, true>;

struct Largest {
    static constexpr int BLOCKS = 2;
    struct State {
        int filter;
        float most[Conv::WINDOWS][4];
    };
    const float *multiplier;
    float *out;

    __device__ __forceinline__ void begin(State &s) const { s.filter = 0; }
    __device__ __forceinline__ void take(State &s, const Conv::Place &, int part,
                                         const float (&v)[Conv::WINDOWS][4]) const {
        const kp::LeakyRelu leaky = {0.2f};
#pragma unroll
        for (int f = 0; f < 4; f++) {
            const float factor = __ldg(multiplier + s.filter + f);
#pragma unroll
            for (int i = 0; i < Conv::WINDOWS; i++) {
                const float y = leaky(leaky(v[i][f]) * factor);
                s.most[i][f] = part ? kp::larger(s.most[i][f], y) : y;
            }
        }
    }
    __device__ __forceinline__ void next(State &s, const Conv::Place &at, int filter) const {
        s.filter = filter + 4;
#pragma unroll
        for (int f = 0; f < 4; f++) {
            float *to = out + (long long)(at.image * Conv::FILTERS + filter + f) * OUT_DIM2 *
                                  OUT_DIM3 * OUT_DIM4;
#pragma unroll
            for (int i = 0; i < Conv::WINDOWS; i++) to[at.window(i)] = s.most[i][f];
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
                      Largest{in->multiplier, out->out}, stream);
}
