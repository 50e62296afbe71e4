/* include_convolved.cuh: convolutions in plain double, for tests. */
#pragma once
#include "convolve.cuh"
#include "include_test.cuh"

/* An axis, and which input a result takes by a tap. */
template <int IN, int KERNEL, int PAD, int DILATION> struct Plain {
    using Axis = kp::Axis<IN, KERNEL, 1, PAD, DILATION>;
    static int input(int out, int tap) { return out - PAD + tap * DILATION; }
};
template <int IN, int KERNEL, int PAD, int DILATION> struct Transposed {
    using Axis = kp::TransposedAxis<IN, KERNEL, 1, PAD, DILATION>;
    static int input(int out, int tap) { return out + PAD - tap * DILATION; }
};

/* An epilogue. */
struct PlusOne {
    __device__ float operator()(float v, int, int) const { return v + 1; }
};

/* A result, and how large it would be without the signs of its products. */
struct Convolved {
    double value = 0, size = 0;
};

/* The results of x [images][channels][Y][X], as [images][filters][Y][X]. */
template <class X, class Y>
static std::vector<Convolved> convolved(const std::vector<float> &x, const std::vector<float> &w,
                                        int images, int channels, int filters) {
    constexpr int WIDTH = X::Axis::OUT, HEIGHT = Y::Axis::OUT, TAPS_X = X::Axis::KERNEL;
    constexpr int TAPS = TAPS_X * Y::Axis::KERNEL;
    std::vector<Convolved> results((size_t)images * filters * HEIGHT * WIDTH);
    const auto add = [&](Convolved *line, const float *from, float weight, int tap) {
        for (int o = 0; o < WIDTH; o++) {
            const int at = X::input(o, tap);
            if (at < 0 || at >= X::Axis::IN) continue;
            const double product = (double)weight * from[at];
            line[o].value += product, line[o].size += std::fabs(product);
        }
    };
    for (size_t i = 0; i < results.size(); i += WIDTH) {
        const int row = (int)(i / WIDTH % HEIGHT), plane = (int)(i / WIDTH / HEIGHT);
        const int image = plane / filters, f = plane % filters;
        for (int c = 0; c < channels; c++)
            for (int k = 0; k < TAPS; k++) {
                const int y = Y::input(row, k / TAPS_X);
                if (y < 0 || y >= Y::Axis::IN) continue;
                const int filter = X::Axis::TRANSPOSED ? c * filters + f : f * channels + c;
                add(&results[i],
                    &x[((size_t)(image * channels + c) * Y::Axis::IN + y) * X::Axis::IN],
                    w[(size_t)filter * TAPS + k], k % TAPS_X);
            }
    }
    return results;
}

/* Calls run(x, w, out), and compares out with the convolution C of `host` with `weights`, whose
 * results change() makes what is wanted. The tolerance is twice what splitting loses. */
template <class C, class X, class Y, class Run, class Change>
static void test_convolution(const std::vector<float> &host, const std::vector<float> &weights,
                             const Run &run, const Change &change) {
    const int images = (int)(host.size() / ((size_t)C::CHANNELS * C::AREA));
    const Buffer<float> x(host), w(weights), out((size_t)images * C::FILTERS * C::OUT_AREA);
    run(x.data, w.data, out.data);
    ran();
    std::vector<Convolved> results =
        convolved<X, Y>(host, weights, images, C::CHANNELS, C::FILTERS);
    change(results);
    std::vector<Want> want;
    for (const Convolved &r : results) want.push_back({r.value, 3e-6 * r.size + U});
    compare(out, want);
    unchanged(x, host, "x");
}
static void plus_one(std::vector<Convolved> &results) {
    for (Convolved &r : results) r.value += 1;
}
