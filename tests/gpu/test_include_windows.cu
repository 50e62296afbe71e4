/* pool.cuh, depthwise.cuh and conv_transpose.cuh against plain double. */
#include "conv_transpose.cuh"
#include "depthwise.cuh"
#include "pool.cuh"
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

/* ---- pool.cuh ---- */

/* Values of which some are NaN and -inf, but where a window of 2 x 2 has others, too. */
static std::vector<float> holed_planes(int planes, int h, int w) {
    std::vector<float> x = uniform((size_t)planes * h * w, h + w, -5, 5);
    for (size_t i = 0; i < x.size(); i++) {
        const int r = (int)(i / w % h), c = (int)(i % w);
        if ((r + 3 * c) % 11 == 0) x[i] = NAN;
        if ((r * 5 + c) % 13 == 0) x[i] = -INFINITY;
    }
    return x;
}

/* What `count` values come to, of a window of `taps`. */
static Want pooled(MaxPool, const double *v, int count, int) {
    double top = -INFINITY;
    for (int i = 0; i < count; i++) top = std::fmax(top, v[i]);
    return {top, 0};
}
static Want pooled(MaxOrNanPool, const double *v, int count, int) {
    double top = -INFINITY;
    for (int i = 0; i < count; i++)
        if (v[i] > top || std::isnan(v[i])) top = v[i];
    return {top, 0};
}
static Want pooled(MeanPool, const double *v, int count, int taps) {
    double sum = 0, size = 0;
    for (int i = 0; i < count; i++) sum += v[i], size += std::fabs(v[i]);
    return {sum / taps, size / taps * (taps + 1) * U};
}

template <class S, class Pool> static void test_pool(const char *name, int planes, bool holes) {
    begin("pool2d<%s> (%d planes of %d x %d, windows %d, stride %d, padding %d)", name, planes,
          S::H, S::W, S::K, S::STRIDE, S::PAD);
    const std::vector<float> host =
        holes ? holed_planes(planes, S::H, S::W) : uniform((size_t)planes * S::H * S::W, 1);
    const Buffer<float> x(host), y((size_t)planes * S::OH * S::OW);
    pool2d<S, Pool>(x.data, y.data, planes, 0);
    ran();
    std::vector<Want> want;
    for (size_t i = 0; i < y.count; i++) {
        const float *plane = &host[i / (S::OH * S::OW) * S::H * S::W];
        const int top = (int)(i / S::OW % S::OH) * S::STRIDE - S::PAD;
        const int left = (int)(i % S::OW) * S::STRIDE - S::PAD;
        double v[S::K * S::K];
        int count = 0;
        for (int r = std::max(top, 0); r < std::min(top + S::K, S::H); r++)
            for (int c = std::max(left, 0); c < std::min(left + S::K, S::W); c++)
                v[count++] = plane[r * S::W + c];
        want.push_back(pooled(Pool(), v, count, S::K * S::K));
    }
    compare(y, want);
    unchanged(x, host, "x");
}

static void test_pools() {
    test_pool<PoolShape<55, 55, 3, 2, 0>, MaxPool>("MaxPool", 300, false);
    test_pool<PoolShape<55, 55, 3, 2, 0>, MaxPool>("MaxPool", 5, true);
    test_pool<PoolShape<2, 2, 2, 2, 0>, MaxPool>("MaxPool", 3, false);
    test_pool<PoolShape<17, 30, 3, 2, 1>, MaxPool>("MaxPool", 7, true);
    test_pool<PoolShape<17, 30, 3, 2, 1>, MaxOrNanPool>("MaxOrNanPool", 7, true);
    test_pool<PoolShape<13, 40, 4, 3, 2>, MaxOrNanPool>("MaxOrNanPool", 4, true);
    test_pool<PoolShape<9, 11, 1, 2, 0>, MaxOrNanPool>("MaxOrNanPool", 2, true);
    test_pool<PoolShape<20, 21, 2, 2, 0>, MeanPool>("MeanPool", 9, false);
    test_pool<PoolShape<19, 23, 5, 1, 2>, MeanPool>("MeanPool", 6, false);
    test_pool<PoolShape<6, 5, 3, 5, 1>, MeanPool>("MeanPool", 600, false);
}

/* ---- depthwise.cuh ---- */

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

/* ---- conv_transpose.cuh ---- */

/* By its definition: each input is added to what it reaches. */
template <class S>
static Exact plain_transposed(const std::vector<float> &x, const std::vector<float> &weight,
                              int images) {
    constexpr int TAPS = S::KH * S::KW, PLANE = S::OH * S::OW;
    Exact y((size_t)images * S::OUT * PLANE);
    for (size_t i = 0; i < x.size(); i++) {
        const size_t image = i / (S::IN * S::H * S::W), channel = i / (S::H * S::W) % S::IN;
        for (int n = 0; n < S::OUT; n++)
            for (int t = 0; t < TAPS; t++) {
                const int r = (int)(i / S::W % S::H) * S::STRIDE - S::PAD + t / S::KW * S::DILATION;
                const int c = (int)(i % S::W) * S::STRIDE - S::PAD + t % S::KW * S::DILATION;
                if (r < 0 || r >= S::OH || c < 0 || c >= S::OW) continue;
                const size_t at = (image * S::OUT + n) * PLANE + r * S::OW + c;
                const double v = (double)x[i] * weight[(channel * S::OUT + n) * TAPS + t];
                y.value[at] += v;
                y.size[at] += std::fabs(v);
            }
    }
    return y;
}

/* One input in each image may be infinite: that is the business of those whom it reaches. */
template <class S, class F>
static void test_transposed(int images, const char *name, bool infinite = false) {
    begin("convolve_transposed (%s: %d x %d x %d x %d, %d filters %d x %d, stride %d, padding %d, "
          "dilation %d)",
          name, images, S::IN, S::H, S::W, S::OUT, S::KH, S::KW, S::STRIDE, S::PAD, S::DILATION);
    constexpr int IMAGE = S::IN * S::H * S::W, PLANE = S::OH * S::OW;
    std::vector<float> hx = uniform((size_t)images * IMAGE, 1);
    for (int i = 0; infinite && i < images; i++) hx[(size_t)i * IMAGE + IMAGE / 2] = INFINITY;
    const std::vector<float> hw = uniform(S::IN * S::OUT * S::KH * S::KW, 2);
    const std::vector<float> hb = uniform(S::OUT, 3);
    const Buffer<float> x(hx), weight(hw), bias(hb), out((size_t)images * S::OUT * PLANE);
    convolve_transposed<S>(x.data, weight.data, out.data, images, function(F(), bias.data), 0);
    ran();
    compare(out, want_of<F>(plain_transposed<S>(hx, hw, images), hb, S::OUT, PLANE, S::DEPTH));
    unchanged(x, hx, "x");
    unchanged(weight, hw, "weight");
}

/* In, out, size, filter, stride, padding, output padding, dilation. */
static void test_transposes() {
    test_transposed<ConvTransposeShape<3, 32, 1, 1, 1, 1, 1, 0, 0, 1>, Same>(1, "one pixel");
    test_transposed<ConvTransposeShape<8, 64, 6, 9, 3, 3, 1, 0, 0, 1>, AddBias>(2, "plain");
    test_transposed<ConvTransposeShape<4, 32, 9, 8, 3, 5, 1, 1, 0, 1>, BiasedRelu>(3, "padded");
    test_transposed<ConvTransposeShape<16, 128, 8, 8, 4, 4, 2, 1, 0, 1>, AddBias>(2, "twice");
    test_transposed<ConvTransposeShape<5, 3, 7, 10, 3, 3, 2, 1, 1, 1>, BiasedRelu>(3, "3 filters");
    test_transposed<ConvTransposeShape<3, 130, 5, 6, 3, 2, 3, 0, 0, 1>, Same>(2, "130 filters");
    test_transposed<ConvTransposeShape<6, 33, 5, 7, 2, 2, 4, 0, 3, 1>, AddBias>(2, "gaps");
    test_transposed<ConvTransposeShape<5, 32, 9, 6, 3, 3, 1, 2, 0, 2>, Same>(2, "dilated");
    test_transposed<ConvTransposeShape<4, 48, 7, 9, 5, 3, 3, 3, 1, 2>, AddBias>(2, "coprime");
    test_transposed<ConvTransposeShape<4, 40, 6, 7, 4, 3, 4, 2, 1, 6>, Same>(2, "common divisor");
    test_transposed<ConvTransposeShape<7, 96, 5, 6, 3, 3, 2, 1, 0, 1>, Same>(2, "infinite", true);
    test_transposed<ConvTransposeShape<24, 64, 33, 30, 3, 3, 2, 1, 1, 1>, AddBias>(5, "many");
}

int main() {
    start(false);
    test_pools();
    test_depthwises();
    test_transposes();
    finish();
}
