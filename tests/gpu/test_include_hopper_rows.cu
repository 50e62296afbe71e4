/* cluster_softmax.cuh, cluster_rows.cuh and layer_norm_sm90.cuh against plain double; sm_90a. */
#include "cluster_rows.cuh"
#include "cluster_softmax.cuh"
#include "layer_norm_sm90.cuh"
#include "row_ops.cuh"
#include "include_rows.cuh"

/* ---- cluster_softmax.cuh ---- */

/* All kinds of rows of include_rows.cuh: a warp or a block may see nothing but -inf. */
template <int COLUMNS, int CLUSTER, int THREADS> static void test_softmax(int rows) {
    begin("cluster_softmax<%d, %d, %d> (%d rows)", COLUMNS, CLUSTER, THREADS, rows);
    const std::vector<float> host = softmax_rows(rows, COLUMNS);
    const Buffer<float> x(host), y(host.size());
    cluster_softmax<COLUMNS, CLUSTER, THREADS>(x.data, y.data, rows, 0);
    ran();
    compare(y, softmax_want(host, COLUMNS));
    unchanged(x, host, "x");
}

/* ---- cluster_rows.cuh ---- */

/* The same rows, which begin anywhere: columns are no whole float4. */
template <int ROWS, int COLUMNS, int THREADS> static void test_cluster_rows() {
    begin("cluster_rows<%d, %d, %d, Softmax>", ROWS, COLUMNS, THREADS);
    const std::vector<float> host = softmax_rows(ROWS, COLUMNS);
    const Buffer<float> x(host), y(host.size());
    kp::cluster_rows<ROWS, COLUMNS, THREADS>(0, kp::Softmax(), x.data, y.data);
    ran();
    compare(y, softmax_want(host, COLUMNS));
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
 * does not: the teams have unlike numbers of rows. */
template <int ROWS, int FOURS> static void test_kernel(double eps) {
    constexpr int COLUMNS = FOURS * 4 * SLICES * TEAM, SHARED = 2 * KEPT * TEAM * sizeof(float4);
    begin("layer_norm_once_kernel<%d, %d> (eps %g)", ROWS, FOURS, eps);
    const Rows rows(ROWS, COLUMNS, eps);
    const Buffer<float> x(rows.x), weight(rows.weight), bias(rows.bias), y(rows.x.size());
    const Buffer<unsigned char> scratch(sizeof(Told<ROWS>));
    const auto kernel = layer_norm_once_kernel<ROWS, FOURS>;
    Told<ROWS> *told = (Told<ROWS> *)scratch.data;
    void *arguments[] = {
        (void *)&x.data, (void *)&weight.data, (void *)&bias.data, (void *)&y.data, &told, &eps};
    cuda_ok(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED),
            "cudaFuncSetAttribute");
    cuda_ok(cudaMemset(told->count, 0, sizeof told->count), "cudaMemset");
    cuda_ok(cudaLaunchCooperativeKernel((const void *)kernel, dim3(SLICES), dim3(2 * TEAM),
                                        arguments, SHARED, 0),
            "cudaLaunchCooperativeKernel");
    ran();
    compare(y, rows.want);
    scratch.guarded("scratch");
}

int main() {
    const int processors = start(true);
    test_softmax<16384, 2, 512>(1); /* fewer rows than clusters; one batch a thread */
    test_softmax<65536, 2, 512>(9);
    test_softmax<3 * 16384, 2, 512>(8); /* three batches: one early, two late */
    test_softmax<393216, 8, 512>(7);
    test_softmax<16384, 2, 512>(300); /* several rows a cluster */
    test_softmax<2 * 16384, 4, 256>(7);
    test_softmax<16384, 8, 128>(150);
    test_cluster_rows<4, 32765, 128>();
    test_cluster_rows<12, 65535, 512>();
    test_layer_norm<4, 16 * 4 * SLICES * TEAM>(1e-5);
    test_layer_norm<4, 20 * 4 * SLICES * TEAM>(0.1);
    if (processors >= SLICES) {
        test_kernel<3, 16>(1e-5);
    } else {
        printf("skipped: layer_norm_once_kernel needs %d multiprocessors, there are %d\n", SLICES,
               processors);
    }
    finish();
}
