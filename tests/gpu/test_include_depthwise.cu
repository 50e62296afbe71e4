/* depthwise.cuh against plain double. */
#include "depthwise.cuh"
#include "include_epilogues.cuh"
#include "include_products.cuh"

/* f of each sum; channels of `pixels` values are `channels` an image. */
template <class F>
static std::vector<Want> want_of(const Exact &sums, const std::vector<float> &bias, int channels,
                                 int pixels, int depth) {
    std::vector<Want> want(sums.value.size());
    for (size_t i = 0; i < want.size(); i++)
        want[i] = {finished(F(), sums.value[i], bias[i / pixels % channels]),
                   fp32_slack(sums.size[i] + 1, depth)};
    return want;
}

template <class S>
static Exact plain_depthwise(const std::vector<float> &x, const std::vector<float> &weight,
                             int planes) {
    Exact y((size_t)planes * S::OH * S::OW);
    for (size_t i = 0; i < y.value.size(); i++) {
        const size_t plane = i / (S::OH * S::OW);
        const float *from = &x[plane * S::H * S::W], *w = &weight[plane % S::CHANNELS * S::TAPS];
        for (int t = 0; t < S::TAPS; t++) {
            const int r = (int)(i / S::OW % S::OH) * S::STRIDE - S::PAD + t / S::KW;
            const int c = (int)(i % S::OW) * S::STRIDE - S::PAD + t % S::KW;
            if (r < 0 || r >= S::H || c < 0 || c >= S::W) continue;
            y.value[i] += (double)w[t] * from[r * S::W + c];
            y.size[i] += std::fabs((double)w[t] * from[r * S::W + c]);
        }
    }
    return y;
}

template <class S, class F> static void test_depthwise(int images, bool fours) {
    const int planes = images * S::CHANNELS;
    begin("depthwise (%d x %d planes of %d x %d, filters %d x %d, stride %d, padding %d)", images,
          S::CHANNELS, S::H, S::W, S::KH, S::KW, S::STRIDE, S::PAD);
    check(S::FOURS == fours, "FOURS is %d", S::FOURS);
    const std::vector<float> hx = uniform((size_t)planes * S::H * S::W, 1);
    const std::vector<float> hw = uniform(S::CHANNELS * S::TAPS, 2), hb = uniform(S::CHANNELS, 3);
    const Buffer<float> x(hx), weight(hw), bias(hb), out((size_t)planes * S::OH * S::OW);
    depthwise<S>(x.data, weight.data, out.data, images, function(F(), bias.data), 0);
    ran();
    compare(out, want_of<F>(plain_depthwise<S>(hx, hw, planes), hb, S::CHANNELS, S::OH * S::OW,
                            S::TAPS));
    unchanged(x, hx, "x");
    unchanged(weight, hw, "weight");
}

static void test_depthwises() {
    test_depthwise<DepthwiseShape<3, 12, 128, 3, 3, 1, 0>, Same>(2, true);
    test_depthwise<DepthwiseShape<5, 36, 132, 3, 3, 1, 0>, AddBias>(3, true);
    test_depthwise<DepthwiseShape<2, 4, 512, 3, 3, 1, 0>, BiasedRelu>(40, true);
    test_depthwise<DepthwiseShape<1, 52, 2048, 3, 3, 1, 0>, AddBias>(1, true);
    test_depthwise<DepthwiseShape<7, 11, 128, 3, 3, 1, 0>, Same>(2, false);
    test_depthwise<DepthwiseShape<6, 30, 31, 3, 3, 1, 1>, BiasedRelu>(5, false);
    test_depthwise<DepthwiseShape<4, 17, 20, 5, 3, 2, 2>, AddBias>(3, false);
    test_depthwise<DepthwiseShape<3, 3, 2, 1, 1, 1, 0>, Same>(2, false);
    test_depthwise<DepthwiseShape<3, 5, 7, 5, 7, 3, 0>, Same>(2, false);
    test_depthwise<DepthwiseShape<16, 60, 65, 7, 7, 1, 3>, AddBias>(9, false);
}

int main() {
    start(false);
    test_depthwises();
    finish();
}
