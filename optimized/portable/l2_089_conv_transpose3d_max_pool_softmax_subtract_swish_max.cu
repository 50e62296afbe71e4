// provenance: shipped
/* The largest over the filters of swish(softmax over the filters - a number for each), of the
 * largest of each window of 2 x 2 x 2 of a transposed convolution, stride 2:
 * x [128][3][16][32][32], weight [3][16][3][3][3] -> [128][16][32][32].
 *
 * Idea: a thread has the largest of its windows in registers, four filters after four
 * (doubled.cuh), and leaves them to itself in shared memory until all filters are there.
 * Floor: 5.4 GFLOP in fp32, 107 us; 0.02 GiB read, 8 us.
 * Measured: 213 us on an H200, 50 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "doubled.cuh"
#include "extremes.cuh"
#include "window_maps.cuh"

using Conv = kp::Doubled<X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, X_DIM2, X_DIM3, X_DIM4, true>;

struct Largest {
    static constexpr int BLOCKS = 3;
    struct State {
        float most[Conv::WINDOWS][4];
    };
    const float *subtract;
    float *out;

    /* A column is a thread's own. */
    static __device__ __forceinline__ float (&kept())[Conv::FILTERS][Conv::WINDOWS][Conv::THREADS] {
        __shared__ float most[Conv::FILTERS][Conv::WINDOWS][Conv::THREADS];
        return most;
    }
    __device__ __forceinline__ void begin(State &) const {}
    __device__ __forceinline__ void take(State &s, const Conv::Place &, int part,
                                         const float (&v)[Conv::WINDOWS][4]) const {
#pragma unroll
        for (int i = 0; i < Conv::WINDOWS; i++)
#pragma unroll
            for (int f = 0; f < 4; f++)
                s.most[i][f] = part ? kp::larger(s.most[i][f], v[i][f]) : v[i][f];
    }
    __device__ __forceinline__ void next(State &s, const Conv::Place &, int filter) const {
#pragma unroll
        for (int i = 0; i < Conv::WINDOWS; i++)
#pragma unroll
            for (int f = 0; f < 4; f++) kept()[filter + f][i][threadIdx.x] = s.most[i][f];
    }
    __device__ __forceinline__ void end(State &, const Conv::Place &at) const {
#pragma unroll
        for (int i = 0; i < Conv::WINDOWS; i++) {
            float v[Conv::FILTERS];
#pragma unroll
            for (int f = 0; f < Conv::FILTERS; f++) v[f] = kept()[f][i][threadIdx.x];
            kp::softmax_values(v);
            float most = -INFINITY;
#pragma unroll
            for (int f = 0; f < Conv::FILTERS; f++)
                most = kp::larger(most, kp::Swish()(v[f] - __ldg(subtract + f)));
            out[(long long)at.image * OUT_DIM1 * OUT_DIM2 * OUT_DIM3 + at.window(i)] = most;
        }
    }
};

extern "C" size_t scratch_bytes(void) {
    return 0;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *,
                       cudaStream_t stream) {
    kp::doubled<Conv>(in->x, in->conv_transpose_weight, in->conv_transpose_bias, X_DIM0,
                      Largest{in->subtract, out->out}, stream);
}
