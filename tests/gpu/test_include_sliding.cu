/* pools.cuh, line_windows.cuh and depthwise_conv.cuh against plain double. */
#include "depthwise_conv.cuh"
#include "line_windows.cuh"
#include "pools.cuh"
#include "include_test.cuh"

/* One value in eleven is NaN and as many are -inf, in the first of two planes. */
static std::vector<float> holed(size_t count, size_t plane) {
    std::vector<float> x = uniform(count, count, -5, 5);
    for (size_t i = 0; i < count; i++) {
        const int roll = (int)(std::fabs(x[i]) * 1000) % 11;
        if (i / plane % 2 == 0 && roll < 2) x[i] = roll ? NAN : -INFINITY;
    }
    return x;
}

/* ---- pools.cuh ---- */

/* What the values of a window come to that are no padding. */
static Want pooled(kp::MaxOfWindow, const std::vector<double> &v, int) {
    double top = -INFINITY;
    for (double a : v)
        if (a > top || std::isnan(a)) top = a;
    return {top, 0};
}
static Want pooled(kp::MeanOfWindow, const std::vector<double> &v, int taps) {
    double sum = 0, size = 0;
    for (double a : v) sum += a, size += std::fabs(a);
    return {sum / taps, size / taps * (taps + 1) * U};
}

/* The places of window o along an axis that are no padding. */
template <class A> static std::vector<int> places(int o) {
    std::vector<int> in;
    for (int k = 0; k < A::KERNEL; k++) {
        const int i = o * A::STRIDE - A::PAD + k * A::DILATION;
        if (i >= 0 && i < A::SIZE) in.push_back(i);
    }
    return in;
}

template <class P, class S> static void test_pool(const char *name, int planes) {
    using D = typename S::D;
    using H = typename S::H;
    using W = typename S::W;
    begin("pool_windows<%s> (%d planes of %d x %d x %d -> %d x %d x %d)", name, planes, D::SIZE,
          H::SIZE, W::SIZE, D::OUT, H::OUT, W::OUT);
    const std::vector<float> host = holed(planes * S::PLANE, S::PLANE);
    const Buffer<float> x(host), y((size_t)planes * D::OUT * H::OUT * W::OUT);
    kp::pool_windows<P, S>(x.data, y.data, planes, 0);
    ran();
    std::vector<Want> want;
    for (size_t i = 0; i < y.count; i++) {
        const float *plane = &host[i / (D::OUT * H::OUT * W::OUT) * S::PLANE];
        std::vector<double> v;
        for (int d : places<D>((int)(i / (H::OUT * W::OUT) % D::OUT)))
            for (int h : places<H>((int)(i / W::OUT % H::OUT)))
                for (int w : places<W>((int)(i % W::OUT)))
                    v.push_back(plane[((size_t)d * H::SIZE + h) * W::SIZE + w]);
        want.push_back(pooled(P(), v, S::TAPS));
    }
    compare(y, want);
    unchanged(x, host, "x");
}

template <class D, class H, class W, int THREADS, int COLUMNS, int ROWS = 1, int DEPTH = 1>
static void test_pools(int planes) {
    using S = kp::PoolShape<D, H, W, THREADS, COLUMNS, ROWS, DEPTH>;
    test_pool<kp::MaxOfWindow, S>("MaxOfWindow", planes);
    test_pool<kp::MeanOfWindow, S>("MeanOfWindow", planes);
}

/* Rows of results begin anywhere in a line of memory. */
template <class P, class W, int ROWS> static void test_lines(const char *name) {
    begin("pool_lines<%s> (%d rows of %d -> %d)", name, ROWS, W::SIZE, W::OUT);
    const std::vector<float> host = holed((size_t)ROWS * W::SIZE, W::SIZE);
    const Buffer<float> x(host), y((size_t)ROWS * W::OUT);
    kp::pool_lines<P, W, ROWS>(x.data, y.data, 0);
    ran();
    std::vector<Want> want;
    for (size_t i = 0; i < y.count; i++) {
        std::vector<double> v;
        for (int w : places<W>((int)(i % W::OUT))) v.push_back(host[i / W::OUT * W::SIZE + w]);
        want.push_back(pooled(P(), v, W::KERNEL));
    }
    compare(y, want);
    unchanged(x, host, "x");
}

/* Windows: size, kernel, stride, padding, dilation. Rows whole or cut, of all lengths modulo 8;
 * strips and segments that end beyond the result. */
static void test_all_pools() {
    using kp::Windows;
    using One = Windows<1, 1>;
    test_pools<One, One, Windows<5003, 8, 1, 4, 3>, 256, 4>(3);
    test_pools<One, One, Windows<3000, 8, 1, 4>, 64, 8>(3);
    test_pools<One, One, Windows<2000, 3, 2, 1>, 128, 3>(2);
    test_pools<One, One, Windows<1999, 5, 7>, 64, 4>(2);
    test_pools<One, One, Windows<4, 4, 1, 2>, 32, 1>(5);
    test_pools<One, Windows<37, 4, 1, 1>, Windows<45, 4, 1, 1>, 64, 1, 10>(3);
    test_pools<One, Windows<30, 3, 3>, Windows<200, 2, 2>, 32, 2, 4>(3);
    test_pools<One, Windows<40, 11, 11>, Windows<70, 11, 11>, 32, 3>(4);
    test_pools<One, Windows<9, 3, 2, 1>, Windows<128, 1>, 128, 1, 2>(2);
    test_pools<Windows<19, 3, 2, 1, 3>, Windows<23, 3, 2, 1, 3>, Windows<29, 3, 2, 1, 3>, 32, 1, 4,
               3>(2);
    test_pools<Windows<12, 2, 3>, Windows<10, 3, 1, 1>, Windows<33, 3, 1, 1>, 64, 1, 4, 2>(2);
    test_pools<Windows<11, 3, 1, 1, 2>, Windows<8, 2, 2>, Windows<300, 3, 2, 1>, 32, 4, 2, 5>(1);
    test_pools<Windows<16, 5, 1, 2>, One, Windows<24, 1>, 32, 1, 1, 16>(2);
    test_lines<kp::MaxOfWindow, Windows<1000, 8, 1, 4, 3>, 5>("MaxOfWindow");
    test_lines<kp::MeanOfWindow, Windows<1000, 8, 1, 4>, 5>("MeanOfWindow");
    test_lines<kp::MaxOfWindow, Windows<64, 2, 1>, 33>("MaxOfWindow");
}

/* ---- depthwise_conv.cuh ---- */

template <class S> static void test_depthwise(int images) {
    using H = typename S::H;
    using W = typename S::W;
    const int planes = images * S::CHANNELS;
    begin("depthwise_conv (%d x %d planes of %d x %d, filters %d x %d, -> %d x %d)", images,
          S::CHANNELS, H::SIZE, W::SIZE, H::KERNEL, W::KERNEL, H::OUT, W::OUT);
    const std::vector<float> hx = holed((size_t)planes * H::SIZE * W::SIZE, H::SIZE * W::SIZE);
    const std::vector<float> hw = uniform(S::CHANNELS * S::TAPS, 2, 0.5f, 1);
    const Buffer<float> x(hx), weight(hw), y((size_t)planes * H::OUT * W::OUT);
    kp::depthwise_conv<S>(x.data, weight.data, y.data, images, 0);
    ran();
    std::vector<Want> want;
    for (size_t i = 0; i < y.count; i++) {
        const size_t plane = i / (H::OUT * W::OUT);
        double sum = 0, size = 0;
        for (int t = 0; t < S::TAPS; t++) {
            const int h =
                (int)(i / W::OUT % H::OUT) * H::STRIDE - H::PAD + t / W::KERNEL * H::DILATION;
            const int w = (int)(i % W::OUT) * W::STRIDE - W::PAD + t % W::KERNEL * W::DILATION;
            if (h < 0 || h >= H::SIZE || w < 0 || w >= W::SIZE) continue;
            const double v = (double)hw[plane % S::CHANNELS * S::TAPS + t] *
                             hx[(plane * H::SIZE + h) * W::SIZE + w];
            sum += v, size += std::fabs(v);
        }
        want.push_back({sum, size * (S::TAPS + 1) * U});
    }
    compare(y, want);
    unchanged(x, hx, "x");
    unchanged(weight, hw, "weight");
}

/* Rows of the input that are whole float4, and not; rows of the result of all lengths modulo 4, in
 * planes that are whole float4, and not. */
static void test_depthwises() {
    using kp::Windows;
    test_depthwise<kp::DepthwiseConv<3, Windows<26, 3>, Windows<512, 3>, 10>>(2);
    test_depthwise<kp::DepthwiseConv<5, Windows<22, 3>, Windows<64, 7>, 6>>(3);
    test_depthwise<kp::DepthwiseConv<2, Windows<19, 4>, Windows<64, 4>, 4>>(3);
    test_depthwise<kp::DepthwiseConv<2, Windows<19, 4>, Windows<64, 2>, 4>>(3);
    test_depthwise<kp::DepthwiseConv<2, Windows<20, 4>, Windows<64, 2>, 4>>(3);
    test_depthwise<kp::DepthwiseConv<8, Windows<20, 3>, Windows<132, 1>, 10>>(2);
    test_depthwise<kp::DepthwiseConv<4, Windows<26, 3, 1, 1>, Windows<128, 3, 1, 1>, 10>>(2);
    test_depthwise<kp::DepthwiseConv<4, Windows<27, 3, 2, 1>, Windows<70, 3, 2, 1>, 4>>(2);
    test_depthwise<kp::DepthwiseConv<4, Windows<28, 3, 1, 2, 2>, Windows<72, 3, 1, 2, 2>, 4>>(2);
    test_depthwise<kp::DepthwiseConv<3, Windows<28, 3, 3, 1, 3>, Windows<72, 3, 3, 1, 3>, 4>>(2);
    test_depthwise<kp::DepthwiseConv<3, Windows<3, 1>, Windows<2, 1>, 1>>(2);
    test_depthwise<kp::DepthwiseConv<6, Windows<14, 5, 1, 2>, Windows<13, 5, 1, 2>, 2>>(3);
}

int main() {
    start(false);
    test_all_pools();
    test_depthwises();
    finish();
}
