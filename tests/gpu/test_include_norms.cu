/* norm.cuh and layer_norm.cuh against plain double. */
#include "layer_norm.cuh"
#include "include_rows.cuh"

/* Rows of norm_value()'s kinds, one after the other. */
static std::vector<float> norm_rows(size_t rows, size_t columns, uint64_t seed) {
    Random random(seed);
    std::vector<float> x;
    x.reserve(rows * columns);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) x.push_back(norm_value(random, (long long)r));
    return x;
}

/* ---- norm.cuh ---- */

/* A row a block: pairs of float4 by the one take(), what is left value by value by the other. */
template <int THREADS>
static __global__ void moments_kernel(const float *x, double *sums, float *row, int columns,
                                      double eps) {
    const float *p = x + (long long)blockIdx.x * columns;
    Moments m = {0, 0};
    int i = threadIdx.x * 8;
    for (; i + 8 <= columns; i += THREADS * 8) {
        const float4 a = {p[i], p[i + 1], p[i + 2], p[i + 3]};
        const float4 b = {p[i + 4], p[i + 5], p[i + 6], p[i + 7]};
        m.take(a, b);
    }
    for (; i < columns; i++) m.take(p[i]); /* one thread's */
    m = block_moments<THREADS>(m);
    const Standard s = standard(m, columns, eps);
    double *to = sums + (blockIdx.x * (long long)THREADS + threadIdx.x) * 2;
    to[0] = m.sum;
    to[1] = m.square;
    if (threadIdx.x == 0) {
        row[blockIdx.x * 2] = s.mean;
        row[blockIdx.x * 2 + 1] = s.scale;
    }
}

/* Every thread's sum and square, and what standard() makes of them. The square has its groups'
 * deviations in fp32 and their means, three roundings off: 12 U of the squares. */
template <int THREADS> static void test_moments(int rows, int columns, double eps) {
    begin("block_moments<%d>, standard (%d x %d, eps %g)", THREADS, rows, columns, eps);
    const std::vector<float> host = norm_rows(rows, columns, columns);
    const Buffer<float> x(host), row(2 * rows);
    const Buffer<double> sums((size_t)rows * THREADS * 2);
    moments_kernel<THREADS><<<rows, THREADS>>>(x.data, sums.data, row.data, columns, eps);
    ran();
    std::vector<Want> want, standards;
    for (int r = 0; r < rows; r++) {
        double sum = 0, square = 0, size = 0;
        for (int c = 0; c < columns; c++) {
            const double v = host[(size_t)r * columns + c];
            sum += v, square += v * v, size += std::fabs(v);
        }
        for (int t = 0; t < THREADS; t++) {
            want.push_back({sum, 4 * U * size});
            want.push_back({square, 12 * U * square});
        }
        const Stats s = stats_of(&host[(size_t)r * columns], columns, eps);
        standards.push_back({s.mean, mean_slack(s)});
        standards.push_back({s.scale, scale_slack(s)});
    }
    compare(sums, want, "moments");
    compare(row, standards, "standard");
}

/* Sums of chunks that the host made; of every fifth row the variance comes out below zero. */
template <int THREADS> static void test_row_standard(int rows, int chunks) {
    begin("row_standard_kernel<%d> (%d x %d chunks)", THREADS, rows, chunks);
    const double count = 8.0 * chunks, eps = 1e-12;
    Random random(chunks);
    std::vector<Moments> host;
    std::vector<Want> want;
    for (int r = 0; r < rows; r++) {
        const double mean = r % 5 ? 20.0 * random.uniform() : 3;
        const double deviation = r % 5 ? 0.01 * (r % 5) : 0;
        const double square = r % 5 ? mean * mean + deviation * deviation : 9 * (1 - 1e-9);
        for (int c = 0; c < chunks; c++) {
            const double shift = c % 2 == 0 && c + 1 < chunks ? 1 : c % 2 ? -1 : 0;
            host.push_back({8 * mean + shift, 8 * square});
        }
        const double scale = 1 / std::sqrt(deviation * deviation + eps);
        want.push_back({mean, std::fabs(mean) * 2 * U});
        /* double loses some 2^-50 of the square, 400 at most, against the variance */
        want.push_back({scale, scale * (2 * U + 400 * 0x1p-50 * scale * scale * (r % 5 > 0))});
    }
    const Buffer<Moments> part(host);
    const Buffer<float> row(2 * rows);
    row_standard_kernel<THREADS>
        <<<rows, THREADS>>>(part.data, (Standard *)row.data, chunks, count, eps);
    ran();
    compare(row, want);
}

/* ---- layer_norm.cuh ---- */

template <int ROWS> static void test_layer_norm(int columns, double eps) {
    begin("layer_norm<%d> (%d columns, eps %g)", ROWS, columns, eps);
    const std::vector<float> host = norm_rows(ROWS, columns, ROWS);
    const std::vector<float> weights = uniform(columns, 2, -2, 2), biases = uniform(columns, 3);
    const Buffer<float> x(host), weight(weights), bias(biases), y(host.size());
    const Buffer<unsigned char> scratch(layer_norm_scratch(ROWS, columns));
    layer_norm<ROWS>(x.data, weight.data, bias.data, y.data, columns, eps, scratch.data, 0);
    ran();
    std::vector<Want> want;
    for (int r = 0; r < ROWS; r++) {
        const float *row = &host[(size_t)r * columns];
        const Stats s = stats_of(row, columns, eps);
        for (int c = 0; c < columns; c++) want.push_back(normal(row[c], s, weights[c], biases[c]));
    }
    compare(y, want);
    scratch.guarded("scratch");
    unchanged(x, host, "x");
}

int main() {
    start(false);
    test_moments<32>(4, 1, 1e-5);
    test_moments<32>(4, 8, 1e-5);
    test_moments<96>(9, 1003, 1e-5);
    test_moments<1024>(5, 8197, 0.25);
    test_moments<256>(400, 4096, 1e-5);
    test_row_standard<32>(7, 1);
    test_row_standard<256>(6, 257);
    test_row_standard<NORM_THREADS>(500, 1000);
    test_layer_norm<4>(NORM_CHUNK, 1e-5);
    test_layer_norm<8>(5 * NORM_CHUNK, 0.1);
    test_layer_norm<4>(37 * NORM_CHUNK, 1e-5);
    finish();
}
