// provenance: shipped
/* AlexNet: x [1024][3][224][224] through five convolutions with ReLU, of which the first two and
 * the last end with the largest of windows of 3 x 3, stride 2, and three linear layers of 4096,
 * 4096 and 1000 features.
 *
 * Idea: products at fp32 accuracy in turn, with bias and ReLU in their epilogues (convolve.cuh);
 * windows are joined a block a plane (pools.cuh), those of the last by the first linear layer. In
 * linear layers the images are the operand that is split (split_linear.cuh). All three passes are
 * in TF32: layers in a row pass on what rests in bf16 lose.
 * Floor: 2.33 TFLOP of products, three times over the TF32 rate, 16.9 ms; this method also moves
 * 2.4 GB for windows, 0.6 ms.
 * Measured: not yet. */
#include "task.h"
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
template <class C> using Tile = kp::Tile<C::FILTERS <= 96 ? 96 : 128, kp::Tf32Rest>;
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
using Linear1 = kp::SplitLinear<IMAGES, FC1_WEIGHT_DIM1, FC1_WEIGHT_DIM0>;
using Linear2 = kp::SplitLinear<IMAGES, FC1_WEIGHT_DIM0, FC2_WEIGHT_DIM0>;
using Linear3 = kp::SplitLinear<IMAGES, FC2_WEIGHT_DIM0, FC3_WEIGHT_DIM0>;

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
constexpr size_t largest(size_t a, size_t b) {
    return a > b ? a : b;
}
template <class C> constexpr size_t results() {
    return (size_t)C::ROWS * C::FILTERS;
}
template <class C> constexpr size_t split() {
    return kp::split_bytes<C, Tile<C>>();
}
struct Scratch {
    alignas(16) char split[largest(largest(largest(split<Conv2>(), split<Conv3>()),
                                           largest(split<Conv4>(), split<Conv5>())),
                                   largest(Linear1::SPLIT, Linear2::SPLIT))];
    alignas(16) float first[results<Conv1>()], second[results<Conv2>()]; /* and others in turns */
    alignas(16) float parts[largest(Linear1::WORDS, largest(Linear2::WORDS, Linear3::WORDS))];
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
    convolve(Conv1(), in->x, in->conv1_weight, in->conv1_bias, a);
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
