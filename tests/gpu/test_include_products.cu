/* gemm.cuh and tensor_gemm.cuh against plain double. */
#include "gemm.cuh"
#include "reduce.cuh"
#include "tensor_gemm.cuh"
#include "include_epilogues.cuh"
#include "include_products.cuh"

/* ---- gemm.cuh: its own operands ---- */

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

/* ---- tensor_gemm.cuh ---- */

/* What a float becomes as bf16, and as TF32: rounded, ties away from zero, or cut off. */
static float as_bf16(float v) {
    return __bfloat162float(__float2bfloat16_rn(v));
}
static float with_bits(float v, uint32_t add) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits = (bits + add) & ~(uint32_t)0x1fff;
    memcpy(&v, &bits, sizeof bits);
    return v;
}
static float as_tf32(float v) {
    return with_bits(v, 0x1000);
}
static float cut_to_tf32(float v) {
    return with_bits(v, 0);
}

/* An element of each kind, and what it is multiplied as. */
template <class E> struct Kind;
template <> struct Kind<__half> {
    static constexpr const char *NAME = "f16";
    static constexpr int STEP = 16;
    static __half of(float v) { return __float2half_rn(v); }
    static __half multiplied(__half v) { return v; }
};
template <> struct Kind<__nv_bfloat16> {
    static constexpr const char *NAME = "bf16";
    static constexpr int STEP = 16;
    static __nv_bfloat16 of(float v) { return __float2bfloat16_rn(v); }
    static __nv_bfloat16 multiplied(__nv_bfloat16 v) { return v; }
};
template <> struct Kind<float> {
    static constexpr const char *NAME = "TF32";
    static constexpr int STEP = 8;
    static float of(float v) { return v; }
    static float multiplied(float v) { return as_tf32(v); }
};

template <class E, class F> static std::vector<E> each(std::vector<E> v, F f) {
    for (E &x : v) x = f(x);
    return v;
}

/* The operands of a product. With low = 0 all products add up, and sums in less than fp32 would be
 * far off. */
template <class T> struct Operands {
    using E = typename T::Element;
    int rows, columns, depth;
    std::vector<E> a, b, given; /* given: b as the product wants it */
    Buffer<E> left, right;

    static std::vector<E> elements(size_t n, uint64_t seed, float low) {
        Random random(seed);
        std::vector<E> v(n);
        for (E &x : v) x = Kind<E>::of(random.uniform(low, 1));
        return v;
    }
    Operands(const char *what, int rows, int columns, int depth, float low)
        : rows(rows), columns(columns), depth(depth), a(elements((size_t)rows * depth, 7, low)),
          b(elements((size_t)depth * columns, 8, low)),
          given(T::B_ALONG_DEPTH ? transposed(b, depth, columns) : b), left(a), right(given) {
        begin("tensor_product<%s, %d, %d, %d, %d, %d, %d%s> (%s, %d x %d x %d, from %g)",
              Kind<E>::NAME, T::M, T::N, T::K, T::WARPS_M, T::WARPS_N, T::STAGES,
              T::B_ALONG_DEPTH ? ", along" : "", what, rows, columns, depth, low);
    }
    size_t count() const { return (size_t)rows * columns; }

    /* The product of what f makes of the elements. */
    template <class F> Exact exact(F f) const {
        return plain_product(each(a, f), each(b, f), rows, columns, depth);
    }
    Exact exact() const { return exact(Kind<E>::multiplied); }

    template <class Out> std::vector<Want> want(const Exact &c) const {
        return tensor_want<Out>(c, depth, Kind<E>::STEP);
    }
    template <class Epilogue> void run(const Epilogue &epilogue) const {
        tensor_product<T>(left.data, right.data, epilogue, rows, columns, depth, 0);
        ran();
        unchanged(left, a, "a");
        unchanged(right, given, "b");
    }
};

template <class T> static void test_stored(int rows, int columns, int depth, float low) {
    using E = typename T::Element;
    const Operands<T> x("stored", rows, columns, depth, low);
    const Buffer<E> out(x.count());
    x.run(StoreAs<E, Same>{{}, out.data});
    compare(out, x.template want<E>(x.exact()));
}

/* Whatever the elements: bias and ReLU in fp32, and not rounded. */
template <class T> static void test_biased(int rows, int columns, int depth) {
    const Operands<T> x("bias, ReLU", rows, columns, depth, -1);
    const std::vector<float> biases = uniform(columns, 9);
    const Buffer<float> bias(biases), out(x.count());
    x.run(StoreAs<float, BiasedRelu>{{bias.data}, out.data});
    Exact c = x.exact();
    for (size_t i = 0; i < x.count(); i++)
        c.value[i] = std::max(c.value[i] + biases[i % columns], 0.0);
    compare(out, x.template want<float>(c));
}

/* Adds to what there is, so that a second call shows; and the sums of 16 columns, by the two lanes
 * that share a row. */
struct AddRows {
    float *out, *sums;
    __device__ void row(int m, int n, int columns, const float (&v)[8]) const {
        float sum = 0;
        for (int j = 0; j < 8; j++) {
            atomicAdd(out + (long long)m * columns + n + j, v[j]);
            sum += v[j];
        }
        sum = warp_reduce<2>(sum, Add());
        if (n % 16 == 0) sums[(long long)m * (columns / 16) + n / 16] = sum;
    }
};

template <class T> static void test_added(int rows, int columns, int depth) {
    const Operands<T> x("added", rows, columns, depth, -1);
    const Buffer<float> out(std::vector<float>(x.count(), 0.0f)), sums(x.count() / 16);
    x.run(AddRows{out.data, sums.data});
    const Exact c = x.exact();
    const std::vector<Want> want = x.template want<float>(c);
    std::vector<Want> sum(sums.count, Want{0, 0});
    for (size_t i = 0; i < want.size(); i++) {
        sum[i / 16].value += want[i].value;
        sum[i / 16].slack += want[i].slack + c.size[i] * 8 * U;
    }
    compare(out, want);
    compare(sums, sum, "sums of 16 columns");
}

/* Checks that the bounds tell this arithmetic from another one. */
static void refuses(const std::vector<Want> &want, const Exact &other, const char *what) {
    size_t refused = 0;
    for (size_t i = 0; i < want.size(); i++) refused += !want[i].accepts(other.value[i]);
    check(refused * 2 > want.size(), "the bounds refuse %zu of %zu elements of %s", refused,
          want.size(), what);
}

/* Floats are rounded to TF32: their error is not that of fp32, of cutting off, or of bf16. */
template <class T> static void test_tf32(int rows, int columns, int depth) {
    const Operands<T> x("as TF32", rows, columns, depth, -1);
    const Buffer<float> out(x.count());
    x.run(StoreAs<float, Same>{{}, out.data});
    const std::vector<Want> want = x.template want<float>(x.exact());
    compare(out, want);
    refuses(want, x.exact(Kind<float>::of), "fp32");
    refuses(want, x.exact(cut_to_tf32), "TF32 cut off");
    refuses(want, x.exact(as_bf16), "bf16");
}

/* What all kinds of elements have in common: tiles that are least, deep, wide and uneven. */
template <class E, int K> static void test_kind() {
    using Least = TensorTile<E, 32, 32, K, 1, 1, 2>;
    using Deep = TensorTile<E, 64, 64, 2 * K, 2, 2, 4>;
    using Uneven = TensorTile<E, 32, 96, 2 * K, 1, 2, 5>;
    using Along = TensorTile<E, 64, 96, 2 * K, 2, 2, 3, true>;
    test_stored<Least>(32, 32, K, -1);
    test_stored<Least>(96, 64, 5 * K, 0);
    test_stored<Deep>(128, 192, 32 * K, 0);
    test_stored<Uneven>(64, 288, 6 * K, -1);
    test_stored<Along>(64, 96, 2 * K, -1);
    test_stored<Along>(192, 288, 10 * K, -1);
    test_biased<Least>(64, 96, 3 * K);
    test_biased<Deep>(192, 128, 8 * K);
    test_biased<Along>(128, 384, 14 * K);
    test_added<Uneven>(96, 192, 4 * K);
    test_added<Along>(128, 192, 6 * K);
}

static void test_tensor_gemm() {
    using Wide = TensorTile<__half, 128, 128, 32, 2, 4, 3>;
    test_kind<__half, 16>();
    test_kind<__nv_bfloat16, 16>();
    test_kind<float, 8>();
    test_stored<TensorTile<__half, 64, 64, 64, 2, 2, 4>>(64, 64, 64, -1);
    test_stored<Wide>(128, 128, 32, -1);
    test_stored<Wide>(384, 256, 160, -1);
    test_stored<Wide>(1536, 1408, 64, -1);
    test_biased<TensorTile<__nv_bfloat16, 128, 128, 32, 2, 4, 3, true>>(256, 384, 96);
    test_biased<TensorTile<float, 128, 128, 16, 2, 4, 4, true>>(256, 384, 96);
    test_tf32<TensorTile<float, 128, 128, 16, 2, 4, 4>>(256, 384, 64);
}

int main() {
    start(false);
    test_gemm();
    test_tensor_gemm();
    finish();
}
