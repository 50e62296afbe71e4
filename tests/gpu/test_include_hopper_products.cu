/* half_product.cuh and half_direct.cuh, every way, against plain double; sm_90a. */
#include "half_gemm.cuh"
#include "include_products.cuh"

/* ---- half_product.cuh, half_direct.cuh ---- */

/* Calls run(a, bt, out) on products of these sizes with elements from `low` to 1, twice: what the
 * first leaves may not disturb the second. */
template <class Run> static void test_half(int m, int n, int k, float low, const Run &run) {
    std::vector<__half> a(m * k), b(k * n);
    Random random(k);
    for (__half &x : a) x = __float2half_rn(random.uniform(low, 1));
    for (__half &x : b) x = __float2half_rn(random.uniform(low, 1));
    const std::vector<__half> bt = transposed(b, k, n);
    const std::vector<Want> want = half_want(plain_product(a, b, m, n, k), k);
    for (int i = 0; i < 2; i++) {
        const Buffer<__half> left(a), right(bt), out(m * n);
        run(left.data, right.data, out.data);
        ran();
        compare(out, want);
        unchanged(left, a, "a");
        unchanged(right, bt, "bt");
    }
}

template <kp::HalfWay WAY, int TILE_M, int TILE_N, int SPLIT, int PARTS, int M, int N, int K,
          bool TRANSPOSED>
struct Choice {
    static constexpr kp::HalfChoice C = {M, N, K, WAY, TILE_M, TILE_N, SPLIT, PARTS, 8, TRANSPOSED};
};

template <kp::HalfWay WAY, int TILE_M, int TILE_N, int SPLIT, int PARTS, int M, int N, int K,
          bool TRANSPOSED = false>
static void test_product(float low) {
    using Gemm = kp::HalfGemm<Choice<WAY, TILE_M, TILE_N, SPLIT, PARTS, M, N, K, TRANSPOSED>>;
    begin("half_product<%d, %d x %d, split %d, parts %d%s> (%d x %d x %d, from %g)", WAY, TILE_M,
          TILE_N, SPLIT, PARTS, TRANSPOSED ? ", transposed" : "", M, N, K, low);
    const Buffer<float> scratch(Gemm::scratch_bytes() / 4 + 1);
    test_half(M, N, K, low, [&](const __half *a, const __half *bt, __half *out) {
        Gemm::run(a, bt, out, (void *)scratch.data, 0);
    });
}

template <int TILE, int WARPS, int M, int N, int K> static void test_direct(float low) {
    begin("direct_product<%d, %d warps> (%d x %d x %d, from %g)", TILE, WARPS, M, N, K, low);
    test_half(M, N, K, low, [&](const __half *a, const __half *bt, __half *out) {
        kp::direct_product<kp::DirectTile<M, N, K, TILE, TILE, WARPS>>(a, bt, out, 0);
    });
}

static void test_hgemm() {
    using namespace kp;
    test_product<HALF_TOGETHER, 128, 256, 1, 1, 256, 512, 320>(-1);
    test_product<HALF_TOGETHER, 128, 256, 1, 1, 128, 256, 512>(0);
    test_product<HALF_TOGETHER, 256, 128, 1, 1, 512, 256, 640>(-1);
    test_product<HALF_TOGETHER, 256, 64, 1, 1, 256, 192, 1024>(-1);
    test_product<HALF_TOGETHER, 128, 128, 1, 1, 384, 256, 192>(-1);
    test_product<HALF_TOGETHER, 128, 64, 1, 1, 2048, 9 * 64, 128>(-1); /* more tiles than blocks */
    test_product<HALF_TOGETHER, 64, 256, 1, 1, 64, 768, 576>(-1);
    test_product<HALF_TOGETHER, 64, 128, 1, 1, 192, 256, 64>(-1);
    test_product<HALF_TOGETHER, 64, 64, 1, 1, 128, 64, 1024>(-1);
    test_product<HALF_TOGETHER, 128, 64, 2, 1, 128, 320, 256>(-1);
    test_product<HALF_TOGETHER, 128, 128, 4, 1, 256, 128, 512>(0);
    test_product<HALF_TOGETHER, 64, 64, 8, 1, 128, 128, 1024>(-1);
    test_product<HALF_TOGETHER, 192, 128, 2, 1, 192, 256, 384>(-1);
    test_product<HALF_TOGETHER, 64, 128, 8, 4, 64, 128, 2048>(-1);
    test_product<HALF_TOGETHER, 128, 128, 2, 4, 128, 256, 1024>(-1);
    test_product<HALF_TOGETHER, 128, 64, 1, 8, 256, 64, 1024>(-1);
    test_product<HALF_APART, 64, 64, 1, 1, 2048, 2048, 192>(-1); /* several tiles a block */
    test_product<HALF_APART, 128, 128, 1, 1, 256, 384, 320>(-1);
    test_product<HALF_APART, 64, 256, 1, 1, 128, 256, 64>(0);
    /* More slabs than stages, so that blocks share B; and fewer. */
    test_product<HALF_PAIRED, 64, 128, 1, 1, 256, 256, 320>(-1);
    test_product<HALF_PAIRED, 128, 256, 1, 1, 512, 512, 640>(-1);
    test_product<HALF_PAIRED, 128, 128, 1, 1, 2048, 2048, 320>(-1); /* several tiles a block */
    test_product<HALF_PAIRED, 256, 128, 1, 1, 512, 128, 512>(0);
    test_product<HALF_PAIRED, 128, 128, 1, 8, 256, 256, 5120>(-1);
    test_product<HALF_PAIRED, 64, 256, 1, 4, 128, 512, 2048>(0);
    test_product<HALF_TOGETHER, 64, 128, 4, 1, 384, 64, 512, true>(-1);
    test_product<HALF_APART, 64, 128, 1, 1, 2048, 1024, 192, true>(-1);
    test_product<HALF_PAIRED, 128, 128, 1, 2, 256, 512, 1024, true>(0);
    test_direct<16, 1, 64, 64, 64>(-1);
    test_direct<16, 16, 64, 128, 1024>(-1);
    test_direct<32, 4, 128, 64, 512>(0);
}

/* ---- what needs no tensor core ---- */

static __global__ void transpose_kernel(const unsigned *x, unsigned *y) {
    unsigned r[4];
    for (int i = 0; i < 4; i++) r[i] = x[threadIdx.x * 4 + i];
    kp::half_transpose(r);
    for (int i = 0; i < 4; i++) y[threadIdx.x * 4 + i] = r[i];
}

static void test_transpose() {
    begin("half_transpose (64 threads)");
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
    test_hgemm();
    finish();
}
