/* convolve_lines.cuh, Hopper's way, against plain double. */
#include "convolve_lines.cuh"
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

/* The convolution as it is defined, and 3e-6 of the products' sizes: twice what splitting loses. */
template <class C, class X, class Y>
static std::vector<Want> convolved(const std::vector<float> &x, const std::vector<float> &w) {
    constexpr int WIDTH = X::Axis::OUT, HEIGHT = Y::Axis::OUT, TAPS_X = X::Axis::KERNEL;
    std::vector<Want> want;
    std::vector<double> sum(WIDTH), size(WIDTH);
    const auto line = [&](int image, int f, int row) {
        for (int c = 0; c < C::DEPTH; c++)
            for (int k = 0; k < C::KERNEL; k++) {
                const int y = Y::input(row, k / TAPS_X);
                if (y < 0 || y >= Y::Axis::IN) continue;
                const int filter = X::Axis::TRANSPOSED ? c * C::FILTERS + f : f * C::DEPTH + c;
                const float *from =
                    &x[((size_t)(image * C::DEPTH + c) * Y::Axis::IN + y) * X::Axis::IN];
                for (int o = 0; o < WIDTH; o++) {
                    const int at = X::input(o, k % TAPS_X);
                    if (at < 0 || at >= X::Axis::IN) continue;
                    const double product = (double)w[(size_t)filter * C::KERNEL + k] * from[at];
                    sum[o] += product, size[o] += std::fabs(product);
                }
            }
    };
    for (int plane = 0; plane < (int)(C::ROWS / C::PIXELS) * C::FILTERS; plane++)
        for (int row = 0; row < HEIGHT; row++) {
            std::fill(sum.begin(), sum.end(), 0.0), std::fill(size.begin(), size.end(), 0.0);
            line(plane / C::FILTERS, plane % C::FILTERS, row);
            for (int o = 0; o < WIDTH; o++) want.push_back({sum[o] + 1, 3e-6 * size[o] + U});
        }
    return want;
}

struct PlusOne {
    __device__ float operator()(float v, int, int) const { return v + 1; }
};

template <int IMAGES, int CHANNELS, int FILTERS, int N, class X, class Y>
static void test_lines(void) {
    using C = kp::Convolution<IMAGES, CHANNELS, FILTERS, 1, typename X::Axis, typename Y::Axis>;
    using Lines = kp::InLines<C>;
    using Tile = kp::LineTile<Lines, N>;
    begin("convolve<InLines> (%d images, %d channels, %d filters; %d by %d taps to %d by %d)",
          IMAGES, CHANNELS, FILTERS, Y::Axis::KERNEL, X::Axis::KERNEL, Y::Axis::OUT, X::Axis::OUT);
    const std::vector<float> host = uniform((size_t)IMAGES * CHANNELS * C::AREA, N + IMAGES),
                             weights = uniform((size_t)FILTERS * CHANNELS * C::KERNEL, FILTERS);
    const Buffer<float> x(host), w(weights), out((size_t)IMAGES * FILTERS * C::OUT_AREA);
    const Buffer<unsigned char> scratch(kp::split_bytes<Lines, Tile>());
    kp::convolve<Lines, Tile>(x.data, w.data, out.data, PlusOne(), scratch.data, 0);
    ran();
    compare(out, convolved<C, X, Y>(host, weights));
    scratch.guarded("scratch");
    unchanged(x, host, "x");
}

int main() {
    start(true);
    /* The last strip is not whole; tiles begin and end amid strips, and beyond the last image. */
    test_lines<3, 32, 64, 64, Plain<70, 3, 1, 1>, Plain<9, 3, 1, 1>>();
    test_lines<2, 64, 32, 32, Transposed<64, 3, 0, 1>, Transposed<6, 3, 0, 1>>();
    test_lines<1, 32, 40, 48, Plain<140, 5, 4, 3>, Plain<30, 5, 2, 2>>();
    test_lines<2, 32, 64, 64, Transposed<100, 7, 3, 1>, Transposed<13, 3, 1, 1>>();
    test_lines<1, 32, 16, 16, Plain<66, 3, 0, 1>, Plain<5, 1, 0, 1>>();
    test_lines<1, 96, 96, 32, Plain<64, 1, 0, 1>, Plain<4, 5, 2, 1>>();
    /* More tiles than multiprocessors, more slabs than stages. */
    test_lines<8, 64, 32, 32, Plain<130, 3, 1, 1>, Plain<130, 3, 1, 1>>();
    finish();
}
