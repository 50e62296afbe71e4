/* product.cuh against plain double, and B as it is in memory against B split beforehand. */
#include "operands.cuh"
#include "split_depth.cuh"
#include "stores.cuh"
#include "include_products.cuh"

using namespace kp;

/* The product of a, along or across the depth, and b (columns x depth), in PARTS parts of the
 * depth, each against its own plain product. */
template <template <int, int, int, long long> class Left, int N, int ROWS, int COLUMNS, int DEPTH,
          int PARTS>
static void test_two_ways() {
    constexpr bool ALONG = Left<ROWS, DEPTH, 4, 0>::ALONG_DEPTH;
    using S = SplitDepth<ROWS, COLUMNS, DEPTH, PARTS>;
    using T = Tile<N, Bf16Rest, 1, 1>;
    begin("product<%d> (%s, %d x %d x %d, %d parts)", N, ALONG ? "along" : "across", ROWS, COLUMNS,
          DEPTH, PARTS);
    const std::vector<float> rows = uniform((size_t)ROWS * DEPTH, 1);
    const std::vector<float> columns = uniform((size_t)COLUMNS * DEPTH, 2);
    const std::vector<float> stored = ALONG ? rows : transposed(rows, ROWS, DEPTH);
    const Buffer<float> a(stored), b(columns);
    const Buffer<float> scratch(split_bytes<S, T>() / 4);
    const Buffer<float> ahead((size_t)PARTS * ROWS * COLUMNS), way((size_t)PARTS * ROWS * COLUMNS);
    const Left<ROWS, DEPTH, ALONG ? DEPTH : ROWS, 0> left = {{}, a.data};
    const Along<COLUMNS, DEPTH> right = {{}, b.data};
    using Store = StoreRows<Same, ROWS, COLUMNS, ROWS * COLUMNS>;
    product<S, T>(left, right, Store{{}, ahead.data}, (void *)scratch.data, 0);
    multiply<S, T>(left, right, Store{{}, way.data}, 0);
    ran();
    std::vector<Want> want, same;
    for (int p = 0; p < PARTS; p++) {
        const int first = std::min(p * S::EACH, S::SLABS) * TILE_K;
        const int end = std::min((p + 1) * S::EACH, S::SLABS) * TILE_K, depth = end - first;
        std::vector<float> x((size_t)ROWS * depth), y((size_t)depth * COLUMNS);
        for (int k = 0; k < depth; k++) {
            for (int i = 0; i < ROWS; i++)
                x[(size_t)i * depth + k] = rows[(size_t)i * DEPTH + first + k];
            for (int j = 0; j < COLUMNS; j++)
                y[(size_t)k * COLUMNS + j] = columns[(size_t)j * DEPTH + first + k];
        }
        const Exact c = plain_product(x, y, ROWS, COLUMNS, depth);
        for (size_t i = 0; i < c.value.size(); i++)
            want.push_back({c.value[i], fp32_slack(c.size[i], depth)});
    }
    for (float v : ahead.read()) same.push_back({v, 0});
    compare(ahead, want, "split beforehand");
    compare(way, same, "split on the way");
    unchanged(a, stored, "a");
    unchanged(b, columns, "b");
}

int main() {
    start(true);
    test_two_ways<Across, 128, 512, 128, 1024, 1>();
    test_two_ways<Along, 128, 512, 128, 1024, 1>();
    test_two_ways<Across, 128, 256, 256, 4096, 3>();
    test_two_ways<Along, 128, 300, 200, 2048, 2>(); /* tiles beyond the edges */
    test_two_ways<Across, 128, 300, 200, 2048, 2>();
    test_two_ways<Along, 128, 256, 128 * 7, 1024 * 5, 5>();
    test_two_ways<Across, 128, 256 * 15, 128 * 10, 1024, 1>(); /* more tiles than blocks */
    finish();
}
