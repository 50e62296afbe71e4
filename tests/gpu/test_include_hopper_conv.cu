/* conv_f16.cuh with its plans, conv_f16_unit.cuh and conv_f16_alexnet.cuh (and hopper_f16.cuh),
 * against a plain convolution in double; sm_90a. */
#include "activation.cuh"
#include "conv_f16_alexnet.cuh"
#include "conv_f16_unit.cuh"
#include "include_products.cuh"

/* An epilogue of one's own: bias, then ReLU. */
struct BiasedRelu {
    static __device__ __forceinline__ float apply(float v, const float *bias, int channel) {
        return Relu()(v + __ldg(bias + channel));
    }
};
static double finished(Plain, double v, float) {
    return v;
}
static double finished(Biased, double v, float bias) {
    return v + bias;
}
static double finished(BiasedRelu, double v, float bias) {
    return std::max(v + bias, 0.0);
}

/* fp32-class: what is left out is below 2^-22 of a product; four times that leaves room for the
 * tensor cores' sums over 48 of the depth, which are truncated, and for the fp32 sums of `groups`
 * of these, each off by half the least denormal, too. An element of the image is off by the least
 * denormal. `size` is the sum of absolute values, `filter` of the weights alone. The bias adds a
 * rounding. */
template <class F>
static Want wanted(double value, double size, double filter, float bias, int groups) {
    const double y = finished(F(), value, bias);
    return {y, size * 0x1p-20 + fp32_slack(size, groups) + 2 * U * std::fabs(y) +
                   (groups + 1) * Rounding<float>::LEAST + filter * 0x1p-149 +
                   (std::is_same<F, Plain>::value ? 0 : 2 * U)};
}

/* The sum of absolute weights of each filter. */
static std::vector<double> filter_sizes(const std::vector<float> &weight, int filters) {
    std::vector<double> sizes(filters);
    const size_t depth = weight.size() / filters;
    for (size_t i = 0; i < weight.size(); i++) sizes[i / depth] += std::fabs(weight[i]);
    return sizes;
}

/* ---- conv_f16_unit.cuh ---- */

/* Powers of two: of a row of the image to the one above it, of images, of filters, of a filter to
 * the one before it. */
struct Size {
    int rise, x, weight, apart = 10;
};
constexpr Size MIDDLE = {-10, 0, 0};

/* Where nothing is added to the results: images, their rows and the filters far apart in size. The
 * first half of the images is 2^30 times the others, for what it leaves in shared memory. A row is
 * 2^rise of the one above it, so that each row of the output shows the accuracy of one row of the
 * image: of its own, or of the last that it needs if rise is above 0. One row is zero. */
template <class F>
static void fill(const Convolution &c, const Size &of, std::vector<float> &x,
                 std::vector<float> &weight) {
    x = uniform(c.in_count(), 1);
    weight = uniform(c.weight_count(), 2);
    if constexpr (std::is_same<F, Plain>::value) {
        for (size_t i = 0; i < x.size(); i++) {
            const int row = (int)(i / c.w % c.h), image = (int)(i / c.w / c.h / c.channels);
            const int exponent = of.x + (image < c.images / 2 ? 30 : 0) + of.rise * (row - c.h / 2);
            x[i] = row == 2 && image == 1 ? 0 : std::ldexp(x[i], exponent);
        }
        for (size_t i = 0; i < weight.size(); i++)
            weight[i] =
                std::ldexp(weight[i], of.weight + ((int)(i / c.depth() % 5) - 2) * of.apart);
    }
}

/* PITCH: 0, or the plane is one line, of rows of PITCH. */
template <class F, int N, int CHANNELS, int IMAGES, int ROWS, int WIDTH, int KH, int PITCH, int WGS,
          int X_STAGES, int W_STAGES, int SPLIT, int STORERS>
static void test_unit(const char *name, const Size &of = MIDDLE) {
    using P = UnitPlan<N, CHANNELS, IMAGES, ROWS, WIDTH, KH, PITCH, WGS, X_STAGES, W_STAGES, SPLIT,
                       STORERS>;
    const Convolution c = {IMAGES,
                           CHANNELS,
                           1,
                           PITCH ? WIDTH / (PITCH ? PITCH : 1) : ROWS,
                           PITCH ? PITCH : WIDTH,
                           N,
                           1,
                           KH,
                           3,
                           1,
                           0};
    begin("convolve<UnitPlan> (%s: %d x %d x %d x %d, %d filters %d x 3; %d, %d, %d, %d, %d)", name,
          IMAGES, CHANNELS, c.h, c.w, N, KH, WGS, X_STAGES, W_STAGES, SPLIT, STORERS);
    check(P::PIXELS == c.pixels(), "%d pixels, not %d", P::PIXELS, c.pixels());
    std::vector<float> hx, hw;
    fill<F>(c, of, hx, hw);
    const std::vector<float> hb = uniform(N, 3);
    const Buffer<float> x(hx), weight(hw), bias(hb), out(c.out_count());
    const Buffer<unsigned char> scratch(convolve_scratch<P>());
    convolve<P, F>(x.data, weight.data, bias.data, out.data, scratch.data, 0);
    ran();
    const Exact sums = c.plain(hx, hw);
    std::vector<Want> want(out.count);
    const std::vector<double> filters = filter_sizes(hw, N);
    for (size_t i = 0; i < want.size(); i++) {
        const int n = i / P::PIXELS % N;
        want[i] = wanted<F>(sums.value[i], sums.size[i], filters[n], hb[n], P::CHUNKS * KH);
    }
    compare(out, want);
    scratch.guarded("scratch");
    unchanged(x, hx, "x");
    unchanged(weight, hw, "weight");
}

/* Images up to the largest fp32, whose results are in range: under small weights; under weights so
 * small that their scale cannot be undone in the sums. Images of denormals, under weights of which
 * sums have the full scale, part of it, and the least; the largest of them are 2^-128, or those
 * that have no scale of their own. Filters from 2^-120 to 2^120. */
static void test_range() {
    test_unit<Plain, 128, 64, 2, 1, 6 * 128, 3, 128, 2, 2, 4, 1, 4>("largest", {0, 97, -26});
    test_unit<Plain, 128, 16, 2, 7, 136, 3, 0, 2, 3, 0, 1, 4>("largest, least weights",
                                                              {0, 97, -90});
    for (int x = -128; x <= -108; x += 5)
        for (int weight = -60; weight <= 40; weight += 20)
            test_unit<Plain, 128, 16, 2, 3, 68, 3, 0, 2, 3, 0, 1, 4>("least", {0, x - 30, weight});
    test_unit<Plain, 128, 16, 2, 3, 68, 3, 0, 2, 3, 0, 1, 4>("filters apart", {0, -30, 0, 60});
}

/* The filter's image: hi and lo parts where the tensor cores look for them, zeros, and what undoes
 * the scales, which bring a channel's largest into [2^14, 2^15). The parts are right to 2^-23 of
 * the element or 2^-39 of the channel's largest. */
static void test_filter_image() {
    constexpr int N = 64, CHANNELS = 32, KH = 3, DEPTH = CHANNELS * KH * 3;
    using P = UnitPlan<N, CHANNELS, 1, 8, 64, KH, 0, 2, 2, 2, 1, 4>;
    using L = Layout<P>;
    begin("filter_image_kernel (%d filters, depth %d)", N, DEPTH);
    std::vector<float> hw = uniform(N * DEPTH, 4);
    for (int i = 0; i < N * DEPTH; i++)
        hw[i] = i / DEPTH == 9 ? 0 : std::ldexp(hw[i], i / DEPTH % 7 * 9 - 30 - i % 4 * 8);
    const Buffer<float> weight(hw);
    const Buffer<unsigned char> image(convolve_scratch<P>());
    filter_image_kernel<P><<<N, 256>>>(weight.data, (__half *)image.data);
    ran();
    const std::vector<unsigned char> bytes = image.read();
    const __half *halves = (const __half *)bytes.data();
    const float *zeros = (const float *)(bytes.data() + L::IMAGE_BYTES);
    const float *down = zeros + L::ZEROS / 4;
    int wrong = 0, first = 0, scales = 0;
    for (int n = 0; n < N; n++) {
        double top = 0x1p-110;
        for (int d = 0; d < DEPTH; d++) top = std::max(top, std::fabs((double)hw[n * DEPTH + d]));
        if (!(top / down[n] >= 0x1p14 && top / down[n] < 0x1p15)) scales++;
        for (int i = 0; i < DEPTH; i++) { /* the i-th of depth that the steps of 16 pass through */
            const int step = i / 16, column = i % 16;
            const int channel =
                step / (3 * KH) * 16 + column / 8 * 8 + column % 2 * 4 + column % 8 / 2;
            const double v = hw[n * DEPTH + channel * KH * 3 + step % (3 * KH)];
            const __half *p =
                halves + step * 2 * N * 16 + n / 8 * 128 + column / 8 * 64 + n % 8 * 8 + column % 8;
            const Want want = {v, std::max(std::fabs(v) * 0x1p-23, top * 0x1p-39)};
            if (!want.accepts((number(p[0]) + number(p[N * 16])) * down[n]) && !wrong++)
                first = n * DEPTH + i;
        }
    }
    check(wrong == 0, "element %d of channel %d is wrong (%d are)", first % DEPTH, first / DEPTH,
          wrong);
    check(scales == 0, "%d of %d inverse scales are wrong", scales, N);
    bool zero = true;
    for (int i = 0; i < L::ZEROS / 4; i++) zero = zero && zeros[i] == 0;
    check(zero, "the zeros are none");
    image.guarded("image");
}

/* ---- conv_f16_alexnet.cuh ---- */

/* Two images in turn, times powers of two: plain sums of two are enough. All images are 2^lift
 * times that, the filters 2^-sink. */
template <class F, int IMAGES, int WGS, int W_STAGES>
static void test_alexnet(const std::vector<float> &base, std::vector<float> hw, const Exact &sums,
                         int lift = 0, int sink = 0) {
    using P = AlexnetPlan<IMAGES, WGS, W_STAGES>;
    constexpr int IN = P::CHANNELS * P::SIDE * P::SIDE, OUT = P::N * P::PIXELS;
    begin("convolve<AlexnetPlan<%d, %d, %d>> (%s)", IMAGES, WGS, W_STAGES,
          std::is_same<F, Plain>::value ? "plain" : "bias, ReLU");
    const auto exponent = [lift](int image) {
        return std::is_same<F, Plain>::value ? image * 19 % 61 - 30 + lift : 0;
    };
    for (float &w : hw) w = std::ldexp(w, -sink);
    std::vector<float> hx((size_t)IMAGES * IN);
    for (size_t i = 0; i < hx.size(); i++)
        hx[i] = std::ldexp(base[i % (2 * IN)], exponent((int)(i / IN)));
    const std::vector<float> hb = uniform(P::N, 3);
    const Buffer<float> x(hx), weight(hw), bias(hb), out((size_t)IMAGES * OUT);
    const Buffer<unsigned char> scratch(convolve_scratch<P>());
    convolve<P, F>(x.data, weight.data, bias.data, out.data, scratch.data, 0);
    ran();
    std::vector<Want> want(out.count);
    const std::vector<double> filters = filter_sizes(hw, P::N);
    for (size_t i = 0; i < want.size(); i++) {
        const size_t at = i % (2 * OUT);
        const int n = i / P::PIXELS % P::N;
        const double scale = std::ldexp(1.0, exponent((int)(i / OUT)) - sink);
        want[i] =
            wanted<F>(sums.value[at] * scale, sums.size[at] * scale, filters[n], hb[n], P::GROUPS);
    }
    compare(out, want);
    scratch.guarded("scratch");
    unchanged(x, hx, "x");
}

int main() {
    start(true);
    test_filter_image();

    /* The last numbers: warpgroups, image stages, filter stages, parts, storers. As shipped: */
    test_unit<Plain, 128, 16, 2, 7, 136, 3, 0, 2, 3, 0, 1, 4>("two tiles a row");
    test_unit<Plain, 128, 64, 3, 1, 300, 1, 0, 2, 6, 0, 1, 4>("one axis");
    test_unit<Biased, 128, 64, 2, 1, 5 * 128, 3, 128, 2, 2, 4, 1, 4>("a line");
    test_unit<Plain, 128, 64, 2, 1, 6 * 128, 3, 128, 2, 2, 4, 1, 4>("a line, far apart");

    Convolution first = {2, 3, 1, 224, 224, 96, 1, 11, 11, 4, 2};
    const std::vector<float> base = uniform(first.in_count(), 5);
    std::vector<float> filters = uniform(first.weight_count(), 6);
    for (size_t i = 0; i < filters.size(); i++)
        filters[i] = std::ldexp(filters[i], (int)(i / first.depth() % 3) * 4);
    const Exact sums = first.plain(base, filters);
    test_alexnet<BiasedRelu, 1, 3, 4>(base, filters, sums);
    test_alexnet<Plain, 9, 3, 4>(base, filters, sums); /* more tiles than multiprocessors */
    test_alexnet<Plain, 4, 3, 4>(base, filters, sums, 100, 20); /* images up to 2^127 */

    /* Rows shorter than a tile; more tiles than multiprocessors. */
    test_unit<Plain, 128, 16, 1, 3, 4, 3, 0, 2, 3, 0, 1, 4>("two pixels");
    test_unit<BiasedRelu, 128, 16, 3, 9, 64, 3, 0, 2, 3, 0, 1, 4>("short rows");
    test_unit<Biased, 128, 16, 4, 1, 4804, 1, 0, 2, 6, 0, 1, 4>("many tiles");
    test_unit<Plain, 64, 32, 2, 4, 252, 3, 0, 2, 2, 2, 1, 4>("64 filters");
    /* Behind the end of a row lies what is 2^30 times as large. Of an earlier tile: each block has
     * one of the first half of the images first, and not the same of a row's 7 then, as the number
     * of blocks is no multiple of 7. Of the next row. */
    test_unit<Plain, 64, 32, 38, 1, 780, 1, 0, 2, 2, 0, 1, 4>("seven tiles a row");
    test_unit<Plain, 128, 64, 2, 1, 6 * 128, 3, 128, 2, 2, 4, 1, 4>("a line, rising", {30, 0, 0});
    test_range();
    /* What no kernel uses so far: parts of N, tiles that their own warpgroups store. */
    test_unit<Plain, 128, 32, 1, 4, 132, 3, 0, 2, 2, 3, 2, 4>("two parts");
    test_unit<Plain, 64, 16, 2, 1, 6 * 64, 3, 64, 2, 2, 0, 1, 0>("a line, no storers");
    test_unit<Biased, 64, 16, 1, 3, 68, 3, 0, 1, 2, 0, 1, 0>("one warpgroup");
    test_unit<Plain, 64, 16, 2, 3, 60, 3, 0, 2, 2, 0, 1, 0>("a warpgroup without pixels");
    test_alexnet<BiasedRelu, 1, 2, 4>(base, filters, sums);
    finish();
}
