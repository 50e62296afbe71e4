// provenance: shipped
/* t = the largest of each row of linear, x 1024 x 8192, weight 8192 x 8192, with bias; gelu(t -
 * mean(t)), the mean over that one value: zero wherever t is finite. Computed as written, which
 * shows a t that is not. Computed as weight * transpose(x), as the smaller operand is to be split
 * beforehand.
 *
 * Idea: one pass in TF32 and two in bf16 on the tensor cores (product.cuh), whose epilogue leaves
 * the largest of 32 features of a row (reducing_stores.cuh): 1 MB; a small kernel joins them.
 * Floor: 2 M N K flops over the TF32 rate and 4 M N K over that of bf16, 696 us; 288 MiB, 71 us.
 * Measured: 710.8 us on an H200, 98 % of the floor.
 * Spills 16 bytes a thread (stored and loaded) on sm_90a. */
#include "task.h"
#include "activations.cuh"
#include "extremes.cuh"
#include "operands.cuh"
#include "reducing_stores.cuh"

using Sizes = kp::Matrices<GEMM_WEIGHT_DIM0, X_DIM0, X_DIM1>;
using Tile = kp::TileFor<Sizes, 128>;

struct Linear {
    const float *bias;
    __device__ __forceinline__ float operator()(float v, int feature, int) const {
        return v + __ldg(bias + feature);
    }
};

struct Largest {
    struct State {
        float top;
    };
    static constexpr float NEUTRAL = -INFINITY;
    static __device__ __forceinline__ State none() { return {-INFINITY}; }
    static __device__ __forceinline__ void take(State &s, const float4 (&v)[1]) {
        const float top = kp::larger(kp::larger(v[0].x, v[0].y), kp::larger(v[0].z, v[0].w));
        s.top = kp::larger(s.top, top);
    }
    static __device__ __forceinline__ State join(State a, State b) {
        return {kp::larger(a.top, b.top)};
    }
    static __device__ __forceinline__ float value(State s) { return s.top; }
};

struct Finish {
    __device__ __forceinline__ float operator()(float top) const {
        const float mean = top / OUT_DIM1;
        return kp::Gelu()(top - mean);
    }
};

using Store = kp::ReduceColumns<Linear, Largest, Sizes, Tile>;

extern "C" size_t scratch_bytes(void) {
    return kp::split_bytes<Sizes, Tile>() + kp::parts_bytes<Store>();
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    const kp::Along<GEMM_WEIGHT_DIM0, X_DIM1> weight = {{}, in->gemm_weight};
    const kp::Along<X_DIM0, X_DIM1> x = {{}, in->x};
    auto *part = (Store::State *)((char *)scratch + kp::split_bytes<Sizes, Tile>());
    const Store store = {{in->gemm_bias}, part};
    kp::product<Sizes, Tile>(weight, x, store, scratch, stream);
    kp::join_parts<Store, Finish>(part, out->out, stream);
}
