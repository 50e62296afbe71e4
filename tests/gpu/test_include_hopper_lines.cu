/* convolve_lines.cuh, Hopper's way, against plain double. */
#include "convolve_lines.cuh"
#include "include_convolved.cuh"

template <int IMAGES, int CHANNELS, int FILTERS, int N, class X, class Y>
static void test_lines(void) {
    using C = kp::Convolution<IMAGES, CHANNELS, FILTERS, 1, typename X::Axis, typename Y::Axis>;
    using Lines = kp::InLines<C>;
    using Tile = kp::LineTile<Lines, N>;
    begin("convolve<InLines> (%d images, %d channels, %d filters; %d by %d taps to %d by %d)",
          IMAGES, CHANNELS, FILTERS, Y::Axis::KERNEL, X::Axis::KERNEL, Y::Axis::OUT, X::Axis::OUT);
    const Buffer<unsigned char> scratch(kp::split_bytes<Lines, Tile>());
    test_convolution<C, X, Y>(
        uniform((size_t)IMAGES * CHANNELS * C::AREA, N + IMAGES),
        uniform((size_t)FILTERS * CHANNELS * C::KERNEL, FILTERS),
        [&](const float *x, const float *w, float *out) {
            kp::convolve<Lines, Tile>(x, w, out, PlusOne(), scratch.data, 0);
        },
        plus_one);
    scratch.guarded("scratch");
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
