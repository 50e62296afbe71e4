/* reduce.cuh, async.cuh and softmax.cuh against plain double. */
#include "async.cuh"
#include "reduce.cuh"
#include "softmax.cuh"
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
    test_softmax<512, 32>(7);
    test_softmax<3 * 16 * 96, 96>(7);
    test_softmax<16384, 1024>(7);
    test_softmax<2048, 128>(700);
    finish();
}
