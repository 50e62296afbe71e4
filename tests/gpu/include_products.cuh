/* include_products.cuh: plain products in double. */
#pragma once
#include <cuda_bf16.h>
#include "include_test.cuh"

static inline double number(__nv_bfloat16 v) {
    return __bfloat162float(v);
}

/* A result and what bounds its error: the same sum of absolute values. */
struct Exact {
    std::vector<double> value, size;
    explicit Exact(size_t n) : value(n), size(n) {}
};

/* a (m x k) * b (k x n), both without gaps. */
template <class T>
static Exact plain_product(const std::vector<T> &a, const std::vector<T> &b, int m, int n, int k) {
    Exact c((size_t)m * n);
    std::vector<double> right(b.size());
    for (size_t i = 0; i < b.size(); i++) right[i] = number(b[i]);
    for (int i = 0; i < m; i++) {
        double *value = &c.value[(size_t)i * n], *size = &c.size[(size_t)i * n];
        for (int d = 0; d < k; d++) {
            const double x = number(a[(size_t)i * k + d]);
            const double *y = &right[(size_t)d * n];
            for (int j = 0; j < n; j++) {
                value[j] += x * y[j];
                size[j] += std::fabs(x * y[j]);
            }
        }
    }
    return c;
}

/* x (m x n) transposed. */
template <class T> static std::vector<T> transposed(const std::vector<T> &x, int m, int n) {
    std::vector<T> y(x.size());
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) y[(size_t)j * m + i] = x[(size_t)i * n + j];
    return y;
}

/* x (m x n) with rows of `pitch`; what lies between them is large, and nobody's business. */
static inline std::vector<float> with_pitch(const std::vector<float> &x, int m, int n, int pitch) {
    std::vector<float> y((size_t)m * pitch, 3e30f);
    for (int i = 0; i < m; i++) std::copy_n(&x[(size_t)i * n], n, &y[(size_t)i * pitch]);
    return y;
}

/* The error of a sum of `depth` products that rounds each sum: sqrt(depth) roundings of the
 * largest sum, times three, as they are random. One pass of TF32 or bf16 is off by 2^-12 or more
 * of the sum of absolute values over sqrt(depth), which is more than this up to 1000 products. */
static inline double fp32_slack(double size, int depth) {
    return size * U * 3 * (std::sqrt((double)depth) + 1);
}

/* Where the tensor cores add they cut off, once in `step` products at the most 2^-20 of the sum of
 * absolute values: 16 of f16 and bf16, 8 of TF32. */
static inline double tensor_slack(double size, int depth, int step) {
    return size * (depth / step + 1) * 0x1p-20;
}

/* The largest error of one rounding: relative, and of denormals. */
template <class E> struct Rounding;
template <> struct Rounding<__half> { static constexpr double UNIT = 0x1p-11, LEAST = 0x1p-25; };
template <> struct Rounding<__nv_bfloat16> {
    static constexpr double UNIT = 0x1p-8, LEAST = 0x1p-134;
};
template <> struct Rounding<float> { static constexpr double UNIT = U, LEAST = 0x1p-150; };

/* A product of elements that multiply exactly, with fp32 sums, rounded to E at the end. */
template <class E> static std::vector<Want> tensor_want(const Exact &c, int depth, int step) {
    std::vector<Want> want(c.value.size());
    for (size_t i = 0; i < want.size(); i++) {
        const double sums = tensor_slack(c.size[i], depth, step);
        want[i] = {c.value[i],
                   (std::fabs(c.value[i]) + sums) * Rounding<E>::UNIT + sums + Rounding<E>::LEAST};
    }
    return want;
}

static inline std::vector<Want> half_want(const Exact &c, int depth) {
    return tensor_want<__half>(c, depth, 16);
}
