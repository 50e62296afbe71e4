// provenance: shipped
/* AlexNet: x [1024][3][224][224] through five convolutions with ReLU, of which the first two and
 * the last end with the largest of windows of 3 x 3, stride 2, and three linear layers of 4096,
 * 4096 and 1000 features.
 *
 * Idea: products at fp32 accuracy in turn, with bias and ReLU in their epilogues (convolve.cuh);
 * the patches of the first are fetched 16 bytes at a time. Windows are joined a block a plane
 * (pools.cuh), those of the last convolution by the first linear layer. In linear layers the
 * images are the operand that is split (split_linear.cuh); on sm_80 their products spill 48 to 60
 * bytes a thread (stored and loaded). Sums of 1024 products and more have their rests in bf16
 * (TileFor).
 * Floor: 2.33 TFLOP of products, mostly one in TF32 and two in bf16, 11.9 ms; this method also
 * moves 2.4 GB for windows, 0.6 ms.
 * Measured on an H200: 16.2 ms, 73 % of the floor. Spills 112 bytes a thread (stored and loaded),
 * in four products, on sm_90a. */
#include "task.h"
#include <algorithm>
#include "bias_relu.cuh"
#include "convolve.cuh"
#include "pools.cuh"
#include "split_linear.cuh"

constexpr int IMAGES = X_DIM0;
static_assert(X_DIM2 == X_DIM3, "square images");

/* A convolution of squares of SIDE, and the windows of its results. */
template <int SIDE, int FROM, int TO, int KERNEL, int STRIDE, int PAD>
using Layer = kp::Convolution<IMAGES, FROM, TO, 1, kp::Axis<SIDE, KERNEL, STRIDE, PAD>,
                              kp::Axis<SIDE, KERNEL, STRIDE, PAD>>;
template <class C> using Tile = kp::TileFor<C, C::FILTERS <= 96 ? 96 : 128>;
template <class C> using Windows = kp::Windows<C::X::OUT, 3, 2>;
template <class C>
using Pool = kp::PoolShape<kp::Windows<1, 1>, Windows<C>, Windows<C>, C::X::OUT <= 32 ? 32 : 64, 1,
                           Windows<C>::OUT>; /* a plane a block */

using Conv1 = Layer<X_DIM2, X_DIM1, CONV1_WEIGHT_DIM0, CONV1_WEIGHT_DIM2, 4, 2>;
using Conv2 =
    Layer<Windows<Conv1>::OUT, Conv1::FILTERS, CONV2_WEIGHT_DIM0, CONV2_WEIGHT_DIM2, 1, 2>;
using Conv3 = Layer<Windows<Conv2>::OUT, Conv2::FILTERS, CONV3_WEIGHT_DIM0, 3, 1, 1>;
using Conv4 = Layer<Conv3::X::OUT, Conv3::FILTERS, CONV4_WEIGHT_DIM0, 3, 1, 1>;
using Conv5 = Layer<Conv4::X::OUT, Conv4::FILTERS, CONV5_WEIGHT_DIM0, 3, 1, 1>;
using Linear1 =
    kp::SplitLinear<IMAGES, FC1_WEIGHT_DIM1, FC1_WEIGHT_DIM0, kp::RestFor<FC1_WEIGHT_DIM1>>;
using Linear2 =
    kp::SplitLinear<IMAGES, FC1_WEIGHT_DIM0, FC2_WEIGHT_DIM0, kp::RestFor<FC1_WEIGHT_DIM0>>;
using Linear3 =
    kp::SplitLinear<IMAGES, FC2_WEIGHT_DIM0, FC3_WEIGHT_DIM0, kp::RestFor<FC2_WEIGHT_DIM0>>;

/* ---- the first convolution ---- */

/* Its depth: of each row of the filter (a line: LINES of them) twelve columns from -2 on, of which
 * the first two have zeros as weights, in three pieces of four; then the last column of all lines.
 * Stride 4 makes a piece of an image 16 bytes, aligned: word by word, gathering takes twice as long
 * as multiplying. (Inputs are finite: zero times them is zero.) */
constexpr int OUT = Conv1::X::OUT, SIDE = X_DIM2, AREA = SIDE * SIDE, KERNEL = 11;
constexpr int LINES = X_DIM1 * KERNEL, QUADS = 3 * LINES;
static_assert(CONV1_WEIGHT_DIM2 == KERNEL && SIDE == 4 * OUT + 4, "edges are where they are");
struct First : kp::Matrices<Conv1::ROWS, Conv1::FILTERS, 13 * LINES> {
    static __device__ __forceinline__ int end_slab(int, int row, int, int, int) {
        return min(SLABS, SLABS + row); /* all, which the compiler would unroll and spill */
    }
};

struct FirstPatches : kp::AlongSlab {
    const float *data;

    /* Of 16 rows the place in the input, in fours, and a bit if they lie at an edge. */
    struct Place {
        unsigned row[16], top, bottom, left, right, beyond;
    };
    static __device__ __forceinline__ int own_row() { return threadIdx.x % 128 / 8; }
    static __device__ __forceinline__ int own_piece() { return threadIdx.x % 8; }
    __device__ __forceinline__ Place place(int, int row) const {
        Place p = {};
#pragma unroll
        for (int r = 0; r < 16; r++) {
            const unsigned at = row + own_row() + 16 * r, pixel = at % Conv1::PIXELS;
            const unsigned x = pixel % OUT, y = pixel / OUT, image = at / Conv1::PIXELS;
            p.row[r] = image * (X_DIM1 * AREA / 4) + y * SIDE + x;
            p.top |= (y == 0) << r, p.bottom |= (y == OUT - 1) << r;
            p.left |= (x == 0) << r, p.right |= (x == OUT - 1) << r;
            p.beyond |= (at >= Conv1::ROWS) << r;
        }
        return p;
    }
    /* Where a line begins, from the places of rows, and for which of them it is outside. */
    __device__ __forceinline__ const float *line(const Place &p, int line,
                                                 unsigned &outside) const {
        const int y = line % KERNEL;
        outside = p.beyond | (y < 2 ? p.top : 0) | (y == KERNEL - 1 ? p.bottom : 0);
        return data + line / KERNEL * AREA + (y - 2) * SIDE;
    }
    __device__ __forceinline__ void fetch(const Place &p, uint32_t to, int slab) const {
        const int piece = slab * 8 + own_piece();
        unsigned outside;
        to += word(own_row(), own_piece() * 4) * 4;
        if (piece < QUADS) {
            const float *from = line(p, piece / 3, outside) + piece % 3 * 4 - 4;
            if (piece % 3 == 0) outside |= p.left;
#pragma unroll
            for (int r = 0; r < 16; r++)
                kp::copy_async<16>(to + word(16 * r, 0) * 4, from + p.row[r] * 4LL,
                                   !(outside >> r & 1));
            return;
        }
#pragma unroll 1
        for (int e = 0; e < 4; e++) {
            const int own = (piece - QUADS) * 4 + e;
            const float *from = line(p, own < LINES ? own : 0, outside) + 8;
            outside |= p.right;
#pragma unroll
            for (int r = 0; r < 16; r++)
                kp::copy_async<4>(to + (word(16 * r, 0) + e) * 4, from + p.row[r] * 4LL,
                                  own < LINES && !(outside >> r & 1));
        }
    }
};

struct FirstFilters {
    static constexpr bool ALONG_DEPTH = true;
    const float *data;
    __device__ __forceinline__ float at(int, int filter, int slab, int k) const {
        const int piece = slab * 8 + k / 4, single = (piece - QUADS) * 4 + k % 4;
        const int line = piece < QUADS ? piece / 3 : single;
        const int x = piece < QUADS ? piece % 3 * 4 + k % 4 - 2 : KERNEL - 1;
        return filter < Conv1::FILTERS && line < LINES && x >= 0
                   ? __ldg(data + (filter * LINES + line) * KERNEL + x)
                   : 0.0f;
    }
};

struct StoreFirst : kp::BiasRelu {
    float *out;
    template <class P>
    __device__ __forceinline__ void tile(P &part, int, int row, int column) const {
        long long at[4];
        bool inside[4];
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int own = row + part.row(r / 2, r % 2), image = own / Conv1::PIXELS;
            at[r] = (long long)image * (Conv1::FILTERS - 1) * Conv1::PIXELS + own;
            inside[r] = own < Conv1::ROWS;
        }
        kp::store_columns<Conv1::FILTERS, Conv1::PIXELS, false>(
            part, (const kp::BiasRelu &)*this, row, column, column, out + column * Conv1::PIXELS,
            at, inside);
    }
};

/* ---- the network ---- */

/* The first linear layer's features: the largest of each window of the last convolution. */
struct LastWindows {
    static constexpr bool ALONG_DEPTH = true;
    using W = Windows<Conv5>;
    static_assert(Conv5::FILTERS * W::OUT * W::OUT == FC1_WEIGHT_DIM1, "all windows");
    const float *data;
    __device__ __forceinline__ float at(int, int image, int slab, int k) const {
        k += slab * kp::TILE_K;
        if (image >= IMAGES || k >= FC1_WEIGHT_DIM1) return 0.0f;
        const int plane = image * Conv5::FILTERS + k / (W::OUT * W::OUT),
                  window = k % (W::OUT * W::OUT);
        const float *from = data + (long long)plane * Conv5::OUT_AREA +
                            (window / W::OUT * W::SIZE + window % W::OUT) * W::STRIDE;
        float top = __ldg(from);
#pragma unroll
        for (int i = 1; i < 9; i++) top = kp::larger(top, __ldg(from + i / 3 * W::SIZE + i % 3));
        return top;
    }
};

/* What scratch holds. */
template <class C> constexpr size_t results() {
    return (size_t)C::ROWS * C::FILTERS;
}
template <class C> constexpr size_t split() {
    return kp::split_bytes<C, Tile<C>>();
}
struct Scratch {
    alignas(16) char split[std::max({kp::split_bytes<First, Tile<Conv1>>(), split<Conv2>(),
                                     split<Conv3>(), split<Conv4>(), split<Conv5>(), Linear1::SPLIT,
                                     Linear2::SPLIT})];
    alignas(32) float first[results<Conv1>()]; /* and others in turns */
    alignas(32) float second[results<Conv2>()];
    alignas(16) float parts[std::max({Linear1::WORDS, Linear2::WORDS, Linear3::WORDS})];
};
static_assert(results<Conv5>() <= results<Conv1>() && results<Conv4>() <= results<Conv2>(), "room");

extern "C" size_t scratch_bytes(void) {
    return sizeof(Scratch);
}

extern "C" void launch(const struct Inputs *in, const struct Outputs *out, void *scratch,
                       cudaStream_t stream) {
    Scratch *s = (Scratch *)scratch;
    float *a = s->first, *b = s->second;
    const auto convolve = [&](auto layer, const float *x, const float *weight, const float *bias,
                              float *to) {
        using C = decltype(layer);
        kp::convolve<C, Tile<C>>(x, weight, to, kp::BiasRelu{bias}, s->split, stream);
    };
    const auto pool = [&](auto layer, const float *x, float *to) {
        using C = decltype(layer);
        kp::pool_windows<kp::MaxOfWindow, Pool<C>>(x, to, IMAGES * C::FILTERS, stream);
    };
    kp::product<First, Tile<Conv1>>(FirstPatches{{}, in->x}, FirstFilters{in->conv1_weight},
                                    StoreFirst{{in->conv1_bias}, a}, s->split, stream);
    pool(Conv1(), a, b);
    convolve(Conv2(), b, in->conv2_weight, in->conv2_bias, a);
    pool(Conv2(), a, b);
    convolve(Conv3(), b, in->conv3_weight, in->conv3_bias, a);
    convolve(Conv4(), a, in->conv4_weight, in->conv4_bias, b);
    convolve(Conv5(), b, in->conv5_weight, in->conv5_bias, a);
    Linear1::multiply(in->fc1_weight, LastWindows{a}, s->parts, s->split, stream);
    Linear2::multiply(in->fc2_weight, Linear1::Features{s->parts, in->fc1_bias}, s->parts, s->split,
                      stream);
    Linear3::multiply(in->fc3_weight, Linear2::Features{s->parts, in->fc2_bias}, s->parts, s->split,
                      stream);
    Linear3::finish(s->parts, in->fc3_bias, out->out, stream);
}
