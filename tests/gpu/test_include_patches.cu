/* patch_moments.cuh against convolutions in plain double: batch norms of 3 x 3 and of 1 x 1 taps.
 */
#include "patch_moments.cuh"
#include "include_convolved.cuh"
#include "include_rows.cuh"

/* The norms of FILTERS filters, as mean, scale, bias, nothing. */
template <class M, int TAPS, int FILTERS>
static void test_norms(const std::vector<float> &host, const Buffer<unsigned char> &sums) {
    constexpr int DEPTH = M::CHANNELS * TAPS * TAPS;
    begin("%d x %d taps of %d images of %d x %d x %d", TAPS, TAPS, M::IMAGES, M::CHANNELS,
          M::HEIGHT, M::WIDTH);
    const std::vector<float> w = uniform((size_t)FILTERS * DEPTH, 3), scale = uniform(FILTERS, 4),
                             bias = uniform(FILTERS, 5);
    const Buffer<float> filters(w), weights(scale), biases(bias), to((size_t)FILTERS * 4);
    kp::norm_by_patches<M, TAPS, FILTERS>((typename M::Sums *)sums.data, filters.data, weights.data,
                                          biases.data, 1e-5, (kp::ChannelNorm *)to.data, 0);
    ran();
    const std::vector<Convolved> results =
        convolved<Plain<M::WIDTH, TAPS, TAPS / 2, 1>, Plain<M::HEIGHT, TAPS, TAPS / 2, 1>>(
            host, w, M::IMAGES, M::CHANNELS, FILTERS);
    std::vector<Want> want;
    for (int f = 0; f < FILTERS; f++) {
        std::vector<double> y;
        for (size_t i = 0; i < results.size(); i++)
            if ((int)(i / (M::HEIGHT * M::WIDTH) % FILTERS) == f) y.push_back(results[i].value);
        const Stats stats = stats_of(y.data(), y.size(), 1e-5);
        const double by = scale[f] * stats.scale;
        want.push_back({stats.mean, 1e-6 / stats.scale + 1e-7 * std::fabs(stats.mean)});
        want.push_back({by, 1e-6 * std::fabs(by)});
        want.push_back({bias[f], 0});
        want.push_back(UNTOUCHED);
    }
    compare(to, want);
}

template <int IMAGES, int CHANNELS, int HEIGHT, int WIDTH> static void test_patches(void) {
    using M = kp::PatchMoments<IMAGES, CHANNELS, HEIGHT, WIDTH>;
    begin("patches of %d images of %d x %d x %d", IMAGES, CHANNELS, HEIGHT, WIDTH);
    const std::vector<float> host =
        uniform((size_t)IMAGES * CHANNELS * HEIGHT * WIDTH, HEIGHT, -0.3f, 1.0f);
    const Buffer<float> x(host);
    const Buffer<unsigned char> sums(sizeof(typename M::Sums));
    kp::sum_patches<M>(x.data, (typename M::Sums *)sums.data, 0);
    ran();
    sums.guarded("sums");
    unchanged(x, host, "x");
    test_norms<M, 3, 5>(host, sums);
    test_norms<M, 1, 5>(host, sums);
}

int main() {
    start(false);
    test_patches<2, 3, 32, 64>();
    test_patches<3, 3, 17, 45>(); /* a short strip, and columns beyond the last image */
    test_patches<1, 1, 1, 33>();  /* the first row is the last one */
    test_patches<2, 2, 2, 130>();
    test_patches<1, 3, 224, 7>();
    finish();
}
