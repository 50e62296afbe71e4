/* drawn_rows.cuh and told_words.cuh against plain double; sm_90a. */
#include "drawn_rows.cuh"
#include "row_ops.cuh"
#include "include_rows.cuh"

/* ---- told_words.cuh ---- */

/* Tells each state, and gives what is told then; were it not there, nothing is written. */
template <class State>
static __global__ void tell_kernel(const State *from, State *told, State *to) {
    kp::tell_state(told + threadIdx.x, from[threadIdx.x]);
    const kp::ToldState<State> t = kp::told_state(told + threadIdx.x);
    if (t.there()) to[threadIdx.x] = t.state();
}

/* Words of all kinds arrive as they are, but for those of all ones, which are another NaN. */
template <class State, int WORDS> static void test_told(const char *name) {
    begin("tell_state<%s>", name);
    const uint64_t words[] = {0, ~0ull, 1, ~0ull - 1, 0x7ff8000000000000, ~0ull >> 1, ~0ull << 32};
    constexpr int N = 7 * 7;
    std::vector<uint64_t> host, want;
    for (int i = 0; i < N; i++)
        for (int w = 0; w < WORDS; w++) {
            host.push_back(words[w ? i / 7 : i % 7]);
            want.push_back(host.back() == ~0ull ? ~0ull - 1 : host.back());
        }
    const Buffer<uint64_t> from(host), told(host.size()), to(host.size());
    tell_kernel<<<1, N>>>((const State *)from.data, (State *)told.data, (State *)to.data);
    ran();
    check(to.read() == want, "what was told is not what is heard");
    to.guarded("what is heard");
}

/* ---- drawn_rows.cuh ---- */

/* Runs an Op twice, as scratch is not what it was then; then by the fewest blocks that have room
 * for a row, and by more than run at once. */
template <int ROWS, int COLUMNS, class Op>
static void run_drawn(const char *name, const Op &op, const std::vector<float> &host,
                      const std::vector<Want> &want) {
    using S = kp::DrawnShape<COLUMNS>;
    using State = typename Op::State;
    begin("drawn_rows, %s (%d x %d)", name, ROWS, COLUMNS);
    const Buffer<float> x(host), y(host.size());
    const Buffer<unsigned char> scratch(kp::drawn_rows_scratch<ROWS, COLUMNS, Op>());
    for (int again = 0; again < 2; again++) {
        cuda_ok(cudaMemset(y.data, 0xff, y.count * sizeof(float)), "cudaMemset");
        kp::drawn_rows<ROWS, COLUMNS>(0, op, x.data, y.data, scratch.data);
        ran();
        compare(y, want, again ? "second time" : "out");
    }
    constexpr size_t states = (size_t)ROWS * S::PER_ROW * sizeof(State);
    constexpr size_t counters = S::COUNTED ? ROWS * kp::DRAWN_STEP : 0;
    unsigned *count = (unsigned *)(scratch.data + states);
    for (int blocks : {(S::PER_ROW + S::ROOM - 1) / S::ROOM, 1000}) {
        begin("drawn_rows_kernel, %s (%d x %d, %d blocks)", name, ROWS, COLUMNS, blocks);
        cuda_ok(cudaMemset(y.data, 0xff, y.count * sizeof(float)), "cudaMemset");
        cuda_ok(cudaMemset(scratch.data, 0xff, states), "cudaMemset");
        cuda_ok(cudaMemset(count, 0, (counters + 1) * sizeof *count), "cudaMemset");
        kp::drawn_rows_kernel<ROWS, COLUMNS, S>
            <<<blocks, S::THREADS, sizeof(kp::DrawnMemory<Op, S>)>>>(
                op, x.data, y.data, (State *)scratch.data, count, count + counters);
        ran();
        compare(y, want);
    }
    scratch.guarded("scratch");
    unchanged(x, host, "x");
}

template <int ROWS, int COLUMNS> static void test_softmax() {
    const std::vector<float> host = softmax_rows(ROWS, COLUMNS);
    run_drawn<ROWS, COLUMNS>("Softmax", kp::Softmax(), host, softmax_want(host, COLUMNS));
}

/* A state of 8 bytes, a double. */
template <int ROWS, int COLUMNS> static void test_length() {
    const std::vector<float> host = uniform((size_t)ROWS * COLUMNS, COLUMNS);
    std::vector<Want> want;
    for (size_t r = 0; r < host.size(); r += COLUMNS) {
        double sum = 0;
        for (int c = 0; c < COLUMNS; c++) sum += (double)host[r + c] * host[r + c];
        for (int c = 0; c < COLUMNS; c++) {
            const double y = host[r + c] / std::sqrt(sum);
            want.push_back({y, 16 * U * std::fabs(y)});
        }
    }
    run_drawn<ROWS, COLUMNS>("length", kp::DivideBy<kp::Length>(), host, want);
}

/* A state of 16 bytes; the channel of an element is that of its plane. In row `ruined`, if it is
 * one, is a NaN of all ones, of which others are to see a state all the same. */
template <int ROWS, int COLUMNS, int CHANNELS, int PLANE> static void test_standardize(int ruined) {
    Random random(COLUMNS);
    std::vector<float> host;
    std::vector<Want> want;
    const std::vector<float> w = uniform(CHANNELS, 4, -2, 2), b = uniform(CHANNELS, 5);
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < COLUMNS; c++) host.push_back(norm_value(random, r));
        float *row = &host[(size_t)r * COLUMNS];
        if (r == ruined) memset(&row[COLUMNS / 3], 0xff, sizeof(float));
        const Stats s = stats_of(row, COLUMNS, 1e-5);
        for (int c = 0; c < COLUMNS; c++) {
            const size_t channel = ((size_t)r * COLUMNS + c) / PLANE % CHANNELS;
            want.push_back(r == ruined ? Want{NAN, 0} : normal(row[c], s, w[channel], b[channel]));
        }
    }
    const Buffer<float> weight(w), bias(b);
    const kp::Standardize<CHANNELS, PLANE> op = {1e-5, weight.data, bias.data};
    run_drawn<ROWS, COLUMNS>("Standardize", op, host, want);
}

int main() {
    start(true);
    test_told<float2, 1>("8 bytes");
    test_told<double2, 2>("16 bytes");
    test_softmax<300, 8192>();    /* a piece a row */
    test_softmax<40, 65536>();    /* a block has room for a row */
    test_softmax<7, 48 * 8192>(); /* five blocks, states of more than a warp */
    test_softmax<5, 67 * 8192>(); /* counted */
    test_length<21, 33 * 8192>(); /* fewer pieces than the chip has room for */
    test_standardize<12, 16384, 12, 8192>(3);
    test_standardize<16, 8192, 24, 1024>(-1); /* more than one channel a warp */
    test_standardize<9, 256 * 8192, 2, 8 * 8192>(5);
    finish();
}
