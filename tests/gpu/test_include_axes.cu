/* columns.cuh and row_scans.cuh against plain double. */
#include "columns.cuh"
#include "row_scans.cuh"
#include "include_test.cuh"

/* ---- columns.cuh ---- */

/* What columns are made of: NUMBERS; TIES: few different ones, so that the first counts; HOLES:
 * ties, and one value in seven NaN, in every third column; INFINITE: columns of one infinity, of
 * both and of an infinity and ties. */
enum { NUMBERS, TIES, HOLES, INFINITE };

static std::vector<float> columns_of(int kind, size_t count, int columns) {
    std::vector<float> x = uniform(count, count + kind, -3, 3);
    for (size_t i = 0; i < count; i++) {
        const int c = (int)(i % columns), roll = (int)(x[i] * 1000) % 7;
        if (kind != NUMBERS) x[i] = std::rint(x[i]);
        if (kind == HOLES && c % 3 == 0 && roll == 0) x[i] = NAN;
        if (kind == INFINITE && (c % 4 < 2 || roll == 0)) x[i] = c % 2 ? INFINITY : -INFINITY;
        if (kind == INFINITE && c % 4 == 1 && roll == 0) x[i] = -INFINITY;
    }
    return x;
}

/* The value, and how large it would be without its signs. */
static Want reduced(kp::MeanOfColumn, const std::vector<double> &v) {
    double sum = 0, size = 0;
    for (double a : v) sum += a, size += std::fabs(a);
    const double rows = (double)v.size();
    return {sum / rows, size / rows * (rows / 64 + 16) * U};
}
template <bool LARGEST> static int first_extreme(const std::vector<double> &v) {
    int best = 0;
    for (int i = 1; i < (int)v.size(); i++)
        if (!std::isnan(v[best]) &&
            (std::isnan(v[i]) || (LARGEST ? v[i] > v[best] : v[i] < v[best])))
            best = i;
    return best;
}
template <bool LARGEST>
static Want reduced(kp::ExtremeOfColumn<LARGEST>, const std::vector<double> &v) {
    return {v[first_extreme<LARGEST>(v)], 0};
}
template <bool LARGEST>
static Want reduced(kp::PlaceInColumn<LARGEST>, const std::vector<double> &v) {
    return {(double)first_extreme<LARGEST>(v), 0};
}

template <class R, int ROWS, int COLUMNS>
static void test_reduction(const char *name, int kind, int batches) {
    begin("reduce_columns<%s, %d, %d> (%d batches, contents %d)", name, ROWS, COLUMNS, batches,
          kind);
    const std::vector<float> host = columns_of(kind, (size_t)batches * ROWS * COLUMNS, COLUMNS);
    const Buffer<float> x(host);
    const Buffer<typename R::Result> y((size_t)batches * COLUMNS);
    kp::reduce_columns<R, ROWS, COLUMNS>(x.data, y.data, batches, 0);
    ran();
    std::vector<Want> want;
    for (int i = 0; i < batches * COLUMNS; i++) {
        std::vector<double> v;
        for (int r = 0; r < ROWS; r++)
            v.push_back(host[((size_t)(i / COLUMNS) * ROWS + r) * COLUMNS + i % COLUMNS]);
        want.push_back(reduced(R(), v));
    }
    compare(y, want);
    unchanged(x, host, "x");
}

/* Rows: below and beyond whole batches of 64; columns: whole float4 or not, tiles of 256 or not. */
template <class R> static void test_reductions(const char *name, bool exact) {
    test_reduction<R, 64, 256>(name, exact ? TIES : NUMBERS, 2);
    test_reduction<R, 200, 70>(name, exact ? TIES : NUMBERS, 3);
    test_reduction<R, 5, 4>(name, NUMBERS, 2);
    test_reduction<R, 1, 1>(name, NUMBERS, 7);
    test_reduction<R, 131, 263>(name, HOLES, 2);
    test_reduction<R, 129, 516>(name, INFINITE, 1);
}

/* ---- row_scans.cuh ---- */

static double folded(Add, double before, double v) {
    return before + v;
}
static double folded(kp::Product, double before, double v) {
    return before * v;
}

/* Whole numbers, or powers of two of which all products are between 2^-8 and 2^8: results are exact
 * in fp32. In each row one is infinite, if so asked; else in some rows one is 0. */
template <class Op> static std::vector<float> scanned_rows(int rows, int columns, bool infinite) {
    Random random(rows + columns);
    std::vector<float> x((size_t)rows * columns);
    for (size_t i = 0; i < x.size(); i++) {
        const float v = std::rint(random.uniform(-100, 100));
        const int c = (int)(i % columns);
        const double power = std::rint(8 * std::sin(c + 1)) - std::rint(8 * std::sin(c));
        x[i] = Op::IDENTITY == 1 ? std::ldexp(v < 0 ? -1.0f : 1.0f, (int)power) : v;
    }
    for (int r = 0; r < rows; r++) {
        float *at = &x[(size_t)r * columns + (size_t)columns * r / rows];
        if (infinite) *at = r % 2 ? INFINITY : -INFINITY;
        if (!infinite && r % 3 == 2) *at = 0;
    }
    return x;
}

template <class S> static std::vector<Want> scanned(const std::vector<double> &v) {
    std::vector<Want> want(v.size());
    for (size_t row = 0; row < v.size(); row += S::COLUMNS) {
        double before = S::Op::IDENTITY;
        for (int i = 0; i < S::COLUMNS; i++) {
            const size_t at = row + (S::REVERSE ? S::COLUMNS - 1 - i : i);
            const double with = folded(typename S::Op(), before, v[at]);
            want[at] = {S::EXCLUSIVE ? before : with, 0};
            before = with;
        }
    }
    return want;
}

/* Of values, and of values of which every third is masked: those that are infinite make NaN. */
template <class S> static void test_row_scan(const char *name, int rows, bool infinite) {
    const std::vector<float> host = scanned_rows<typename S::Op>(rows, S::COLUMNS, infinite);
    std::vector<unsigned char> bits(host.size());
    for (size_t i = 0; i < bits.size(); i++) bits[i] = i % 3 != 0;
    const Buffer<float> x(host), y(host.size()), masked(host.size());
    const Buffer<unsigned char> mask(bits);
    begin("row_scan<%s> (%d rows of %d%s)", name, rows, S::COLUMNS, infinite ? ", infinities" : "");
    kp::row_scan<S>(kp::Values{x.data}, y.data, rows, 0);
    ran();
    compare(y, scanned<S>(std::vector<double>(host.begin(), host.end())));
    begin("row_scan<%s> (%d rows of %d, masked)", name, rows, S::COLUMNS);
    kp::row_scan<S>(kp::MaskedValues{x.data, mask.data}, masked.data, rows, 0);
    ran();
    std::vector<double> v(host.size());
    for (size_t i = 0; i < v.size(); i++) v[i] = (double)host[i] * bits[i];
    compare(masked, scanned<S>(v));
    unchanged(x, host, "x");
    unchanged(mask, bits, "mask");
}

template <class Op, int COLUMNS> static void test_row_scans(const char *name, int rows) {
    for (int infinite = 0; infinite < 2; infinite++) {
        test_row_scan<kp::RowScan<Op, COLUMNS>>(name, rows, infinite);
        test_row_scan<kp::RowScan<Op, COLUMNS, true>>(name, rows, infinite);
        test_row_scan<kp::RowScan<Op, COLUMNS, false, true>>(name, rows, infinite);
        test_row_scan<kp::RowScan<Op, COLUMNS, true, true>>(name, rows, infinite);
    }
}

int main() {
    start(false);
    test_reductions<kp::MeanOfColumn>("MeanOfColumn", false);
    test_reductions<kp::ExtremeOfColumn<true>>("ExtremeOfColumn<true>", true);
    test_reductions<kp::ExtremeOfColumn<false>>("ExtremeOfColumn<false>", true);
    test_reductions<kp::PlaceInColumn<true>>("PlaceInColumn<true>", true);
    test_reductions<kp::PlaceInColumn<false>>("PlaceInColumn<false>", true);
    test_row_scans<Add, 1>("Add", 9);
    test_row_scans<Add, 1003>("Add", 9);
    test_row_scans<Add, 20000>("Add", 5);
    test_row_scans<Add, 2 * 8192>("Add", 7);
    test_row_scans<kp::Product, 259>("Product", 9);
    test_row_scans<kp::Product, 8192 + 4>("Product", 5);
    finish();
}
