// provenance: shipped
/* batch norm of linear times a number for each feature, by the batch's own mean and variance, x
 * 16384 x 4096, weight 4096 x 4096, with bias.
 *
 * Idea: a product at fp32 accuracy (product.cuh), whose epilogue also writes the sum and the
 * squares about the mean of 32 rows of each feature (channel_norm.cuh): 16 MB, which a small
 * kernel joins. A last one maps the results in place. Sums this long hide what rests in bf16 lose,
 * behind a norm, too. Floor: one product in TF32 and two in bf16, 2752 us; 0.56 GiB, 136 us; the
 * norm reads and writes 512 MiB, 125 us. Measured: 3145 us on an H200, 88 % of the floor. Spills
 * 16 bytes a thread (stored and loaded) on sm_90a. */
#include "task.h"
#include "channel_norm.cuh"
#include "group_stores.cuh"
#include "operands.cuh"
#include "stores.cuh"

constexpr int ROWS = X_DIM0, FEATURES = GEMM_WEIGHT_DIM0;
using Sizes = kp::Matrices<ROWS, FEATURES, X_DIM1>;
using Tile = kp::Tile<128>;
using Parts = kp::ProductParts<Sizes>;
constexpr int THREADS = 128;
static_assert(FEATURES % 4 == 0, "whole float4");

/* Values are stored in this unit until they are normalised, so that squares of 2^110 do not
 * overflow. */
constexpr float UNIT = 0x1p-50f;
constexpr double EPS = 1e-5 * UNIT * UNIT;

struct Linear {
    const float *gemm_bias, *scale;
    __device__ __forceinline__ float operator()(float v, int, int feature) const {
        return (v + __ldg(gemm_bias + feature)) * __ldg(scale + feature) * UNIT;
    }
};

using Rows = kp::StoreRows<kp::Same, ROWS, FEATURES>;
using Store = kp::OverValues<Sizes, Linear, kp::WithMoments<Sizes, Rows>>;

/* y normalised by its features, in place, from the end, which may be in the L2 cache. A float4 a
 * thread. */
__global__ void __launch_bounds__(THREADS)
    normalize_kernel(float4 *__restrict__ y, const kp::ChannelNorm *__restrict__ norms) {
    const long long at = (long long)(gridDim.x - 1 - blockIdx.x) * THREADS + threadIdx.x;
    if (at >= (long long)ROWS * FEATURES / 4) return;
    const int feature = (int)(at % (FEATURES / 4)) * 4;
    auto map = [&](float v, int e) { return kp::ChannelNorm::of(norms, feature + e)(v); };
    const float4 v = y[at];
    y[at] = make_float4(map(v.x, 0), map(v.y, 1), map(v.z, 2), map(v.w, 3));
}

/* The split weight; the norms; what they are made of. */
constexpr size_t SPLIT = kp::split_bytes<Sizes, Tile>();
constexpr size_t NORMS = FEATURES * sizeof(kp::ChannelNorm);

extern "C" size_t scratch_bytes(void) {
    return SPLIT + NORMS + Parts::BYTES;
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    auto *norms = (kp::ChannelNorm *)((char *)scratch + SPLIT);
    auto *parts = (kp::Centred *)((char *)norms + NORMS);
    const kp::Along<ROWS, X_DIM1> x = {{}, in->x};
    const kp::Along<FEATURES, X_DIM1> weight = {{}, in->gemm_weight};
    const Store store = {{{{}, out->out}, parts}, {in->gemm_bias, in->scale}};
    kp::product<Sizes, Tile>(x, weight, store, scratch, stream);
    kp::join_channels<Parts>(parts, in->bn_weight, in->bn_bias, EPS, norms, stream);
    constexpr unsigned BLOCKS = ((long long)ROWS * FEATURES / 4 + THREADS - 1) / THREADS;
    normalize_kernel<<<BLOCKS, THREADS, 0, stream>>>((float4 *)out->out, norms);
}
