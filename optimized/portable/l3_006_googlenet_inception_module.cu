// provenance: shipped
/* An inception module, x [10][480][224][224] -> [10][512][224][224], side by side: a 1 x 1
 * convolution to 192 channels; one to 96, then 3 x 3 to 208; one to 16, then 5 x 5 to 48; and one
 * to 64 of the largest of windows of 3 x 3.
 *
 * Idea: products at fp32 accuracy. The 1 x 1 convolutions of x are one product of 304 columns, so
 * that x is read once for them; the results of the last two lie side by side for the convolutions
 * that follow. Of 208 filters 128 are a product and 80 another, which two tiles of 128 would not
 * fill. Each stores where its part of the result is. Windows are a pass of their own (pools.cuh).
 * Floor: 377 GFLOP in two passes in TF32 and one in bf16, 2.28 ms; 2.0 GB, 0.45 ms. This method
 * also moves 3.3 GB, and multiplies 224 columns where there are 208.
 * Measured on an H200: 3.64 ms, 63 % of the floor. */
#include "task.h"
#include "convolve.cuh"
#include "operands.cuh"
#include "pools.cuh"

constexpr int IMAGES = X_DIM0, DEPTH = X_DIM1, Y = X_DIM2, X = X_DIM3, PIXELS = Y * X;
constexpr int ONE = BRANCH1X1_WEIGHT_DIM0, THREE = BRANCH3X3_1_WEIGHT_DIM0;
constexpr int FIVE = BRANCH5X5_1_WEIGHT_DIM0, POOLED = BRANCH_POOL_1_WEIGHT_DIM0;
constexpr int TO_THREE = BRANCH3X3_0_WEIGHT_DIM0, TO_FIVE = BRANCH5X5_0_WEIGHT_DIM0;
constexpr int BETWEEN = TO_THREE + TO_FIVE, FILTERS = ONE + THREE + FIVE + POOLED;
static_assert(FILTERS == OUT_DIM1 && PIXELS % 4 == 0, "all parts, in whole float4");

/* The 1 x 1 convolutions: pixels of an image by channels. All slabs, but the compiler must not know
 * how many: it would unroll them and spill their addresses. */
template <int COLUMNS> struct Pointwise : kp::Matrices<PIXELS, COLUMNS, DEPTH, IMAGES, true> {
    static __device__ __forceinline__ int end_slab(int, int row, int, int, int) {
        return min(Pointwise::SLABS, Pointwise::SLABS + row);
    }
};
using Image = kp::Across<PIXELS, DEPTH, PIXELS, (long long)DEPTH * PIXELS>;
using Joint = Pointwise<ONE + BETWEEN>;
using JointTile = kp::TileFor<Joint, 64>;
static_assert(ONE % JointTile::N == 0, "a tile is stored to one place");

/* What stands in for the joint matrix of weights, and for its bias. */
struct Weights {
    const float *one, *three, *five;
    __device__ __forceinline__ const float *row(int column, int width) const {
        if (column < ONE) return one + column * width;
        column -= ONE;
        return column < TO_THREE ? three + column * width : five + (column - TO_THREE) * width;
    }
};
struct JointWeight : Weights {
    static constexpr bool ALONG_DEPTH = true;
    __device__ __forceinline__ float at(int, int column, int slab, int k) const {
        k += slab * kp::TILE_K;
        return column < ONE + BETWEEN && k < DEPTH ? __ldg(row(column, DEPTH) + k) : 0.0f;
    }
};
struct JointBias : Weights {
    __device__ __forceinline__ float operator()(float v, int, int column) const {
        return v + __ldg(row(column, 1));
    }
};

/* To out[image][column][pixel], or to between[image][column - ONE][pixel]. */
struct StoreJoint {
    JointBias f;
    float *out, *between;
    template <class P>
    __device__ __forceinline__ void tile(P &part, int image, int row, int column) const {
        float *to = column < ONE ? out + ((long long)image * FILTERS + column) * PIXELS
                                 : between + ((long long)image * BETWEEN + column - ONE) * PIXELS;
        long long at[4];
        bool inside[4];
#pragma unroll
        for (int r = 0; r < 4; r++) at[r] = r, inside[r] = row + r < PIXELS;
        kp::store_columns<Joint::COLUMNS, PIXELS, true>(part, f, row, column, column, to + row, at,
                                                        inside);
    }
};

/* C with results as a part of the module's, and channels as a part of those between. */
template <class C> struct PartOf : C {
    static constexpr int CHANNELS = BETWEEN, FILTERS = ::FILTERS;
    static constexpr bool BATCH_FASTEST = false; /* of one; as it is, the compiler spills nothing */
};
template <int FROM, int TO, int KERNEL>
using Same = PartOf<kp::Convolution<IMAGES, FROM, TO, 1, kp::Axis<X, KERNEL, 1, KERNEL / 2>,
                                    kp::Axis<Y, KERNEL, 1, KERNEL / 2>>>;
constexpr int WIDE = 128; /* of the 208 filters, and what is left is less */
static_assert(THREE > WIDE && THREE <= WIDE + 96, "two tiles");
using Conv3 = Same<TO_THREE, WIDE, 3>;
using Rest3 = Same<TO_THREE, THREE - WIDE, 3>;
using Conv5 = Same<TO_FIVE, FIVE, 5>;
using Tile3 = kp::TileFor<Conv3, WIDE>;
using RestTile3 = kp::TileFor<Rest3, 96>;
using Tile5 = kp::TileFor<Conv5, 48>;

using Pool = kp::PoolShape<kp::Windows<1, 1>, kp::Windows<Y, 3, 1, 1>, kp::Windows<X, 3, 1, 1>,
                           (X + 31) / 32 * 32, 1, 14>;
using Last = Pointwise<POOLED>;
using LastTile = kp::TileFor<Last, 64>;

/* What scratch holds. */
struct Scratch {
    alignas(16) char split[kp::split_bytes<Joint, JointTile>()];
    alignas(16) char split3[kp::split_bytes<Conv3, Tile3>()];
    alignas(16) char rest3[kp::split_bytes<Rest3, RestTile3>()];
    alignas(16) char split5[kp::split_bytes<Conv5, Tile5>()];
    alignas(16) char split_last[kp::split_bytes<Last, LastTile>()];
    alignas(32) float between[(size_t)IMAGES * BETWEEN * PIXELS];
    alignas(32) float pooled[(size_t)IMAGES * DEPTH * PIXELS];
};

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Scratch *s = (Scratch *)scratch;
    float *to = out->out;
    const JointWeight weight = {
        {in->branch1x1_weight, in->branch3x3_0_weight, in->branch5x5_0_weight}};
    const StoreJoint store = {
        {{in->branch1x1_bias, in->branch3x3_0_bias, in->branch5x5_0_bias}}, to, s->between};
    kp::product<Joint, JointTile>(Image{{}, in->x}, weight, store, s->split, stream);
    kp::convolve<Conv3, Tile3>(s->between, in->branch3x3_1_weight, to + (size_t)ONE * PIXELS,
                               kp::AddBias{in->branch3x3_1_bias}, s->split3, stream);
    kp::convolve<Rest3, RestTile3>(s->between,
                                   in->branch3x3_1_weight + (size_t)WIDE * TO_THREE * Rest3::KERNEL,
                                   to + (size_t)(ONE + WIDE) * PIXELS,
                                   kp::AddBias{in->branch3x3_1_bias + WIDE}, s->rest3, stream);
    kp::convolve<Conv5, Tile5>(s->between + (size_t)TO_THREE * PIXELS, in->branch5x5_1_weight,
                               to + (size_t)(ONE + THREE) * PIXELS,
                               kp::AddBias{in->branch5x5_1_bias}, s->split5, stream);

    kp::pool_windows<kp::MaxOfWindow, Pool>(in->x, s->pooled, IMAGES * DEPTH, stream);
    const kp::Along<POOLED, DEPTH> last = {{}, in->branch_pool_1_weight};
    const kp::StoreColumns<kp::AddBias, PIXELS, POOLED, (long long)FILTERS *PIXELS> store_last = {
        {in->branch_pool_1_bias}, to + (size_t)(FILTERS - POOLED) * PIXELS};
    kp::product<Last, LastTile>(Image{{}, s->pooled}, last, store_last, s->split_last, stream);
}
