/* reduce.cuh, async.cuh, activation.cuh, stream_map.cuh and softmax.cuh against plain double. */
#include "activation.cuh"
#include "async.cuh"
#include "reduce.cuh"
#include "softmax.cuh"
#include "stream_map.cuh"
#include "include_rows.cuh"

/* ---- reduce.cuh ---- */

/* What a reduction of n values is. A sum of floats has fewer than 40 roundings one after the
 * other: 5 in a warp and 31 after it. */
template <class T> static Want fold(const T *x, int n, bool max, double more = 0) {
    double sum = 0, size = 0, top = -INFINITY;
    for (int i = 0; i < n; i++) {
        sum += number(x[i]) + more;
        size += std::fabs(number(x[i]) + more);
        top = std::max(top, number(x[i]) + more);
    }
    if (max) return {top, 0};
    return {sum, sizeof(T) == 8 ? size * 0x1p-47 : (T)0.5 == 0 ? 0 : size * 40 * U};
}

template <int WIDTH, class T, class Op>
static __global__ void warp_kernel(const T *x, T *y, Op op) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = warp_reduce<WIDTH>(x[i], op);
}

/* Random values; whole numbers where T is one. */
template <class T> static std::vector<T> values(int n, int seed) {
    Random random(seed);
    std::vector<T> v(n);
    for (T &x : v) x = (T)random.uniform(-1000, 1000);
    return v;
}

/* Each group of `width` got the same bits in all of its threads. */
template <class T> static void alike(const Buffer<T> &y, int width, const char *what) {
    const std::vector<T> got = y.read();
    std::vector<Want> want(got.size());
    for (size_t i = 0; i < want.size(); i++) want[i] = {number(got[i / width * width]), 0};
    compare(y, want, what);
}

template <int WIDTH, class T, class Op> static void test_warp(const char *name, Op op, bool max) {
    constexpr int BLOCKS = 5, THREADS = 96, N = BLOCKS * THREADS;
    begin("warp_reduce<%d> (%s, %d blocks of %d)", WIDTH, name, BLOCKS, THREADS);
    const std::vector<T> host = values<T>(N, WIDTH);
    const Buffer<T> x(host), y(N);
    warp_kernel<WIDTH><<<BLOCKS, THREADS>>>(x.data, y.data, op);
    ran();
    std::vector<Want> want(N);
    for (int i = 0; i < N; i++) want[i] = fold(&host[i / WIDTH * WIDTH], WIDTH, max);
    compare(y, want);
    alike(y, WIDTH, "lane's result");
}

/* Twice in a row, so that the second reduction may find the first one's shared memory in use. */
template <int THREADS, class T, class Op>
static __global__ void block_kernel(const T *x, T *first, T *second, Op op) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    first[i] = block_reduce<THREADS>(x[i], op);
    second[i] = block_reduce<THREADS>((T)(x[i] + (T)3), op);
}

template <int THREADS, class T, class Op>
static void test_block(const char *name, Op op, bool max, int blocks) {
    const int n = blocks * THREADS;
    begin("block_reduce<%d> (%s, %d blocks)", THREADS, name, blocks);
    std::vector<T> host = values<T>(n, THREADS);
    for (T &x : host) x = (T)std::rint((double)x * 64) / 64; /* so that x + 3 is exact */
    const Buffer<T> x(host), first(n), second(n);
    block_kernel<THREADS><<<blocks, THREADS>>>(x.data, first.data, second.data, op);
    ran();
    std::vector<Want> want(n), more(n);
    for (int i = 0; i < n; i += THREADS)
        for (int j = 0; j < THREADS; j++) {
            want[i + j] = j ? want[i] : fold(&host[i], THREADS, max);
            more[i + j] = j ? more[i] : fold(&host[i], THREADS, max, 3);
        }
    compare(first, want);
    compare(second, more, "second");
    alike(first, THREADS, "thread's result");
}

static void test_reduce() {
    test_warp<1, float>("float sum", Add(), false);
    test_warp<2, int>("int sum", Add(), false);
    test_warp<4, double>("double sum", Add(), false);
    test_warp<8, float>("float sum", Add(), false);
    test_warp<16, float>("float maximum", Max(), true);
    test_warp<32, float>("float sum", Add(), false);
    test_warp<32, double>("double sum", Add(), false);
    test_block<32, float>("float sum", Add(), false, 1);
    test_block<96, double>("double sum", Add(), false, 7);
    test_block<224, int>("int sum", Add(), false, 3);
    test_block<512, float>("float maximum", Max(), true, 600);
    test_block<1024, float>("float sum", Add(), false, 300);
}

/* ---- async.cuh ---- */

/* Nine groups of copies a thread, waited for one by one, with 8 (more than copy_wait counts), 7,
 * ... and 0 pending. An empty group comes in between. */
static __global__ void copy_kernel(const float4 *x, float4 *y) {
    __shared__ float4 stage[9][64];
    const float4 *from = x + (long long)blockIdx.x * 9 * 64 + threadIdx.x;
    float4 *to = y + (long long)blockIdx.x * 9 * 64 + threadIdx.x;
#pragma unroll
    for (int j = 0; j < 9; j++) {
        copy_async(&stage[j][threadIdx.x], from + j * 64);
        copy_commit();
    }
#pragma unroll
    for (int j = 0; j < 9; j++) {
        copy_wait(8 - j);
        to[j * 64] = stage[j][threadIdx.x];
    }
    copy_commit();
    copy_wait(0);
}

static void test_async() {
    constexpr int BLOCKS = 700, N = BLOCKS * 9 * 64 * 4;
    begin("copy_async, copy_wait (9 groups, %d blocks)", BLOCKS);
    const std::vector<float> host = uniform(N, 1);
    const Buffer<float> x(host), y(N);
    copy_kernel<<<BLOCKS, 64>>>((const float4 *)x.data, (float4 *)y.data);
    ran();
    std::vector<Want> want(N);
    for (int i = 0; i < N; i++) want[i] = {host[i], 0};
    compare(y, want);
}

/* ---- activation.cuh and stream_map.cuh ---- */

/* What f(v) is. Plain expf and erff have two units in the last place or less, and there are some
 * roundings more. Gelu: of 1 + erf(v) near v = -4 only the digits of 1 are right, so that v U is
 * lost. Swish: where exp(-v) is above fp32's range, 0, which is off by less than 3e-37. Mish: for
 * large negative v some of the last denormal, times v. */
static Want wanted(Relu, float v) {
    return {v < 0 ? 0 : v, 0};
}
static Want wanted(LeakyRelu f, float v) {
    return {v > 0 ? v : (double)v * f.slope, v > 0 ? 0 : std::fabs(v) * U + 1e-45};
}
static Want wanted(Gelu, float v) {
    const double x = v;
    return {x * 0.5 * (1 + std::erf(x * M_SQRT1_2)), std::fabs(x) * 8 * U + 1e-44};
}
static Want wanted(Swish, float v) {
    const double x = v, y = x / (1 + std::exp(-x));
    return {y, std::fabs(y) * 8 * U + 3e-37};
}
static Want wanted(Mish, float v) {
    const double x = v, y = x * std::tanh(std::log1p(std::exp(x)));
    return {y, std::fabs(y) * 16 * U + 1e-42};
}

/* Values of all sizes, and the special ones. Only functions that are defined there get -inf. */
static std::vector<float> arguments(int n, bool below) {
    const float special[] = {
        0.0f,   -0.0f,   20.0f,  20.000002f, -20.0f, -88.0f, -90.0f,   100.0f,
        1e-30f, -1e-30f, 1e-41f, -1e-41f,    1e30f,  NAN,    INFINITY, below ? -INFINITY : -4.0f};
    constexpr int SPECIAL = sizeof special / sizeof *special;
    Random random(n);
    std::vector<float> x(n);
    for (int i = 0; i < n; i++) x[i] = i % 3 ? random.uniform(-5, 5) : random.uniform(-105, 105);
    for (int i = 0; i < SPECIAL; i++) x[(size_t)i * 7919 % n] = special[i];
    return x;
}

template <class F> static __global__ void map_kernel(const float *x, float *y, int n, F f) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = f(x[i]);
}

template <class F> static std::vector<Want> all_wanted(const std::vector<float> &x, F f) {
    std::vector<Want> want;
    for (float v : x) want.push_back(wanted(f, v));
    return want;
}

template <class F> static void test_function(const char *name, F f, bool below) {
    constexpr int N = 5003;
    begin("%s (%d values)", name, N);
    const std::vector<float> host = arguments(N, below);
    const Buffer<float> x(host), y(N);
    map_kernel<<<(N + 127) / 128, 128>>>(x.data, y.data, N, f);
    ran();
    compare(y, all_wanted(host, f));
}

template <class F, int THREADS, int FOURS, int BLOCKS> static void test_map(const char *name) {
    constexpr int N = 4 * THREADS * FOURS * BLOCKS;
    begin("stream_map<%s, %d, %d> (%d values)", name, THREADS, FOURS, N);
    const std::vector<float> host = arguments(N, false);
    const Buffer<float> x(host), y(N);
    stream_map<F, THREADS, FOURS, N>(x.data, y.data, 0);
    ran();
    compare(y, all_wanted(host, F()));
    unchanged(x, host, "x");
}

static void test_maps() {
    test_function("Relu", Relu(), true);
    test_function("LeakyRelu", LeakyRelu{0.1f}, true);
    test_function("Gelu", Gelu(), false);
    test_function("Swish", Swish(), false);
    test_function("Mish", Mish(), false);
    test_map<Relu, 32, 1, 1>("Relu");
    test_map<Swish, 96, 3, 5>("Swish");
    test_map<Mish, 256, 4, 7>("Mish");
    test_map<Gelu, 128, 1, 2001>("Gelu");
}

/* ---- softmax.cuh ---- */

/* All kinds of rows of include_rows.cuh: a thread may see nothing but -inf, or begin with it. */
template <int COLUMNS, int THREADS> static void test_softmax(int rows) {
    begin("softmax_kernel<%d, %d> (%d rows)", COLUMNS, THREADS, rows);
    const std::vector<float> host = softmax_rows(rows, COLUMNS);
    const Buffer<float> x(host), y(host.size());
    softmax_kernel<COLUMNS, THREADS><<<rows, THREADS>>>(x.data, y.data);
    ran();
    compare(y, softmax_want(host, COLUMNS));
    unchanged(x, host, "x");
}

int main() {
    start(false);
    test_reduce();
    test_async();
    test_maps();
    test_softmax<512, 32>(7);
    test_softmax<3 * 16 * 96, 96>(7);
    test_softmax<16384, 1024>(7);
    test_softmax<2048, 128>(700);
    finish();
}
