/* cluster_rows.cuh and layer_norm_sm90.cuh against plain double; sm_90a. */
#include "cluster_rows.cuh"
#include "layer_norm_sm90.cuh"
#include "row_ops.cuh"
#include "include_rows.cuh"

/* ---- cluster_rows.cuh ---- */

/* All kinds of rows of include_rows.cuh: a warp or a block may see nothing but -inf. Rows begin
 * anywhere, if columns are no whole float4. */
template <int ROWS, int COLUMNS, int THREADS, int FOURS, class Op>
static void test_softmax(const char *name) {
    begin("cluster_rows<%d, %d, %d, %d, %s>", ROWS, COLUMNS, THREADS, FOURS, name);
    const std::vector<float> host = softmax_rows(ROWS, COLUMNS);
    const Buffer<float> x(host), y(host.size());
    kp::cluster_rows<ROWS, COLUMNS, THREADS, FOURS>(0, Op(), x.data, y.data);
    ran();
    compare(y, softmax_want(host, COLUMNS));
    unchanged(x, host, "x");
}

/* A state of 16 bytes. */
template <int ROWS, int COLUMNS, int THREADS, int FOURS> static void test_standardize(double eps) {
    begin("cluster_rows<%d, %d, %d, %d, Standardize> (eps %g)", ROWS, COLUMNS, THREADS, FOURS, eps);
    Random random(ROWS);
    std::vector<float> host;
    std::vector<Want> want;
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < COLUMNS; c++) host.push_back(norm_value(random, r));
        const float *row = &host[(size_t)r * COLUMNS];
        const Stats s = stats_of(row, COLUMNS, eps);
        for (int c = 0; c < COLUMNS; c++) want.push_back(normal(row[c], s, 1, 0));
    }
    const Buffer<float> x(host), y(host.size());
    const kp::Standardize<ROWS, COLUMNS> op = {eps, nullptr, nullptr};
    kp::cluster_rows<ROWS, COLUMNS, THREADS, FOURS>(0, op, x.data, y.data);
    ran();
    compare(y, want);
    unchanged(x, host, "x");
}

/* ---- layer_norm_sm90.cuh ---- */

/* Rows of norm_value()'s kinds, and what their layer norm is. */
struct Rows {
    std::vector<float> x, weight, bias;
    std::vector<Want> want;

    Rows(int rows, int columns, double eps)
        : weight(uniform(columns, 2, -2, 2)), bias(uniform(columns, 3)) {
        Random random(rows);
        x.reserve((size_t)rows * columns);
        want.reserve((size_t)rows * columns);
        for (int r = 0; r < rows; r++) {
            for (int c = 0; c < columns; c++) x.push_back(norm_value(random, r));
            const float *row = &x[(size_t)r * columns];
            const Stats s = stats_of(row, columns, eps);
            for (int c = 0; c < columns; c++) want.push_back(normal(row[c], s, weight[c], bias[c]));
        }
    }
};

template <int ROWS, int COLUMNS> static void test_layer_norm(double eps) {
    begin("layer_norm_once<%d, %d> (eps %g)", ROWS, COLUMNS, eps);
    const Rows rows(ROWS, COLUMNS, eps);
    const Buffer<float> x(rows.x), weight(rows.weight), bias(rows.bias), y(rows.x.size());
    const Buffer<unsigned char> scratch(layer_norm_once_scratch<ROWS, COLUMNS>());
    for (int again = 0; again < 2; again++) { /* with what the first left in scratch */
        cuda_ok(cudaMemset(y.data, 0xff, y.count * sizeof(float)), "cudaMemset");
        layer_norm_once<ROWS, COLUMNS>(x.data, weight.data, bias.data, y.data, eps, scratch.data,
                                       0);
        ran();
        compare(y, rows.want, again ? "second time" : "out");
    }
    scratch.guarded("scratch");
    unchanged(x, rows.x, "x");
}

/* The kernel itself, with a number of rows that layer_norm_once() does not take, as layer_norm()
 * does not. */
template <int ROWS, int PIECES> static void test_kernel(double eps) {
    constexpr int COLUMNS = PIECES * PIECE * SLICES * 4;
    begin("layer_norm_once_kernel<%d, %d> (eps %g)", ROWS, PIECES, eps);
    const Rows rows(ROWS, COLUMNS, eps);
    const Buffer<float> x(rows.x), weight(rows.weight), bias(rows.bias), y(rows.x.size());
    const Buffer<unsigned char> scratch(sizeof(Told<ROWS>));
    Told<ROWS> *told = (Told<ROWS> *)scratch.data;
    cuda_ok(cudaMemset(told, 0xff, sizeof *told), "cudaMemset");
    kp::launch_sized<1>(layer_norm_once_kernel<ROWS, PIECES>, SLICES, ONCE_THREADS,
                        sizeof(OnceMemory), 0, true, (const float4 *)x.data,
                        (const float4 *)weight.data, (const float4 *)bias.data, (float4 *)y.data,
                        told, eps);
    ran();
    compare(y, rows.want);
    scratch.guarded("scratch");
}

int main() {
    const int processors = start(true);
    test_softmax<4, 32765, 128, 8, kp::Softmax>("Softmax");
    test_softmax<12, 65535, 512, 8, kp::Softmax>("Softmax");
    test_softmax<12, 65535, 512, 8, kp::KeptSoftmax>("KeptSoftmax");
    test_softmax<9, 65536, 256, 8, kp::KeptSoftmax>("KeptSoftmax");
    test_softmax<300, 32768, 256, 8, kp::KeptSoftmax>("KeptSoftmax"); /* more than run at once */
    test_softmax<7, 393216, 256, 24, kp::KeptSoftmax>("KeptSoftmax"); /* a cluster of sixteen */
    test_standardize<8, 65536, 256, 8>(1e-5);
    test_standardize<40, 262144, 512, 8>(1e-5);
    test_layer_norm<4, 12 * PIECE * SLICES * 4>(1e-5);
    test_layer_norm<4, 16 * PIECE * SLICES * 4>(0.1);
    if (processors >= SLICES) {
        test_kernel<3, 16>(1e-5);
        test_kernel<1, 12>(1e-5);
    } else {
        printf("skipped: layer_norm_once_kernel needs %d multiprocessors, there are %d\n", SLICES,
               processors);
    }
    finish();
}
