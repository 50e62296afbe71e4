/* Transposed convolutions of stride 2, Hopper's way, against plain double: both_phases.cuh,
 * even_phases.cuh, one_by_one.cuh. */
#include "both_phases.cuh"
#include "even_phases.cuh"
#include "include_convolved.cuh"
#include "one_by_one.cuh"

template <int IN, int KERNEL, int PAD, int OUT_PAD> struct Doubled {
    using Axis = kp::TransposedAxis<IN, KERNEL, 2, PAD, 1, OUT_PAD>;
    static int input(int out, int tap) {
        const int at = out + PAD - tap;
        return at % 2 ? -1 : at / 2;
    }
};

/* An epilogue of whole lines of 64. */
struct LessMean {};
__device__ __forceinline__ void finish(const LessMean &, float (&v)[8], int, int) {
    float sum = 0.0f;
    for (float x : v) sum += x;
    const float mean = kp::sum_rows(sum) / 64;
    for (float &x : v) x -= mean;
}

/* Results of whole lines, as LessMean makes them. */
static void less_mean(std::vector<Convolved> &results) {
    constexpr size_t LINE = 64;
    for (size_t i = 0; i < results.size(); i += LINE) {
        Convolved mean;
        for (size_t k = i; k < i + LINE; k++)
            mean.value += results[k].value / LINE, mean.size += results[k].size / LINE;
        for (size_t k = i; k < i + LINE; k++)
            results[k].value -= mean.value, results[k].size += mean.size;
    }
}

/* What both kinds convolve. */
template <class C> static std::vector<float> images(int count) {
    return uniform((size_t)count * C::CHANNELS * C::AREA, 1, -0.3f, 1.0f);
}
template <class C> static std::vector<float> filters() {
    return uniform((size_t)C::FILTERS * C::CHANNELS * C::KERNEL, 2);
}

template <int IMAGES, int CHANNELS, int FILTERS, class X, class Y, bool LINES = false>
static void test_both(void) {
    using C = kp::Convolution<IMAGES, CHANNELS, FILTERS, 1, typename X::Axis, typename Y::Axis>;
    begin("both_phases (%d images, %d channels, %d filters; %d by %d)%s", IMAGES, CHANNELS, FILTERS,
          Y::Axis::OUT, X::Axis::OUT, LINES ? ", whole lines" : "");
    const Buffer<unsigned char> scratch(kp::both_phases::scratch_bytes<C>());
    using F = std::conditional_t<LINES, LessMean, PlusOne>;
    test_convolution<C, X, Y>(
        images<C>(IMAGES), filters<C>(),
        [&](const float *x, const float *w, float *out) {
            kp::both_phases::convolve<C>(x, w, out, F(), scratch.data, 0);
        },
        LINES ? less_mean : plus_one);
    scratch.guarded("scratch");
}

template <int IMAGES, int CHANNELS, int FILTERS, int N, class X, class Y>
static void test_even(void) {
    using Plain = kp::Convolution<IMAGES, CHANNELS, FILTERS, 1, typename X::Axis, typename Y::Axis>;
    using C = kp::EvenPhases<Plain>;
    using Tile = kp::TileFor<C, N>;
    begin("EvenPhases (%d images, %d channels, %d filters; %d by %d)", IMAGES, CHANNELS, FILTERS,
          Y::Axis::OUT, X::Axis::OUT);
    const std::vector<float> biases = uniform(FILTERS, 3);
    const Buffer<float> bias(biases);
    const Buffer<unsigned char> scratch(kp::split_bytes<C, Tile>());
    test_convolution<C, X, Y>(
        images<C>(IMAGES), filters<C>(),
        [&](const float *x, const float *w, float *out) {
            const kp::OneByOne<PlusOne, kp::AddBias> f = {{}, {bias.data}};
            kp::convolve<C, Tile>(x, w, out, f, scratch.data, 0);
        },
        [&](std::vector<Convolved> &results) {
            for (size_t i = 0; i < results.size(); i++) {
                const float b = biases[i / C::OUT_AREA % FILTERS];
                results[i].value += b + 1, results[i].size += std::fabs(b) + 1;
            }
        });
    scratch.guarded("scratch");
}

int main() {
    start(true);
    /* A tile's last line is not whole; phases of unequal taps; lines that end with one result more;
     * channels that fill no slab, or a slab and a part. */
    test_both<3, 32, 32, Doubled<12, 3, 1, 1>, Doubled<5, 3, 1, 1>>();
    test_both<2, 64, 64, Doubled<256, 3, 1, 0>, Doubled<3, 4, 1, 1>>();
    test_both<2, 16, 32, Doubled<16, 4, 1, 1>, Doubled<9, 4, 1, 0>>();
    test_both<1, 40, 32, Doubled<20, 4, 1, 0>, Doubled<6, 3, 0, 0>>();
    test_both<2, 32, 32, Doubled<32, 4, 1, 0>, Doubled<7, 4, 1, 0>, true>();
    test_even<3, 24, 32, 32, Doubled<13, 3, 1, 1>, Doubled<9, 3, 1, 1>>();
    test_even<2, 32, 40, 64, Doubled<21, 5, 2, 0>, Doubled<8, 3, 1, 0>>();
    /* More tiles than multiprocessors. */
    test_even<8, 32, 16, 16, Doubled<100, 3, 1, 1>, Doubled<64, 3, 1, 1>>();
    finish();
}
