/* split_f16.cuh against plain double: splitting, and products of what was split; sm_90a. */
#include "split_f16.cuh"
#include "include_products.cuh"

using namespace kp;

/* ---- splitting ---- */

/* Rows (or columns) of very different size, some 2^most, some zero, some too small for any
 * scale. */
static std::vector<float> operand_rows(int rows, int depth, uint64_t seed, int most = 40) {
    std::vector<float> x = uniform((size_t)rows * depth, seed);
    for (int i = 0; i < rows * depth; i++) {
        const int r = i / depth;
        x[i] = std::ldexp(x[i], r % 11 == 7 ? -120 : r % 11 == 3 ? most : r * 37 % 121 - 60);
        if (i % 5 == 0) x[i] = std::ldexp(x[i], -20); /* elements far below their row's largest */
        if (r % 13 == 4) x[i] = 0;
    }
    return x;
}

/* Element (row, k) of a split operand of `blocks` blocks of the depth: high and low. */
static double joined(const std::vector<unsigned char> &split, int blocks, int row, int k) {
    double v = 0;
    for (int part = 0; part < 2; part++) {
        const int r = row % BLOCK_ROWS, piece = k % BLOCK_DEPTH / 8;
        const size_t at = ((size_t)(row / BLOCK_ROWS) * blocks + k / BLOCK_DEPTH) * BLOCK_BYTES +
                          part * PART_BYTES + r * ROW_BYTES + ((piece ^ (r & 7)) * 16) + k % 8 * 2;
        __half h;
        memcpy(&h, &split[at], sizeof h);
        v += number(h);
    }
    return v;
}

/* Checks a split operand against `x` (rows x depth). An element is right to 2^-23 of itself or
 * 2^-39 of its row's largest; below 2^-112, of that. Also the scales: they bring the largest into
 * [2^14, 2^15). */
static void check_split(const Buffer<unsigned char> &split, const Buffer<float> &inverse,
                        const std::vector<float> &x, int rows, int depth) {
    const std::vector<unsigned char> bytes = split.read();
    const std::vector<float> back = inverse.read();
    int wrong = 0, first = 0, scales = 0, scale_at = 0;
    for (int i = rows - 1; i >= 0; i--) {
        double top = 0;
        for (int k = 0; k < depth; k++)
            top = std::max(top, std::fabs((double)x[(size_t)i * depth + k]));
        const double tops = std::max(top, 0x1p-112);
        if (!(tops / back[i] >= 0x1p14 && tops / back[i] < 0x1p15)) scales++, scale_at = i;
        for (int k = depth - 1; k >= 0; k--) {
            const double v = x[(size_t)i * depth + k];
            const double slack = std::max(std::fabs(v) * 0x1p-23, tops * 0x1p-39);
            const Want want = {v, slack};
            if (!want.accepts(joined(bytes, depth / BLOCK_DEPTH, i, k) * back[i]))
                wrong++, first = i * depth + k;
        }
    }
    check(wrong == 0, "element [%d, %d] is %.9g, not %.9g (%d are wrong)", first / depth,
          first % depth,
          joined(bytes, depth / BLOCK_DEPTH, first / depth, first % depth) * back[first / depth],
          x[first], wrong);
    check(scales == 0, "the inverse scale of row %d is %g (%d are wrong)", scale_at, back[scale_at],
          scales);
    split.guarded("split");
    inverse.guarded("inverse");
}

template <int DEPTH> static void test_rows(int rows) {
    begin("split_rows_kernel<%d> (%d rows)", DEPTH, rows);
    const std::vector<float> host = operand_rows(rows, DEPTH, 1, 127);
    const Buffer<float> x(host), inverse(rows);
    const int whole = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS * BLOCK_ROWS; /* blocks are */
    const Buffer<unsigned char> split((size_t)whole * DEPTH * 4);
    split_rows_kernel<DEPTH><<<rows / 8, 256>>>(x.data, split.data, inverse.data);
    ran();
    check_split(split, inverse, host, rows, DEPTH);
}

/* Splits the columns of `x` (matrices x DEPTH x WIDTH), and waits. */
template <int DEPTH, int WIDTH>
static void split_columns(const std::vector<float> &x, int matrices,
                          const Buffer<unsigned char> &split, const Buffer<float> &inverse) {
    const Buffer<float> from(x);
    cuda_ok(cudaFuncSetAttribute(split_columns_kernel<DEPTH, WIDTH>,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, DEPTH * 32 * 4),
            "cudaFuncSetAttribute");
    split_columns_kernel<DEPTH, WIDTH>
        <<<dim3(WIDTH / 32, matrices), 256, DEPTH * 32 * 4>>>(from.data, split.data, inverse.data);
    ran();
}

template <int DEPTH, int WIDTH> static void test_columns(int matrices) {
    begin("split_columns_kernel<%d, %d> (%d matrices)", DEPTH, WIDTH, matrices);
    const std::vector<float> host = operand_rows(matrices * WIDTH, DEPTH, 2, 127);
    std::vector<float> columns;
    for (int i = 0; i < matrices; i++) {
        const float *p = host.data() + (size_t)i * WIDTH * DEPTH;
        const std::vector<float> y =
            transposed(std::vector<float>(p, p + WIDTH * DEPTH), WIDTH, DEPTH);
        columns.insert(columns.end(), y.begin(), y.end());
    }
    const Buffer<float> inverse(matrices * WIDTH);
    const Buffer<unsigned char> split(host.size() * 4);
    split_columns<DEPTH, WIDTH>(columns, matrices, split, inverse);
    check_split(split, inverse, host, matrices * WIDTH, DEPTH);
}

/* ---- products ---- */

/* out = A * transposed B; if WEIGHTED, block k of the depth counts k + 1 times, and row r of a tile
 * as many times as its rest by three, plus one. */
template <int CTAS, int BLOCKS, int ROWS, int COLUMNS, bool WEIGHTED> struct Job {
    const unsigned char *left, *right;
    const float *left_back, *right_back; /* undo the scales */
    float *out;
    static constexpr int ROW_TILES = ROWS / BLOCK_ROWS;
    static constexpr int TILES = ROW_TILES * (COLUMNS / BLOCK_ROWS / CTAS);
    static constexpr int SIDE_BYTES = 2 * BLOCK_ROWS * 4;

    static __device__ int rows(int tile) { return tile % ROW_TILES; }
    static __device__ int columns(int tile, int rank) { return tile / ROW_TILES * CTAS + rank; }
    __device__ const unsigned char *a(int tile) const {
        return left + (long long)rows(tile) * BLOCKS * BLOCK_BYTES;
    }
    __device__ const unsigned char *b(int tile, int rank) const {
        return right + (long long)columns(tile, rank) * BLOCKS * BLOCK_BYTES;
    }
    __device__ void fetch_side(int tile, int rank, uint32_t to, uint32_t bar) const {
        copy_side(to, left_back + rows(tile) * BLOCK_ROWS, BLOCK_ROWS * 4, bar);
        copy_side(to + BLOCK_ROWS * 4, right_back + columns(tile, rank) * BLOCK_ROWS,
                  BLOCK_ROWS * 4, bar);
    }
    struct Weights {
        float block, of_row[2];
        __device__ __forceinline__ float add(float sum, int h, float x) const {
            return WEIGHTED ? fmaf(x, block * of_row[h], sum) : sum + x;
        }
        __device__ __forceinline__ void next(int k) { block = (float)(k + 1); }
    };
    __device__ __forceinline__ Weights begin(int row, const unsigned char *) const {
        return {1, {(float)(row % 3 + 1), (float)((row + 8) % 3 + 1)}};
    }
    __device__ __forceinline__ void finish(int tile, int rank, int row, int lane,
                                           const float (&s)[64], const unsigned char *side) const {
        const float *of_row = (const float *)side + row;
        const float *of_column = (const float *)side + BLOCK_ROWS;
        float *to = out + (long long)(rows(tile) * BLOCK_ROWS + row) * COLUMNS +
                    columns(tile, rank) * BLOCK_ROWS;
#pragma unroll
        for (int i = 0; i < 64; i++) {
            const int column = i / 4 * 8 + lane % 4 * 2 + i % 2, h = i / 2 % 2 * 8;
            to[h * COLUMNS + column] = s[i] * of_row[h] * of_column[column];
        }
    }
};

/* What is left out is 2^-22 of a product; four times that leaves room for the sums over 64 of the
 * depth, which the tensor cores truncate. Elements far below their row's largest are off by 2^-39
 * of that. */
template <int CTAS, int BLOCKS, int ROWS, int COLUMNS, bool WEIGHTED> static void test_product() {
    constexpr int DEPTH = BLOCKS * BLOCK_DEPTH;
    using Work = Job<CTAS, BLOCKS, ROWS, COLUMNS, WEIGHTED>;
    begin("split_product<%d, %d> (%d x %d, %s)", CTAS, BLOCKS, ROWS, COLUMNS,
          WEIGHTED ? "weighted" : "plain");
    std::vector<float> a = operand_rows(ROWS, DEPTH, 3), b = operand_rows(COLUMNS, DEPTH, 4);
    const Buffer<float> xa(a), a_back(ROWS), b_back(COLUMNS);
    const Buffer<float> out(ROWS * COLUMNS);
    const Buffer<unsigned char> sa(a.size() * 4), sb(b.size() * 4);
    if constexpr (DEPTH % 256 == 0)
        split_rows_kernel<DEPTH><<<ROWS / 8, 256>>>(xa.data, sa.data, a_back.data);
    else
        split_columns<DEPTH, ROWS>(transposed(a, ROWS, DEPTH), 1, sa, a_back);
    split_columns<DEPTH, COLUMNS>(transposed(b, COLUMNS, DEPTH), 1, sb, b_back);
    split_product<SplitShape<CTAS, BLOCKS>>(
        Work{sa.data, sb.data, a_back.data, b_back.data, out.data}, 0);
    ran();
    std::vector<double> top_a(ROWS), top_b(COLUMNS), size_a(ROWS), size_b(COLUMNS);
    std::vector<float> plain = a;
    for (int i = 0; i < ROWS * DEPTH; i++) {
        const int r = i / DEPTH,
                  weight = WEIGHTED ? (i % DEPTH / BLOCK_DEPTH + 1) * (r % BLOCK_ROWS % 3 + 1) : 1;
        plain[i] *= weight;
        top_a[r] = std::max(top_a[r], std::fabs((double)plain[i]));
        size_a[r] += std::fabs(plain[i]);
    }
    for (int i = 0; i < COLUMNS * DEPTH; i++) {
        const int c = i / DEPTH, weight = WEIGHTED ? 3 * BLOCKS : 1;
        top_b[c] = std::max(top_b[c], std::fabs((double)b[i]) * weight);
        size_b[c] += std::fabs(b[i]) * weight;
    }
    const Exact c = plain_product(plain, transposed(b, COLUMNS, DEPTH), ROWS, COLUMNS, DEPTH);
    std::vector<Want> want(out.count);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const int row = i / COLUMNS, column = i % COLUMNS;
        want[i] = {c.value[i],
                   c.size[i] * 0x1p-20 + fp32_slack(c.size[i], BLOCKS) +
                       (top_a[row] * size_b[column] + size_a[row] * top_b[column]) * 0x1p-38 +
                       1e-44};
    }
    compare(out, want);
}

int main() {
    start(true);
    test_rows<256>(8);
    test_rows<1024>(128 * 5);
    test_columns<512, 1024>(2);
    test_columns<64, 128>(1);
    test_columns<192, 256>(3);
    test_product<2, 16, 128, 256, true>();
    test_product<2, 8, 384, 512, true>();
    test_product<2, 4, 128, 256, false>();
    test_product<2, 5, 256, 256, true>();
    test_product<2, 5, 128 * 12, 256 * 6, false>(); /* more tiles than clusters */
    /* Clusters that no kernel uses so far. */
    test_product<1, 4, 256, 128, true>();
    test_product<4, 4, 256, 512, false>();
    finish();
}
