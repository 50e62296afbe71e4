/* convolve_norm.cuh against plain double, on convolutions with one tap whose weights are the
 * identity, so that results are known exactly: x, and with a stride zeros between. */
#include "convolve_norm.cuh"
#include "one_by_one.cuh"
#include "include_rows.cuh"

/* The results of C, [IMAGES][FILTERS][OUT_AREA]. */
template <class C> static std::vector<float> spread_out(const std::vector<float> &x, int step) {
    using X = typename C::X;
    using Y = typename C::Y;
    std::vector<float> t(x.size() / C::AREA * C::OUT_AREA);
    for (size_t i = 0; i < x.size(); i++) {
        const size_t plane = i / C::AREA, row = i % C::AREA / X::IN, column = i % X::IN;
        t[(plane * Y::OUT + row * step) * X::OUT + column * step] = x[i];
    }
    return t;
}

/* What becomes of results t by a norm whose parts are P. */
template <class P>
static std::vector<Want> normal_want(const std::vector<float> &t, const std::vector<float> &weight,
                                     const std::vector<float> &bias, double eps) {
    constexpr size_t AREA = P::C::OUT_AREA, FILTERS = P::C::FILTERS;
    std::vector<std::vector<float>> part(P::COUNT);
    const auto of = [](size_t plane) {
        return plane / FILTERS / P::IMAGES * P::ACROSS + plane % FILTERS / P::CHANNELS;
    };
    for (size_t i = 0; i < t.size(); i++) part[of(i / AREA)].push_back(t[i]);
    std::vector<Stats> stats;
    for (const auto &v : part) stats.push_back(stats_of(v.data(), v.size(), eps));
    std::vector<Want> want;
    for (size_t i = 0; i < t.size(); i++) {
        const size_t c = i / AREA % FILTERS;
        want.push_back(normal(t[i], stats[of(i / AREA)], weight[c], bias[c]));
    }
    return want;
}

/* With a weight and a bias a channel, or with neither: PLAIN. F: an epilogue that does nothing. */
template <class P, bool PLAIN = false, class F = kp::Same> static void test_norm(int step) {
    using C = typename P::C;
    using T = kp::Tile<16>;
    using Moments = kp::ChannelMoments<C>;
    begin("parts of %d images and %d channels of %d x %d x %d, %d phases", P::IMAGES, P::CHANNELS,
          Moments::IMAGES, C::FILTERS, C::OUT_AREA, C::PHASES);
    Random random(C::OUT_AREA);
    std::vector<float> host((size_t)Moments::IMAGES * C::CHANNELS * C::AREA);
    for (size_t i = 0; i < host.size(); i++)
        host[i] = norm_value(random, (long long)(i / C::AREA % C::CHANNELS / P::CHANNELS));
    std::vector<float> identity((size_t)C::CHANNELS * C::FILTERS);
    for (int c = 0; c < C::CHANNELS; c++) identity[(size_t)c * C::FILTERS + c] = 1;
    const std::vector<float> t = spread_out<C>(host, step);
    const std::vector<float> w = uniform(C::FILTERS, 4, PLAIN ? 1 : -2, PLAIN ? 1 : 2);
    const std::vector<float> b = uniform(C::FILTERS, 5, PLAIN ? 0 : -1, PLAIN ? 0 : 1);
    const Buffer<float> x(host), filters(identity), weight(w), bias(b), y(t.size());
    const Buffer<unsigned char> split(kp::split_bytes<C, T>());
    const Buffer<unsigned char> scratch(Moments::bytes() + P::COUNT * sizeof(kp::Spread));
    const Moments moments = Moments::in(scratch.data);
    kp::Spread *spread = (kp::Spread *)moments.end();
    kp::convolve_moments<C, T>(x.data, filters.data, y.data, F(), moments, split.data, 0);
    kp::join_moments<P>(moments, 1e-5, spread, 0);
    kp::normalize<P>(spread, PLAIN ? nullptr : weight.data, PLAIN ? nullptr : bias.data, kp::Same(),
                     y.data, 0);
    ran();
    compare(y, normal_want<P>(t, w, b, 1e-5));
    scratch.guarded("scratch");
    split.guarded("split");
    unchanged(x, host, "x");
}

/* Batch, group and instance norm. */
template <int IMAGES, int FILTERS, int GROUP, class X, class Y> static void test_norms(int step) {
    using C = kp::Convolution<IMAGES, FILTERS, FILTERS, 1, X, Y>;
    test_norm<kp::Parts<C, IMAGES, 1>>(step);
    test_norm<kp::Parts<C, 1, GROUP>>(step);
    test_norm<kp::Parts<C, 1, 1>>(step);
    test_norm<kp::Parts<C, 1, 1>, true>(step);
}

int main() {
    start(false);
    test_norms<3, 16, 4, kp::Axis<64, 1>, kp::Axis<32, 1>>(1); /* whole warps, one image each */
    test_norms<5, 24, 3, kp::Axis<33, 1>, kp::Axis<31, 1>>(1); /* warps of two images */
    test_norms<70, 8, 8, kp::Axis<3, 1>, kp::Axis<3, 1>>(1);   /* and of five */
    test_norms<3, 24, 6, kp::TransposedAxis<21, 1, 2>, kp::TransposedAxis<9, 1, 2>>(2);
    using C =
        kp::Convolution<3, 24, 24, 1, kp::TransposedAxis<21, 1, 2>, kp::TransposedAxis<9, 1, 2>>;
    test_norm<kp::Parts<C, 3, 1>, false, kp::OneByOne<kp::Same>>(2);
    finish();
}
