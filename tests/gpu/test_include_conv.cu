/* conv.cuh against a plain convolution in double. */
#include "conv.cuh"
#include "include_epilogues.cuh"
#include "include_products.cuh"

template <class S, int CHANNELS_OUT, class F> static void test_conv(int images, const char *name) {
    const Convolution c = {images, S::CHANNELS, S::D,  S::H,      S::W,  CHANNELS_OUT,
                           S::KD,  S::KH,       S::KW, S::STRIDE, S::PAD};
    begin("convolve (%s: %d x %d x %d x %d x %d, %d filters %d x %d x %d, stride %d, padding %d)",
          name, images, S::CHANNELS, S::D, S::H, S::W, CHANNELS_OUT, S::KD, S::KH, S::KW, S::STRIDE,
          S::PAD);
    check(c.pixels() == S::PIXELS && c.depth() == S::DEPTH, "%d pixels, depth %d: not %d and %d",
          S::PIXELS, S::DEPTH, c.pixels(), c.depth());
    const std::vector<float> hx = uniform(c.in_count(), 1), hw = uniform(c.weight_count(), 2);
    const std::vector<float> hb = uniform(CHANNELS_OUT, 3);
    const Buffer<float> x(hx), weight(hw), bias(hb), out(c.out_count());
    convolve<S, CHANNELS_OUT>(x.data, weight.data, out.data, images, function(F(), bias.data), 0);
    ran();
    const Exact sums = c.plain(hx, hw);
    std::vector<Want> want(out.count);
    for (size_t i = 0; i < want.size(); i++)
        want[i] = {finished(F(), sums.value[i], hb[i / S::PIXELS % CHANNELS_OUT]),
                   fp32_slack(sums.size[i] + 1, S::DEPTH)};
    compare(out, want);
    unchanged(x, hx, "x");
    unchanged(weight, hw, "weight");
}

int main() {
    start(false);
    test_conv<ConvShape<8, 1, 6, 6, 1, 1, 1, 1, 0>, 64, AddBias>(2, "one tap");
    test_conv<ConvShape<1, 1, 1, 7, 1, 1, 3, 1, 0>, 32, Same>(3, "one axis, 5 pixels");
    test_conv<ConvShape<5, 1, 1, 301, 1, 1, 4, 3, 0>, 96, AddBias>(2, "one axis, stride 3");
    test_conv<ConvShape<4, 1, 3, 3, 1, 3, 3, 1, 0>, 128, AddBias>(2, "one pixel");
    test_conv<ConvShape<3, 1, 9, 10, 1, 3, 3, 1, 0>, 64, BiasedRelu>(2, "56 pixels");
    test_conv<ConvShape<8, 1, 6, 6, 1, 3, 3, 1, 1>, 128, BiasedRelu>(1, "padded, whole slabs");
    test_conv<ConvShape<2, 1, 11, 13, 1, 5, 5, 2, 2>, 96, AddBias>(3, "padded, stride 2");
    test_conv<ConvShape<3, 1, 35, 35, 1, 11, 11, 4, 2>, 96, AddBias>(2, "as AlexNet's first");
    test_conv<ConvShape<3, 5, 6, 7, 3, 3, 3, 1, 0>, 64, Same>(2, "three axes");
    test_conv<ConvShape<2, 7, 7, 9, 3, 2, 3, 2, 0>, 32, BiasedRelu>(2, "three axes, stride 2");
    test_conv<ConvShape<16, 1, 40, 50, 1, 3, 3, 1, 0>, 128, Same>(3, "many blocks");
    finish();
}
