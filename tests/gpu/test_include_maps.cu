/* map.cuh, activations.cuh and mean_of_terms.cuh against plain double. */
#include <cfloat>
#include "activations.cuh"
#include "map.cuh"
#include "mean_of_terms.cuh"
#include "include_test.cuh"

/* ---- activations.cuh ---- */

/* Floats of every size and sign, and the special ones. */
static std::vector<float> all_sizes() {
    std::vector<float> x = {0.0f, -0.0f, 1.0f, -1.0f, -3.0f, 3.0f, 20.0f, INFINITY, -INFINITY, NAN};
    for (unsigned i = 0; i < 65536; i++) {
        const unsigned bits = i * 65537u;
        float v;
        memcpy(&v, &bits, sizeof v);
        x.push_back(v);
    }
    const std::vector<float> near = uniform(65536, 3, -30, 30);
    x.insert(x.end(), near.begin(), near.end());
    while (x.size() % 4) x.push_back(0);
    return x;
}

/* So many roundings of the result; and the least normal number, since flushing is allowed. */
static double roundings(double n, double y) {
    return n * U * std::fabs(y) + FLT_MIN;
}

/* F against y(x) in double; slack(x, y) is how far off it may be. */
template <class F, class Y, class Slack>
static void test_activation(const char *name, F f, Y y, Slack slack) {
    begin("%s", name);
    constexpr long long N = 131084;
    const std::vector<float> host = all_sizes();
    check(host.size() == (size_t)N, "%zu values, %lld expected", host.size(), N);
    const Buffer<float> x(host), out(N);
    kp::map<N>(0, f, out.data, (const float *)x.data);
    ran();
    std::vector<Want> want;
    for (float v : host) {
        const double exact = y((double)v);
        const bool overflows = std::fabs(exact) > FLT_MAX * (1 + U / 2);
        want.push_back({overflows ? std::copysign(INFINITY, exact) : exact, slack(v, exact)});
    }
    compare(out, want);
}
template <class F, class Y> static void test_rounded(const char *name, F f, Y y, double n = 12) {
    test_activation(name, f, y, [n](double, double exact) { return roundings(n, exact); });
}

static double clamp(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}

static void test_activations() {
    using namespace kp;
    test_rounded("Scale", Scale{3.14f}, [](double x) { return 3.14f * x; });
    test_rounded(
        "Relu", Relu(), [](double x) { return x < 0 ? 0 : x; }, 0);
    test_rounded("LeakyRelu", LeakyRelu{0.01f}, [](double x) { return x > 0 ? x : x * 0.01; });
    test_rounded(
        "Clamp", Clamp{-1, 2.5f}, [](double x) { return clamp(x, -1, 2.5); }, 0);
    test_rounded("Hardsigmoid", Hardsigmoid(), [](double x) { return clamp(x + 3, 0, 6) / 6; });
    test_rounded("Hardswish", Hardswish(), [](double x) { return x * (clamp(x + 3, 0, 6) / 6); });
    test_rounded("Softsign", Softsign(), [](double x) { return x / (1 + std::fabs(x)); });
    test_rounded("Sigmoid", Sigmoid(), [](double x) { return 1 / (1 + std::exp(-x)); });
    test_rounded("Swish", Swish(), [](double x) { return x / (1 + std::exp(-x)); });
    test_rounded("Tanh", Tanh(), [](double x) { return std::tanh(x); });
    test_rounded(
        "Mish", Mish(), [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, 16);
    test_rounded("Softplus", Softplus(),
                 [](double x) { return x > 20 ? x : std::log1p(std::exp(x)); });
    test_rounded("Elu", Elu{2}, [](double x) { return x > 0 ? x : 2 * std::expm1(x); });
    test_rounded("Selu", Selu(), [](double x) {
        return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x));
    });
    /* 1 + erf cancels below 0. */
    test_activation(
        "Gelu", Gelu(), [](double x) { return x * 0.5 * std::erfc(-x * std::sqrt(0.5)); },
        [](double x, double y) { return roundings(8, y) + (x < 0 ? 4 * U * -x : 0); });
    /* The argument's roundings move the exponential. */
    const auto twice = [](double x) {
        return 2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    };
    test_activation(
        "GeluTanh", GeluTanh(), [=](double x) { return x / (1 + std::exp(-twice(x))); },
        [=](double x, double y) {
            return roundings(8 + 6 * std::fmin(99, std::fabs(twice(x))), y);
        });
}

/* ---- map.cuh ---- */

struct Combine {
    __device__ float operator()(float a, float b, float c) const { return a - 2 * b + c; }
};

/* Three inputs, and a tail that is no float4. */
template <long long ELEMENTS> static void test_map() {
    begin("map (%lld elements)", ELEMENTS);
    const std::vector<float> a = uniform(ELEMENTS, 1), b = uniform(ELEMENTS, 2);
    const std::vector<float> c = uniform(ELEMENTS, 3);
    const Buffer<float> x(a), y(b), z(c), out(ELEMENTS);
    kp::map<ELEMENTS>(0, Combine(), out.data, (const float *)x.data, (const float *)y.data,
                      (const float *)z.data);
    ran();
    std::vector<Want> want;
    for (size_t i = 0; i < a.size(); i++) want.push_back({(double)a[i] - 2.0 * b[i] + c[i], 6 * U});
    compare(out, want);
    unchanged(x, a, "x");
}

/* ---- mean_of_terms.cuh ---- */

/* Two sums: what a tile contributes is the root of one and the other. */
struct TwoSums {
    static constexpr int SUMS = 2;
    __device__ void add(float (&sum)[2], float x, float weight) const {
        sum[0] += x * x;
        sum[1] += x * weight;
    }
    __device__ float tile(const double (&sum)[2]) const { return (float)(sqrt(sum[0]) + sum[1]); }
};

template <int ACROSS, int ROWS, int DOWN> static void test_mean_of_terms() {
    begin("mean_of_terms (%d tiles across, %d down, %d rows)", ACROSS, DOWN, ROWS);
    constexpr int COLUMNS = ACROSS * kp::TILE_WIDTH, ALL = ROWS * DOWN;
    constexpr long long ELEMENTS = (long long)ALL * COLUMNS;
    const std::vector<float> a = uniform(ELEMENTS, 1, -1, 2), w = uniform(COLUMNS, 2);
    const Buffer<float> x(a), weight(w), out(1), part(kp::tiles_of<ELEMENTS, ROWS>());
    kp::mean_of_terms<ELEMENTS, COLUMNS, ROWS>(0, TwoSums(), 7.0, out.data, part.data,
                                               kp::All{x.data}, kp::EveryRow{weight.data});
    ran();
    double all = 0, size = 0;
    for (int down = 0; down < DOWN; down++)
        for (int across = 0; across < ACROSS; across++) {
            double square = 0, sum = 0;
            for (int r = down * ROWS; r < (down + 1) * ROWS; r++)
                for (int c = across * kp::TILE_WIDTH; c < (across + 1) * kp::TILE_WIDTH; c++) {
                    const double v = a[(size_t)r * COLUMNS + c];
                    square += v * v;
                    sum += v * w[c];
                    size += std::fabs(v * w[c]);
                }
            all += std::sqrt(square) + sum;
            size += std::sqrt(square);
        }
    compare(out, {{all / 7, 16 * U * size / 7}});
    part.guarded("scratch");
}

int main() {
    start(false);
    test_activations();
    test_map<1>();
    test_map<3>();
    test_map<4>();
    test_map<511>();
    test_map<512>();
    test_map<2051>();
    test_map<100000>();
    test_mean_of_terms<1, 1, 1>();
    test_mean_of_terms<1, 4, 300>();
    test_mean_of_terms<3, 2, 5>();
    finish();
}
