// provenance: shipped
/* hardswish(group norm of swish(a transposed convolution, stride 2)), four groups of four filters:
 * x [128][3][16][32][32], weight [3][16][3][3][3] -> [128][16][31][63][63].
 *
 * Idea: computing the results twice takes less time than reading them (doubled.cuh). The first time
 * only the moments of the groups are kept, the second time the normalised results are stored.
 * Floor: 10.7 GFLOP in fp32, 214 us; 0.02 GiB read and 0.94 GiB written, 244 us.
 * Measured: 1124 us on an H200, 22 % of the floor. */
#include "task.h"
#include "activations.cuh"
#include "doubled.cuh"
#include "norm.cuh"

using Conv = kp::Doubled<X_DIM1, CONV_TRANSPOSE_WEIGHT_DIM1, X_DIM2, X_DIM3, X_DIM4, false>;
constexpr int GROUPS = Conv::FILTERS / 4, WARPS = Conv::THREADS / 32;
constexpr double COUNT = 4.0 * OUT_DIM2 * OUT_DIM3 * OUT_DIM4;
/* Values are normalised in a unit in which the squares of large ones do not overflow; those of
 * small ones vanish beside eps. */
constexpr float UNIT = 0x1p-50f;
constexpr double EPS = 1e-5 * UNIT * UNIT;

/* part[image][group][block of an image] = the moments of the block's results. */
struct Gather {
    static constexpr int BLOCKS = 3;
    struct State {
        Moments of;
    };
    Moments *part;

    static __device__ __forceinline__ Moments (&warps())[GROUPS][WARPS] {
        __shared__ Moments of[GROUPS][WARPS];
        return of;
    }
    __device__ __forceinline__ void begin(State &s) const { s.of = {0, 0}; }
    __device__ __forceinline__ void take(State &s, const Conv::Place &at, int part,
                                         const float (&v)[Conv::WINDOWS][4]) const {
        float4 y[Conv::WINDOWS];
        bool all = true;
#pragma unroll
        for (int i = 0; i < Conv::WINDOWS; i++) {
            kp::Swish f;
            y[i] = make_float4(f(v[i][0]) * UNIT, f(v[i][1]) * UNIT, f(v[i][2]) * UNIT,
                               f(v[i][3]) * UNIT);
            all = all && at.has(i, part);
        }
        if (all) {
            s.of.take(y[0], y[1]);
            s.of.take(y[2], y[3]);
            return;
        }
#pragma unroll
        for (int i = 0; i < Conv::WINDOWS; i++) {
            if (!at.has(i, part)) continue;
            s.of.take(y[i].x), s.of.take(y[i].y), s.of.take(y[i].z), s.of.take(y[i].w);
        }
    }
    __device__ __forceinline__ void next(State &s, const Conv::Place &, int filter) const {
        const Moments all = {kp::lanes_sum(s.of.sum), kp::lanes_sum(s.of.square)};
        if (threadIdx.x % 32 == 0) warps()[filter / 4][threadIdx.x / 32] = all;
        s.of = {0, 0};
    }
    __device__ __forceinline__ void end(State &, const Conv::Place &at) const {
        __syncthreads();
        if (threadIdx.x >= GROUPS) return;
        Moments all = {0, 0};
#pragma unroll
        for (int w = 0; w < WARPS; w++) all = all + warps()[threadIdx.x][w];
        part[(at.image * GROUPS + threadIdx.x) * Conv::BLOCKS + blockIdx.x % Conv::BLOCKS] = all;
    }
};

/* Stores the normalised results. */
struct Normalize {
    static constexpr int BLOCKS = 3;
    struct State {
        int filter;
        Standard of;
        float even[Conv::WINDOWS][4];
    };
    const Standard *group;
    const float *weight, *bias;
    float *out;

    __device__ __forceinline__ void begin(State &s) const { s.filter = 0; }
    __device__ __forceinline__ void take(State &s, const Conv::Place &at, int part,
                                         const float (&v)[Conv::WINDOWS][4]) const {
        if (part == 0) s.of = group[at.image * GROUPS + s.filter / 4];
        float *to =
            out + (long long)(at.image * Conv::FILTERS + s.filter) * OUT_DIM2 * OUT_DIM3 * OUT_DIM4;
#pragma unroll
        for (int f = 0; f < 4; f++, to += OUT_DIM2 * OUT_DIM3 * OUT_DIM4) {
            const float scale = s.of.scale, w = __ldg(weight + s.filter + f);
            const float b = __ldg(bias + s.filter + f);
#pragma unroll
            for (int i = 0; i < Conv::WINDOWS; i++) {
                const float y = (kp::Swish()(v[i][f]) * UNIT - s.of.mean) * scale;
                const float result = kp::Hardswish()(fmaf(y, w, b));
                if (part % 2)
                    kp::store_pair<Conv>(to, at, i, part - 1, s.even[i][f], result);
                else
                    s.even[i][f] = result;
            }
        }
    }
    __device__ __forceinline__ void next(State &s, const Conv::Place &, int filter) const {
        s.filter = filter + 4;
    }
    __device__ __forceinline__ void end(State &, const Conv::Place &) const {}
};

constexpr int ROWS = X_DIM0 * GROUPS;

extern "C" size_t scratch_bytes(void) {
    return (size_t)ROWS * (Conv::BLOCKS * sizeof(Moments) + sizeof(Standard));
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Moments *part = (Moments *)scratch;
    Standard *group = (Standard *)(part + (size_t)ROWS * Conv::BLOCKS);
    kp::doubled<Conv>(in->x, in->conv_transpose_weight, in->conv_transpose_bias, X_DIM0,
                      Gather{part}, stream);
    row_standard_kernel<128><<<ROWS, 128, 0, stream>>>(part, group, Conv::BLOCKS, COUNT, EPS);
    kp::doubled<Conv>(in->x, in->conv_transpose_weight, in->conv_transpose_bias, X_DIM0,
                      Normalize{group, in->group_norm_weight, in->group_norm_bias, out->out},
                      stream);
}
