/* gemm.cuh and hgemm.cuh against plain double. */
#include "activation.cuh"
#include "gemm.cuh"
#include "hgemm.cuh"
#include "reduce.cuh"
#include "include_products.cuh"

/* ---- gemm.cuh: its own operands ---- */

/* An epilogue's function: bias, then ReLU. */
struct BiasedRelu {
    const float *bias;
    __device__ __forceinline__ float operator()(float v, int column) const {
        return Relu()(v + __ldg(bias + column));
    }
};

/* The operand of a matrix (span x depth), stored either way, `batches` of them. */
template <class Operand> struct Stored {
    static constexpr bool ALONG = Operand::ALONG_DEPTH;
    int span, depth, pitch, stride;
    std::vector<float> plain, host; /* span x depth without gaps, batch after batch; as stored */

    Stored(int span, int depth, int gap, int batches, uint64_t seed)
        : span(span), depth(depth), pitch((ALONG ? depth : span) + gap),
          stride(pitch * (ALONG ? span : depth) + 4),
          plain(uniform((size_t)batches * span * depth, seed)),
          host((size_t)batches * stride, 2e30f) {
        for (int b = 0; b < batches; b++) {
            std::vector<float> x = batch(b);
            if (!ALONG) x = transposed(x, span, depth);
            const int lines = ALONG ? span : depth;
            x = with_pitch(x, lines, pitch - gap, pitch);
            std::copy(x.begin(), x.end(), &host[(size_t)b * stride]);
        }
    }
    std::vector<float> batch(int b) const {
        const float *p = plain.data() + (size_t)b * span * depth;
        return std::vector<float>(p, p + (size_t)span * depth);
    }
};

/* Operands and result have gaps: between their rows and between their batches. */
template <int TILE_M, class Left, class Right>
static void test_product(int rows, int columns, int depth, int batches) {
    begin("product<%d> (%s %s, %d x %d x %d, %d batches)", TILE_M,
          Left::ALONG_DEPTH ? "along" : "across", Right::ALONG_DEPTH ? "along" : "across", rows,
          columns, depth, batches);
    const Stored<Left> a(rows, depth, 4, batches, 1);
    const Stored<Right> b(columns, depth, 8, batches, 2);
    const std::vector<float> biases = uniform(columns, 3);
    const int pitch = columns + 4, stride = rows * pitch + 8;
    const Buffer<float> left(a.host), right(b.host), bias(biases), out((size_t)batches * stride);
    const StoreRows<BiasedRelu> store = {{bias.data}, out.data, pitch, stride};
    product<TILE_M>(Left{left.data, a.pitch, a.stride}, Right{right.data, b.pitch, b.stride}, store,
                    rows, columns, depth, batches, 0);
    ran();
    std::vector<Want> want(out.count, UNTOUCHED);
    for (int k = 0; k < batches; k++) {
        const Exact c =
            plain_product(a.batch(k), transposed(b.batch(k), columns, depth), rows, columns, depth);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++) {
                const size_t at = (size_t)i * columns + j;
                want[(size_t)k * stride + (size_t)i * pitch + j] = {
                    std::max(c.value[at] + biases[j], 0.0), fp32_slack(c.size[at] + 1, depth)};
            }
    }
    compare(out, want);
    unchanged(left, a.host, "left");
    unchanged(right, b.host, "right");
}

/* ---- gemm.cuh: operands and epilogues of one's own ---- */

/* Any number of rows or columns and any depth: zeros beyond them. */
struct Ragged {
    static constexpr bool ALONG_DEPTH = true;
    const float *data;
    int span, depth;
    struct At {
        const float *row;
        int depth;
        __device__ float one(int k) const { return row && k < depth ? row[k] : 0.0f; }
        __device__ float4 fetch(int k) const {
            return make_float4(one(k), one(k + 1), one(k + 2), one(k + 3));
        }
    };
    __device__ At at(int, int i) const {
        return {i < span ? data + (long long)i * depth : nullptr, depth};
    }
};

/* Stores what there is, and the sum of each 64 columns, by the eight lanes that share a row. */
struct StoreRagged {
    float *out, *sums;
    int rows, columns;
    __device__ void row(int, int m, int n, const float (&v)[8]) const {
        float sum = 0;
        for (int j = 0; j < 8; j++) {
            const int column = n + j % 4 + j / 4 * 32;
            if (m < rows && column < columns) out[m * columns + column] = v[j];
            sum += v[j];
        }
        sum = warp_reduce<8>(sum, Add());
        if (m < rows && n % 64 == 0 && n < columns) sums[m * ((columns + 63) / 64) + n / 64] = sum;
    }
};

template <int TILE_M> static void test_ragged(int rows, int columns, int depth) {
    begin("product<%d> (operands of any size, %d x %d x %d)", TILE_M, rows, columns, depth);
    const int whole = (rows + TILE_M - 1) / TILE_M * TILE_M, groups = (columns + 63) / 64;
    const std::vector<float> a = uniform((size_t)rows * depth, 5);
    const std::vector<float> b = uniform((size_t)columns * depth, 6);
    const Buffer<float> left(a), right(b), out((size_t)rows * columns), sums((size_t)rows * groups);
    product<TILE_M>(Ragged{left.data, rows, depth}, Ragged{right.data, columns, depth},
                    StoreRagged{out.data, sums.data, rows, columns}, whole, columns, depth, 1, 0);
    ran();
    const Exact c = plain_product(a, transposed(b, columns, depth), rows, columns, depth);
    std::vector<Want> want(out.count), sum(sums.count, Want{0, 0});
    for (size_t i = 0; i < want.size(); i++) {
        want[i] = {c.value[i], fp32_slack(c.size[i], depth)};
        Want &s = sum[i / columns * groups + i % columns / 64];
        s.value += c.value[i];
        s.slack += fp32_slack(c.size[i], depth) + c.size[i] * 8 * U;
    }
    compare(out, want);
    compare(sums, sum, "sums of 64 columns");
}

static void test_gemm() {
    test_product<32, AlongDepth, AcrossDepth>(32, 128, 8, 1);
    test_product<64, AlongDepth, AcrossDepth>(64, 128, 16, 1);
    test_product<96, AlongDepth, AlongDepth>(96, 256, 24, 3);
    test_product<96, AcrossDepth, AcrossDepth>(192, 128, 40, 1);
    test_product<128, AcrossDepth, AlongDepth>(256, 384, 8, 2);
    test_product<128, AlongDepth, AcrossDepth>(128, 256, 1000, 1);
    test_product<32, AcrossDepth, AlongDepth>(96, 128, 72, 2);
    test_product<64, AcrossDepth, AcrossDepth>(320, 896, 40, 6);
    test_ragged<32>(1, 1, 1);
    test_ragged<64>(65, 130, 13);
    test_ragged<128>(300, 63, 7);
    test_ragged<96>(97, 257, 100);
}

/* ---- hgemm.cuh ---- */

static std::vector<__half> halves(size_t n, uint64_t seed, float low) {
    Random random(seed);
    std::vector<__half> v(n);
    for (__half &x : v) x = __float2half_rn(random.uniform(low, 1));
    return v;
}

/* With low = 0 all products add up, and f16 sums would be far off. */
template <class T>
static void test_half(int rows, int columns, int depth, float low, const char *name) {
    begin("half_product<%s> (%d x %d x %d, from %g)", name, rows, columns, depth, low);
    const std::vector<__half> a = halves((size_t)rows * depth, 7, low);
    const std::vector<__half> b = halves((size_t)depth * columns, 8, low);
    const Buffer<__half> left(a), right(b), out((size_t)rows * columns);
    half_product<T>(left.data, right.data, out.data, rows, columns, depth, 0);
    ran();
    compare(out, half_want(plain_product(a, b, rows, columns, depth), depth));
    unchanged(left, a, "a");
    unchanged(right, b, "b");
}

static void test_hgemm() {
    using Least = HalfTile<32, 32, 16, 1, 1, 2>;
    using Deep = HalfTile<64, 64, 64, 2, 2, 4>;
    using Wide = HalfTile<128, 128, 32, 2, 4, 3>;
    using Uneven = HalfTile<32, 96, 32, 1, 2, 5>;
    test_half<Deep>(64, 64, 64, -1, "64, 64, 64, 2, 2, 4");
    test_half<Deep>(128, 192, 512, 0, "64, 64, 64, 2, 2, 4");
    test_half<Wide>(128, 128, 32, -1, "128, 128, 32, 2, 4, 3");
    test_half<Wide>(384, 256, 160, -1, "128, 128, 32, 2, 4, 3");
    test_half<Wide>(1536, 1408, 64, -1, "128, 128, 32, 2, 4, 3");
    test_half<Least>(32, 32, 16, -1, "32, 32, 16, 1, 1, 2");
    test_half<Least>(96, 64, 80, 0, "32, 32, 16, 1, 1, 2");
    test_half<Uneven>(64, 288, 96, -1, "32, 96, 32, 1, 2, 5");
}

int main() {
    start(false);
    test_gemm();
    test_hgemm();
    finish();
}
