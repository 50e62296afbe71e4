/* hgemm_sm90.cuh, with wgmma_f16.cuh, against plain double; sm_90a. */
#include "hgemm_sm90.cuh"
#include "include_products.cuh"

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
    test_hgemm();
    finish();
}
