/* patch_moments.cuh against convolutions in plain double: batch norms of 3 x 3 and of 1 x 1 taps.
 */
#include "patch_moments.cuh"
#include "include_rows.cuh"

/* The results of a filter of TAPS x TAPS taps a channel. */
template <class M, int TAPS>
static std::vector<double> convolved(const std::vector<float> &x, const float *w) {
    std::vector<double> y;
    for (int n = 0; n < M::IMAGES; n++)
        for (int row = 0; row < M::HEIGHT; row++)
            for (int column = 0; column < M::WIDTH; column++) {
                double sum = 0;
                for (int k = 0; k < M::CHANNELS * TAPS * TAPS; k++) {
                    const int c = k / (TAPS * TAPS), at = row + k / TAPS % TAPS - TAPS / 2;
                    const int to = column + k % TAPS - TAPS / 2;
                    if (at < 0 || at >= M::HEIGHT || to < 0 || to >= M::WIDTH) continue;
                    sum += (double)w[k] *
                           x[((size_t)(n * M::CHANNELS + c) * M::HEIGHT + at) * M::WIDTH + to];
                }
                y.push_back(sum);
            }
    return y;
}

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
    std::vector<Want> want;
    for (int f = 0; f < FILTERS; f++) {
        const std::vector<double> y = convolved<M, TAPS>(host, &w[(size_t)f * DEPTH]);
        double sum = 0, square = 0;
        for (double v : y) sum += v;
        const double mean = sum / y.size();
        for (double v : y) square += (v - mean) * (v - mean);
        const double deviation = std::sqrt(square / y.size() + 1e-5), by = scale[f] / deviation;
        want.push_back({mean, 1e-6 * deviation + 1e-7 * std::fabs(mean)});
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
