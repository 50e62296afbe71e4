/* norm_behind.cuh, Hopper's way, against plain double. */
#include "norm_behind.cuh"
#include "include_convolved.cuh"
#include "include_rows.cuh"

template <int IMAGES, int CHANNELS, int FILTERS, int N, int GROUP, class X, class Y>
static void test_behind(void) {
    using C = kp::Convolution<IMAGES, CHANNELS, FILTERS, 1, typename X::Axis, typename Y::Axis>;
    using Lines = kp::InLines<C>;
    using Tile = kp::LineTile<Lines, N, true>;
    using Groups = kp::GroupsBehind<Lines, GROUP>;
    begin("normalize_behind (%d images, %d channels, %d filters in groups of %d; %d by %d)", IMAGES,
          CHANNELS, FILTERS, GROUP, Y::Axis::OUT, X::Axis::OUT);
    const std::vector<float> host = uniform((size_t)IMAGES * CHANNELS * C::AREA, N + IMAGES),
                             taps = uniform((size_t)FILTERS * CHANNELS * C::KERNEL, FILTERS),
                             weights = uniform(FILTERS, 5), biases = uniform(FILTERS, 6);
    const Buffer<float> x(host), w(taps), weight(weights), bias(biases);
    const Buffer<float> out((size_t)IMAGES * FILTERS * C::OUT_AREA);
    const Buffer<unsigned char> scratch(kp::behind_bytes<Groups, Tile>());
    constexpr double EPS = 1e-5;
    kp::normalize_behind<Groups, Tile>(x.data, w.data, weight.data, bias.data, EPS, PlusOne(),
                                       out.data, scratch.data, 0);
    ran();
    const std::vector<Convolved> results = convolved<X, Y>(host, taps, IMAGES, CHANNELS, FILTERS);
    std::vector<double> values;
    for (const Convolved &r : results) values.push_back(r.value + 1);
    constexpr size_t EACH = (size_t)GROUP * C::OUT_AREA;
    std::vector<Want> want;
    Stats stats = {}; /* of a group */
    for (size_t i = 0; i < values.size(); i++) {
        if (i % EACH == 0) stats = stats_of(&values[i], EACH, EPS);
        const size_t f = i / C::OUT_AREA % FILTERS;
        const double s = stats.scale * weights[f];
        want.push_back({(values[i] - stats.mean) * s + biases[f],
                        (6e-6 * results[i].size + 4 * U) * std::fabs(s) + 4 * U});
    }
    compare(out, want);
    scratch.guarded("scratch");
    unchanged(x, host, "x");
}

int main() {
    start(true);
    /* The last strip is not whole; tiles begin and end amid images. */
    test_behind<3, 32, 64, 64, 16, Plain<70, 3, 1, 1>, Plain<10, 3, 1, 1>>();
    test_behind<2, 64, 32, 16, 8, Transposed<66, 3, 0, 1>, Transposed<6, 3, 0, 1>>();
    /* So many images that most are normalised behind the products. */
    test_behind<250, 32, 32, 32, 8, Plain<64, 3, 1, 1>, Plain<8, 3, 1, 1>>();
    test_behind<250, 32, 64, 32, 64, Plain<64, 1, 0, 1>, Plain<8, 3, 1, 1>>();
    finish();
}
