/* scan.cuh against plain double. */
#include "scan.cuh"
#include "include_rows.cuh"

/* Associative, and does not commute: the last value that is one. */
struct Latest {
    static constexpr float IDENTITY = NAN;
    template <class T> __host__ __device__ T operator()(T before, T v) const {
        return v == v ? v : before;
    }
};
static double folded(Add, double before, double v) {
    return before + v;
}
static double folded(Max, double before, double v) {
    return std::fmax(before, v);
}
static double folded(Latest f, double before, double v) {
    return f(before, v);
}

/* What the rows of a test are made of. */
enum { WHOLE_NUMBERS, POSITIVE, HOLES, INFINITE };

/* Whole numbers: sums are exact in fp32. Positive: they are not. Holes: two in three values are
 * NaN, and whole rows begin with -inf. Infinite: whole numbers, and one infinity in each row, each
 * time elsewhere: the sums before it are none. */
static std::vector<float> scan_rows_of(int kind, int rows, int columns) {
    Random random(rows + columns);
    std::vector<float> x((size_t)rows * columns);
    for (size_t i = 0; i < x.size(); i++) {
        const float v = random.uniform(-100, 100);
        if (kind == WHOLE_NUMBERS || kind == INFINITE) x[i] = std::rint(v);
        if (kind == POSITIVE) x[i] = 1000 + v / 100;
        if (kind == HOLES) x[i] = i % columns < 3 ? -INFINITY : i % 3 ? NAN : v;
    }
    for (int r = 0; kind == INFINITE && r < rows; r++)
        x[(size_t)r * columns + (size_t)columns * r / rows + r % 5] = r % 2 ? INFINITY : -INFINITY;
    return x;
}

/* A prefix of positive values: no value meets more than 12 roundings, each of at most the sum. */
template <class Op, int COLUMNS, int THREADS, int CHUNKS>
static void test_scan(const char *name, int kind, int rows) {
    begin("scan_rows<%s, %d, %d, %d> (%d rows)", name, COLUMNS, THREADS, CHUNKS, rows);
    const std::vector<float> host = scan_rows_of(kind, rows, COLUMNS);
    const Buffer<float> x(host), y(host.size());
    scan_rows<Op, COLUMNS, THREADS, CHUNKS>(x.data, y.data, rows, 0);
    ran();
    std::vector<Want> want(host.size());
    for (size_t i = 0; i < want.size(); i++) {
        const double before = i % COLUMNS ? want[i - 1].value : Op::IDENTITY;
        const double v = folded(Op(), before, host[i]);
        want[i] = {v, kind == POSITIVE ? v * 12 * U : 0};
    }
    compare(y, want);
    unchanged(x, host, "x");
}

/* 128 values have the sum 3, but one such group has 2^26 and a later one takes it away: behind that
 * the sums are small again, and right if what is carried has more digits than fp32. */
static void test_tower() {
    constexpr int COLUMNS = 4000, HIGH = 512, LOW = 3072;
    begin("scan_rows<Add, %d, 32, 4> (2^26 comes and goes)", COLUMNS);
    std::vector<float> host(COLUMNS);
    std::vector<Want> want(COLUMNS);
    for (int i = 0; i < COLUMNS; i++)
        host[i] = i / 128 == HIGH / 128 || i / 128 == LOW / 128 ? 0 : i % 128 == 77 ? 3 : 0;
    host[HIGH] = 0x1p26f;
    host[LOW] = -0x1p26f;
    double sum = 0;
    for (int i = 0; i < COLUMNS; i++) {
        sum += host[i];
        want[i] = {sum, i >= HIGH && i < LOW + 128 ? 0x1p28 * U : 0};
    }
    const Buffer<float> x(host), y(COLUMNS);
    scan_rows<Add, COLUMNS, 32, 4>(x.data, y.data, 1, 0);
    ran();
    compare(y, want);
}

static void test_scans() {
    test_scan<Add, 1, 32, 2>("Add", WHOLE_NUMBERS, 5);
    test_scan<Add, 33, 32, 2>("Add", WHOLE_NUMBERS, 70);
    test_scan<Add, 256, 32, 2>("Add", WHOLE_NUMBERS, 300);
    test_scan<Add, 258, 64, 1>("Add", WHOLE_NUMBERS, 9);
    test_scan<Add, 16383, 1024, 2>("Add", WHOLE_NUMBERS, 5);
    test_scan<Add, 8192 + 4, 512, 4>("Add", WHOLE_NUMBERS, 3);
    test_scan<Add, 3 * 8192, 512, 4>("Add", WHOLE_NUMBERS, 200);
    test_scan<Add, 20001, 96, 4>("Add", POSITIVE, 4);
    test_scan<Add, 4 * 8192, 512, 4>("Add", POSITIVE, 7);
    test_scan<Add, 258, 64, 1>("Add", INFINITE, 40);
    test_scan<Add, 4 * 8192, 512, 4>("Add", INFINITE, 200);
    test_scan<Max, 515, 128, 4>("Max", HOLES, 6);
    test_scan<Max, 3 * 2048, 128, 4>("Max", WHOLE_NUMBERS, 3);
    test_scan<Latest, 9000, 32, 16>("Latest", HOLES, 3);
    test_scan<Latest, 2048, 512, 1>("Latest", HOLES, 5);
    test_tower();
}

int main() {
    start(false);
    test_scans();
    finish();
}
