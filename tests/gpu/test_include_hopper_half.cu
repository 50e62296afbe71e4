/* half_product.cuh and half_direct.cuh against plain double; sm_90a. */
#include "half_direct.cuh"
#include "half_product.cuh"
#include "include_products.cuh"

template <int M, int N, int K> struct Case {
    std::vector<__half> a, b, bt;
    explicit Case(float low) : a(M * K), b(K * N) {
        Random random(K);
        for (__half &x : a) x = __float2half_rn(random.uniform(low, 1));
        for (__half &x : b) x = __float2half_rn(random.uniform(low, 1));
        bt = transposed(b, K, N);
    }
    /* Runs twice: what a launch leaves in its counters is what the next finds. */
    template <class F> void judge(const F &run) const {
        const Buffer<__half> left(a), right(bt), out(M * N);
        for (int i = 0; i < 2; i++) run(left.data, right.data, out.data);
        ran();
        compare(out, half_want(plain_product(a, b, M, N, K), K));
        unchanged(left, a, "a");
        unchanged(right, bt, "bt");
    }
};

template <kp::HalfWay WAY, int TILE_M, int TILE_N, int SPLIT, int PARTS, int WALK, int M, int N,
          int K>
static void test_half(float low) {
    using S = kp::HalfSizes<M, N, K>;
    using T = kp::HalfTile<S, WAY, TILE_M, TILE_N, SPLIT, PARTS, WALK>;
    begin("half_product<%d: %d x %d, %d, %d> (%d x %d x %d, from %g)", (int)WAY, TILE_M, TILE_N,
          SPLIT, PARTS, M, N, K, low);
    const Buffer<unsigned char> scratch(T::SCRATCH + 256);
    Case<M, N, K>(low).judge([&](const __half *a, const __half *bt, __half *out) {
        kp::half_product<S, T>(a, bt, out, scratch.data, 0);
    });
}

template <int TILE, int WARPS, int M, int N, int K> static void test_direct(float low) {
    using T = kp::DirectTile<M, N, K, TILE, TILE, WARPS>;
    begin("direct_product<%d, %d> (%d x %d x %d, from %g)", TILE, WARPS, M, N, K, low);
    Case<M, N, K>(low).judge([&](const __half *a, const __half *bt, __half *out) {
        kp::direct_product<T>(a, bt, out, 0);
    });
}

int main() {
    start(true);
    test_direct<16, 2, 64, 64, 64>(-1);
    test_direct<16, 8, 128, 64, 1024>(0);
    test_direct<32, 4, 256, 128, 256>(-1);
    test_half<kp::HALF_TOGETHER, 128, 256, 1, 1, 32, 256, 512, 320>(-1);
    test_half<kp::HALF_TOGETHER, 128, 256, 1, 1, 32, 128, 256, 512>(0);
    test_half<kp::HALF_TOGETHER, 256, 128, 1, 1, 8, 512, 256, 192>(-1);
    test_half<kp::HALF_TOGETHER, 128, 64, 1, 1, 8, 2048, 9 * 64, 128>(
        -1); /* more tiles than blocks */
    test_half<kp::HALF_TOGETHER, 128, 128, 4, 1, 8, 256, 128, 512>(-1);
    test_half<kp::HALF_TOGETHER, 64, 64, 8, 4, 1, 64, 64, 4096>(-1);
    test_half<kp::HALF_TOGETHER, 64, 256, 1, 1, 1, 64, 512, 256>(0);
    test_half<kp::HALF_APART, 128, 128, 1, 1, 8, 4096, 1024, 128>(-1);
    test_half<kp::HALF_APART, 64, 64, 1, 1, 8, 128, 192, 256>(-1);
    test_half<kp::HALF_MAPPED, 128, 256, 1, 1, 16, 512, 512, 256>(-1);
    test_half<kp::HALF_MAPPED, 256, 128, 1, 1, 16, 4096, 1024, 128>(0);
    finish();
}
