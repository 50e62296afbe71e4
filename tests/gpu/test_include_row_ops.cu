/* row_ops.cuh by row_passes.cuh, which reads rows twice, and row_ring.cuh, which reads them once,
 * against plain double. */
#include "row_ops.cuh"
#include "row_passes.cuh"
#include "row_ring.cuh"
#include "include_rows.cuh"

/* Runs an Op over [SEGMENTS][ROWS][RUN] in two passes, and compares. */
template <int ROWS, int SEGMENTS, long long RUN, class Op>
static void run_passes(const char *name, const Op &op, const std::vector<float> &host,
                       const std::vector<Want> &want) {
    begin("row_passes, %s (%d segments of %d x %lld)", name, SEGMENTS, ROWS, RUN);
    const Buffer<float> x(host), y(host.size());
    const Buffer<unsigned char> scratch(kp::row_passes_scratch<ROWS, SEGMENTS, RUN, Op>());
    kp::row_passes<ROWS, SEGMENTS, RUN>(0, op, x.data, y.data, scratch.data);
    ran();
    compare(y, want);
    scratch.guarded("scratch");
    unchanged(x, host, "x");
}

/* The same over [ROWS][COLUMNS] in a ring, twice, as scratch is not what it was then. */
template <int ROWS, int COLUMNS, int THREADS, class Op>
static void run_ring(const char *name, const Op &op, const std::vector<float> &host,
                     const std::vector<Want> &want) {
    begin("rows_once, %s (%d x %d, %d threads)", name, ROWS, COLUMNS, THREADS);
    const Buffer<float> x(host), y(host.size());
    const Buffer<unsigned char> scratch(kp::rows_once_scratch<ROWS, COLUMNS, THREADS, Op>());
    for (int again = 0; again < 2; again++) {
        kp::rows_once<ROWS, COLUMNS, THREADS>(0, op, x.data, y.data, scratch.data);
        ran();
        compare(y, want);
    }
    scratch.guarded("scratch");
    unchanged(x, host, "x");
}

/* fp32-class: x - top and the difference from the logarithm are rounded, and so is the sum. */
static std::vector<Want> log_softmax_want(const std::vector<float> &x, int columns) {
    std::vector<Want> want;
    for (size_t r = 0; r < x.size(); r += columns) {
        double top = -INFINITY, sum = 0;
        for (int c = 0; c < columns; c++) top = std::max(top, (double)x[r + c]);
        for (int c = 0; c < columns; c++) sum += std::exp(x[r + c] - top);
        for (int c = 0; c < columns; c++) {
            const double y = x[r + c] - top - std::log(sum);
            want.push_back({y, (64 + 4 * std::fabs(y)) * U});
        }
    }
    return want;
}

/* Over the mean size, or the length; rows from 2^-60 to 2^60, the fifth of each nine of zeros. */
static std::vector<float> scaled_rows(int rows, int columns) {
    std::vector<float> x = uniform((size_t)rows * columns, columns);
    for (size_t i = 0; i < x.size(); i++) {
        const int kind = (int)(i / columns % 9);
        x[i] = kind == 4 ? 0 : (float)std::ldexp(x[i], 15 * (kind - 4));
    }
    return x;
}
static std::vector<Want> over_size_want(const std::vector<float> &x, int columns, bool length) {
    std::vector<Want> want;
    for (size_t r = 0; r < x.size(); r += columns) {
        double sum = 0;
        for (int c = 0; c < columns; c++) {
            const double v = x[r + c];
            sum += length ? v * v : std::fabs(v);
        }
        const double size = length ? std::sqrt(sum) : sum / columns;
        for (int c = 0; c < columns; c++) {
            const double y = x[r + c] / size;
            want.push_back({y, 16 * U * std::fabs(y)});
        }
    }
    return want;
}

template <int ROWS, int COLUMNS, int THREADS> static void test_free_rows() {
    const std::vector<float> x = softmax_rows(ROWS, COLUMNS), z = scaled_rows(ROWS, COLUMNS);
    const std::vector<Want> log = log_softmax_want(x, COLUMNS);
    run_passes<ROWS, 1, COLUMNS>("LogSoftmax", kp::LogSoftmax(), x, log);
    run_ring<ROWS, COLUMNS, THREADS>("LogSoftmax", kp::LogSoftmax(), x, log);
    const std::vector<Want> mean = over_size_want(z, COLUMNS, false);
    run_passes<ROWS, 1, COLUMNS>("mean size", kp::DivideBy<kp::MeanSize>(), z, mean);
    run_ring<ROWS, COLUMNS, THREADS>("mean size", kp::DivideBy<kp::MeanSize>(), z, mean);
    const std::vector<Want> length = over_size_want(z, COLUMNS, true);
    run_passes<ROWS, 1, COLUMNS>("length", kp::DivideBy<kp::Length>(), z, length);
    run_ring<ROWS, COLUMNS, THREADS>("length", kp::DivideBy<kp::Length>(), z, length);
}

/* Of [SEGMENTS][ROWS][RUN], normalised by row; the channel of an element is that of its plane. */
template <int SEGMENTS, int ROWS, int RUN, int CHANNELS, int PLANE>
static std::vector<Want> standard_want(const std::vector<float> &x, const std::vector<float> &w,
                                       const std::vector<float> &b, double eps) {
    std::vector<Want> want(x.size());
    std::vector<float> row((size_t)SEGMENTS * RUN);
    for (int r = 0; r < ROWS; r++) {
        const auto at = [&](int s) { return ((size_t)s * ROWS + r) * RUN; };
        for (int s = 0; s < SEGMENTS; s++) std::copy_n(&x[at(s)], RUN, &row[(size_t)s * RUN]);
        const Stats all = stats_of(row.data(), row.size(), eps);
        for (int s = 0; s < SEGMENTS; s++)
            for (int i = 0; i < RUN; i++) {
                const size_t c = (at(s) + i) / PLANE % CHANNELS;
                want[at(s) + i] =
                    normal(x[at(s) + i], all, w.empty() ? 1 : w[c], b.empty() ? 0 : b[c]);
            }
    }
    return want;
}

template <int SEGMENTS, int ROWS, int RUN, int CHANNELS, int PLANE, int THREADS>
static void test_standardize(bool weights) {
    Random random(RUN);
    std::vector<float> host((size_t)SEGMENTS * ROWS * RUN), w, b;
    for (size_t i = 0; i < host.size(); i++)
        host[i] = norm_value(random, (long long)(i / RUN % ROWS));
    if (weights) w = uniform(CHANNELS, 4, -2, 2), b = uniform(CHANNELS, 5);
    const Buffer<float> weight(w), bias(b);
    kp::Standardize<CHANNELS, PLANE> op = {1e-5, nullptr, nullptr};
    if (weights) op.weight = weight.data, op.bias = bias.data;
    const auto want = standard_want<SEGMENTS, ROWS, RUN, CHANNELS, PLANE>(host, w, b, 1e-5);
    run_passes<ROWS, SEGMENTS, RUN>("Standardize", op, host, want);
    if constexpr (SEGMENTS == 1) run_ring<ROWS, RUN, THREADS>("Standardize", op, host, want);
}

int main() {
    start(false);
    test_free_rows<5, 4, 256>();
    test_free_rows<16, 777, 256>();
    test_free_rows<1200, 1024, 256>();                   /* more rows than blocks */
    test_free_rows<8, 20001, 256>();                     /* slices that are not whole */
    test_free_rows<36, 65535, 256>();                    /* float4 beyond the slices */
    test_free_rows<10, 32768 - 2, 512>();                /* the same in large blocks */
    test_free_rows<63, 8 * 8192, 256>();                 /* whole slices */
    test_standardize<3, 5, 16384, 5, 16384, 0>(true);    /* batch norm */
    test_standardize<1, 24, 16384, 12, 8192, 256>(true); /* group norm */
    test_standardize<1, 900, 8192, 4, 8192, 256>(false); /* instance norm */
    test_standardize<1, 9, 65536, 3, 65536, 512>(true);
    finish();
}
