/* gemm_tf32x3.cuh, hgemm_sm90.cuh and split_f16.cuh (with wgmma_f16.cuh) against plain double;
 * sm_90a. */
#include "activation.cuh"
#include "gemm_tf32x3.cuh"
#include "hgemm_sm90.cuh"
#include "include_products.cuh"

/* ---- gemm_tf32x3.cuh ---- */

/* An epilogue's function that knows where it is: bias a row, ReLU, a factor a column. */
struct Finish {
    const float *bias, *factor;
    __device__ __forceinline__ float operator()(float v, int row, int column) const {
        return Relu()(v + __ldg(bias + row)) * __ldg(factor + column);
    }
};

/* The products' error is 2^-22 of each, with HALF 2^-20; their signs are random, so that four times
 * the sum's share leaves room for the sums of 32, which the tensor cores truncate, and for the
 * fp32 sums of these. One pass alone would be off by 2^-14 or more. */
static double split_slack(bool half, double size, int depth) {
    return size * (half ? 0x1p-19 : 0x1p-20) + fp32_slack(size, depth / 32);
}

/* B as the kernel wants it: columns along the depth, or rows across it. */
static std::vector<float> stored(bool along, const std::vector<float> &b, int columns, int depth,
                                 int pitch) {
    if (along) return with_pitch(transposed(b, depth, columns), columns, depth, pitch);
    return with_pitch(b, depth, columns, pitch);
}

/* Rows of `a` and columns of `b` far apart in size: the exponents are those of fp32. */
static void spread(std::vector<float> &a, std::vector<float> &b, int rows, int columns, int depth) {
    for (int i = 0; i < rows * depth; i++) a[i] = std::ldexp(a[i], (i / depth * 7) % 41 - 20);
    for (int i = 0; i < columns * depth; i++) b[i] = std::ldexp(b[i], (i % columns * 5) % 31 - 15);
}

/* COLUMNWISE: StoreColumns, else StoreRows. All matrices have gaps between their lines. */
template <bool HALF, bool A_ALONG, bool B_ALONG, bool COLUMNWISE, int ROWS, int COLUMNS, int DEPTH>
static void test_tf32x3(float low) {
    constexpr int A_PITCH = (A_ALONG ? DEPTH : ROWS) + 4, B_PITCH = (B_ALONG ? DEPTH : COLUMNS) + 8;
    constexpr int OUT_PITCH = (COLUMNWISE ? ROWS : COLUMNS) + 4;
    begin("tf32x3::product<%d, %d> (A %s, by %s, %d x %d x %d, from %g)", HALF, B_ALONG,
          A_ALONG ? "along" : "across", COLUMNWISE ? "columns" : "rows", ROWS, COLUMNS, DEPTH, low);
    std::vector<float> a = uniform(ROWS * DEPTH, 1, low), b = uniform(DEPTH * COLUMNS, 2, low);
    if (low < 0) spread(a, b, ROWS, COLUMNS, DEPTH);
    const std::vector<float> ha =
        A_ALONG ? with_pitch(a, ROWS, DEPTH, A_PITCH)
                : with_pitch(transposed(a, ROWS, DEPTH), DEPTH, ROWS, A_PITCH);
    const std::vector<float> hb = stored(B_ALONG, b, COLUMNS, DEPTH, B_PITCH);
    const std::vector<float> biases = uniform(ROWS, 3), factors = uniform(COLUMNS, 4, 1, 2);
    const Buffer<float> left(ha), right(hb), bias(biases), factor(factors);
    const Buffer<float> out((size_t)OUT_PITCH * (COLUMNWISE ? COLUMNS : ROWS));
    const Buffer<unsigned char> scratch(tf32x3::split_bytes(COLUMNS, DEPTH));
    const std::conditional_t<A_ALONG, tf32x3::AlongDepth<A_PITCH>, tf32x3::AcrossDepth<A_PITCH>>
        operand = {left.data};
    const Finish f = {bias.data, factor.data};
    if constexpr (COLUMNWISE) {
        const tf32x3::StoreColumns<Finish, OUT_PITCH> store = {f, out.data};
        tf32x3::product<HALF, B_ALONG>(operand, right.data, B_PITCH, store, ROWS, COLUMNS, DEPTH,
                                       scratch.data, 0);
    } else {
        const tf32x3::StoreRows<Finish, OUT_PITCH> store = {f, out.data};
        tf32x3::product<HALF, B_ALONG>(operand, right.data, B_PITCH, store, ROWS, COLUMNS, DEPTH,
                                       scratch.data, 0);
    }
    ran();
    const Exact c = plain_product(a, b, ROWS, COLUMNS, DEPTH);
    std::vector<Want> want(out.count, UNTOUCHED);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            const size_t at = (size_t)i * COLUMNS + j;
            const double v = std::max(c.value[at] + biases[i], 0.0) * factors[j];
            const double slack = (split_slack(HALF, c.size[at], DEPTH) + 2 * U) * factors[j];
            want[COLUMNWISE ? (size_t)j * OUT_PITCH + i : (size_t)i * OUT_PITCH + j] = {
                v, slack + 2 * U * v};
        }
    compare(out, want);
    scratch.guarded("scratch");
    unchanged(left, ha, "A");
    unchanged(right, hb, "B");
}

/* A custom epilogue, as of the maximum over features: sums of the 32 rows that eight lanes with
 * equal lane % 4 hold, at out[column][row / 32]. */
struct StoreSums {
    float *out;
    int groups;
    int unused; /* no padding */
    __device__ void tile(const tf32x3::Part<true> &p, int row, int column) const {
        for (int j = 0; j < 16; j++)
            for (int e = 0; e < 2; e++) {
                float sum = (p.v[0][4 * j + e] + p.v[0][4 * j + 2 + e]) +
                            (p.v[1][4 * j + e] + p.v[1][4 * j + 2 + e]);
                for (int apart = 4; apart < 32; apart *= 2) sum += __shfl_xor_sync(~0u, sum, apart);
                if (threadIdx.x % 32 < 4) out[(column + 8 * j + e) * groups + row / 32] = sum;
            }
    }
};

/* An infinite element of A, and one that rounds to infinity, make NaN of their rows alone. */
static void test_epilogue() {
    constexpr int ROWS = 512, COLUMNS = 128, DEPTH = 64, GROUPS = ROWS / 32;
    begin("tf32x3::product (sums in the epilogue, infinities, %d x %d x %d)", ROWS, COLUMNS, DEPTH);
    std::vector<float> a = uniform(ROWS * DEPTH, 5, 0.5f), b = uniform(DEPTH * COLUMNS, 6, 0.5f);
    a[37 * DEPTH + 3] = INFINITY;
    a[500 * DEPTH + 63] = 3.4028234e38f;
    const Buffer<float> left(a), right(b), out(COLUMNS * GROUPS);
    const Buffer<unsigned char> scratch(tf32x3::split_bytes(COLUMNS, DEPTH));
    tf32x3::product<true, false>(tf32x3::AlongDepth<DEPTH>{left.data}, right.data, COLUMNS,
                                 StoreSums{out.data, GROUPS, 0}, ROWS, COLUMNS, DEPTH, scratch.data,
                                 0);
    ran();
    const Exact c = plain_product(a, b, ROWS, COLUMNS, DEPTH);
    std::vector<Want> want(out.count, Want{0, 0});
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            Want &w = want[j * GROUPS + i / 32];
            w.value = i == 37 || i == 500 ? NAN : w.value + c.value[i * COLUMNS + j];
            w.slack +=
                split_slack(true, c.size[i * COLUMNS + j], DEPTH) + 8 * U * c.size[i * COLUMNS + j];
        }
    compare(out, want);
}

static void test_gemm() {
    /* The least; then both sorts of each operand, way of storing and accuracy. */
    test_tf32x3<true, true, false, false, 512, 128, 32>(-1);
    test_tf32x3<false, true, true, false, 512, 384, 96>(-1);
    test_tf32x3<true, true, true, true, 1024, 256, 160>(-1);
    test_tf32x3<true, false, false, true, 512, 256, 96>(-1);
    test_tf32x3<false, false, false, false, 512, 128, 288>(0);
    test_tf32x3<true, false, true, false, 1536, 128, 64>(0);
    test_tf32x3<false, true, false, true, 512, 128, 128>(-1);
    test_tf32x3<false, false, true, true, 512, 128, 32>(-1);
    /* More tiles than blocks, the last panel of tiles lower than the others. */
    test_tf32x3<true, true, false, false, 2560, 14 * 128, 32>(-1);
    test_epilogue();
}

/* ---- hgemm_sm90.cuh ---- */

template <class T, int M, int N, int K> static void test_half(float low, const char *name) {
    begin("half_product_sm90<%s> (%d x %d x %d, from %g)", name, M, N, K, low);
    std::vector<__half> a(M * K), b(K * N);
    Random random(K);
    for (__half &x : a) x = __float2half_rn(random.uniform(low, 1));
    for (__half &x : b) x = __float2half_rn(random.uniform(low, 1));
    const std::vector<__half> bt = transposed(b, K, N);
    const Buffer<__half> left(a), right(bt), out(M * N);
    half_product_sm90<T, M, N, K>(left.data, right.data, out.data, 0);
    ran();
    compare(out, half_want(plain_product(a, b, M, N, K), K));
    unchanged(left, a, "a");
    unchanged(right, bt, "bt");
}

static void test_hgemm() {
    test_half<HopperTile<64, 8, 2>, 128, 320, 256>(-1, "64, 8, 2");
    test_half<HopperTile<256, 4, 1, 32>, 256, 512, 320>(-1, "256, 4, 1, 32");
    test_half<HopperTile<256, 4, 1, 32>, 128, 256, 512>(0, "256, 4, 1, 32");
    test_half<HopperTile<64, 3>, 128, 64, 64>(-1, "64, 3");
    test_half<HopperTile<128, 4>, 384, 256, 192>(-1, "128, 4");
    test_half<HopperTile<64, 3>, 2048, 9 * 64, 128>(-1, "64, 3"); /* more tiles than CTAs */
    test_half<HopperTile<128, 3, 2>, 256, 128, 128>(0, "128, 3, 2");
    test_half<HopperTile<64, 4, 4>, 256, 128, 512>(-1, "64, 4, 4");
}

/* ---- wgmma_f16.cuh: what needs no tensor core ---- */

static __global__ void transpose_kernel(const unsigned *x, unsigned *y) {
    unsigned r[4];
    for (int i = 0; i < 4; i++) r[i] = x[threadIdx.x * 4 + i];
    transpose_quad(r, threadIdx.x % 32);
    for (int i = 0; i < 4; i++) y[threadIdx.x * 4 + i] = r[i];
}

static void test_transpose() {
    begin("transpose_quad (64 threads)");
    std::vector<int> host(256);
    std::vector<Want> want(256);
    for (int i = 0; i < 256; i++) {
        host[i] = 1000 + i;
        want[i] = {1000.0 + i / 16 * 16 + i % 4 * 4 + i / 4 % 4, 0};
    }
    const Buffer<int> x(host), y(256);
    transpose_kernel<<<1, 64>>>((const unsigned *)x.data, (unsigned *)y.data);
    ran();
    compare(y, want);
}

int main() {
    start(true);
    test_transpose();
    test_gemm();
    test_hgemm();
    finish();
}
