/* include_rows.cuh: plain softmax and norms in double, and rows that are hard for them. */
#pragma once
#include "include_test.cuh"

/* ---- softmax ---- */

/* Rows of seven kinds in turn: plain, far apart, all equal, every seventh value -inf, about 10000,
 * -inf but for the last 37 values, -inf throughout. */
static inline std::vector<float> softmax_rows(int rows, int columns) {
    Random random(rows + columns);
    std::vector<float> x((size_t)rows * columns);
    for (size_t i = 0; i < x.size(); i++) {
        const int kind = (int)(i / columns % 7), c = (int)(i % columns);
        float v = random.uniform(-3, 3);
        if (kind == 1) v *= 30;
        if (kind == 2) v = -7.25f;
        if (kind == 3 && c % 7 == 0) v = -INFINITY;
        if (kind == 4) v += 10000;
        if (kind == 5 && c < columns - 37) v = -INFINITY;
        if (kind == 6) v = -INFINITY;
        x[i] = v;
    }
    return x;
}

/* fp32-class: the argument x - top is rounded, which moves its exponential by |x - top| U, and so
 * does the change of origin from a thread's or warp's maximum to the row's; a few roundings more
 * for expf, sums and the quotient. Below fp32's normal numbers: some of the last denormal. A row
 * of -inf has no softmax. */
static inline std::vector<Want> softmax_want(const std::vector<float> &x, int columns) {
    std::vector<Want> want(x.size());
    for (size_t r = 0; r < x.size(); r += columns) {
        double top = -INFINITY, sum = 0;
        for (int c = 0; c < columns; c++) top = std::max(top, (double)x[r + c]);
        for (int c = 0; c < columns; c++) sum += std::exp(x[r + c] - top);
        for (int c = 0; c < columns; c++) {
            const double below = x[r + c] - top, y = std::exp(below) / sum;
            const double relative = std::isinf(below) ? 0 : (64 + 2 * std::fabs(below)) * U;
            want[r + c] = {y, y * relative + 1e-43};
        }
    }
    return want;
}

/* ---- norms ---- */

/* What row r of `n` is made of: deviations about 1 and means 0, 1000 and -3; every fourth has no
 * deviation at all. */
static inline float norm_value(Random &random, long long r) {
    const float v = random.uniform(-1.7f, 1.7f);
    return r % 4 == 0 ? v : r % 4 == 1 ? v + 1000 : r % 4 == 2 ? v * 0.01f - 3 : 3.7f;
}

struct Stats {
    double mean, scale, largest;
};

/* Of the values x[0], x[stride], ... */
template <class T> static Stats stats_of(const T *x, size_t n, double eps) {
    double sum = 0, square = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        sum += x[i];
        largest = std::max(largest, std::fabs((double)x[i]));
    }
    const double mean = sum / n;
    for (size_t i = 0; i < n; i++) square += (x[i] - mean) * (x[i] - mean);
    return {mean, 1 / std::sqrt(square / n + eps), largest};
}

/* How far off norm.cuh's mean and scale may be. Its sums of eight values have three roundings in
 * fp32, and the mean one more: 4 U of the largest value. That much the values are moved, which
 * moves the scale by the same over the deviation, or less. A variance by fp32 squares would be off
 * by the mean's square over the variance times that: 10^6 U and not 10^3 U for a mean of 1000. */
static inline double mean_slack(const Stats &s) {
    return 4 * U * s.largest;
}
static inline double scale_slack(const Stats &s) {
    return s.scale * (4 * U + 4 * U * s.largest * s.scale);
}

/* (x - mean) * scale * weight + bias. */
static inline Want normal(float x, const Stats &s, double weight, double bias) {
    const double d = (x - s.mean) * weight, y = d * s.scale;
    return {y + bias, mean_slack(s) * s.scale * std::fabs(weight) + std::fabs(d) * scale_slack(s) +
                          6 * U * (std::fabs(y) + std::fabs(bias))};
}
