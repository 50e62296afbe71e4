/* test_accuracy.c: what accuracy rests on, on the pretend GPU: which arithmetic is of which class,
 * and what a sample is compared with.  How large an error may be needs no GPU:
 * tests/unit/measure/test_tolerance.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "measure/accuracy.h"
#include "task_text.h"

/* Fails unless two numbers are the same to 12 digits. */
static void near(double got, double want) {
    if (!(fabs(got - want) <= 1e-12 * fabs(want))) fail_msg("got %.17g, expected %.17g", got, want);
}

/* ---- A sample against the oracle ------------------------------------------------------------ */

enum { A, B, OUT, SIDE = 16, AREA = SIDE * SIDE };
static struct kp_task *product; /* y = matmul(a, b) */

/* A judge of a task with products, without candidate. */
static struct accuracy judge_of(struct kp_task *t) {
    struct accuracy acc;
    size_t needed;
    memset(&acc, 0, sizeof acc);
    assert_true(referee_open(&acc.r, t, 1, 0, 0, 5, &needed));
    assert_true(accuracy_open(&acc, 1 << 20, &needed));
    assert_int_equal(acc.nbaselines, 2);
    return acc;
}

static struct accuracy judge_graph(const char *tensors, const char *graph) {
    char message[1024];
    struct kp_task *t = load_graph(tensors, graph, message);
    if (!t) fail_msg("%s", message);
    return judge_of(t);
}

static struct accuracy judge(void) {
    return judge_of(product);
}

static float *data(const struct accuracy *acc, int buffer) {
    return span_data(&acc->r.at[buffer]);
}

/* Operands of `bits` bits; relative to the largest of all, if so. */
static void cut(float *x, int bits, bool normwise) {
    int e = 0;
    double most = 0;
    for (int i = 0; i < AREA; i++) most = fmax(most, fabs(x[i]));
    for (int i = 0; i < AREA; i++) {
        frexp(normwise ? most : x[i], &e);
        x[i] = (float)ldexp(round(ldexp(x[i], bits - e)), e - bits);
    }
}

struct honest {   /* how a candidate computes */
    int baseline; /* with the arithmetic of this one */
    int bits;     /* of its operands; 0: all */
    bool normwise;
};

/* The errors of a candidate that computes so, in the spreads of a class. */
static struct sample_errors sample(struct accuracy *acc, struct honest how, enum kp_distribution d,
                                   enum kp_class class) {
    const uint64_t seed = 11;
    const void *tensors[KP_MAX_BUFFERS];
    void *outputs[KP_MAX_OUTPUTS];
    struct sample_errors found;
    referee_pointers(&acc->r, 0, tensors, outputs);
    referee_fill(&acc->r, 0, d, seed);
    for (int i = A; i <= B && how.bits; i++) cut(data(acc, i), how.bits, how.normwise);
    kp_exec_run(acc->exec[how.baseline], tensors, outputs, acc->workspace, acc->r.stream);
    referee_fill(&acc->r, 0, d, seed);
    accuracy_sample(acc, 0, class, KP_ALL, 3, &found);
    return found;
}

/* Which arithmetic is of which class, on which inputs. */
static void test_sample(void **state) {
    (void)state;
    const struct honest fp32 = {0}, tf32 = {.baseline = 1}, bits24 = {.bits = 24},
                        bits16 = {.bits = 16}, block = {.bits = 24, .normwise = true},
                        block16 = {.bits = 16, .normwise = true};
    const struct {
        struct honest how;
        enum kp_distribution on;
        enum kp_class class;
        bool passes;
    } row[] = {{fp32, KP_DIST_NORMAL, KP_CLASS_FP32, true},
               {fp32, KP_DIST_SCALED, KP_CLASS_FP32, true},
               {fp32, KP_DIST_INNER, KP_CLASS_FP32, true},
               {fp32, KP_DIST_INFINITE, KP_CLASS_FP32, true},
               {fp32, KP_DIST_LARGE, KP_CLASS_FP32, true},
               {bits24, KP_DIST_SCALED, KP_CLASS_FP32, true},
               {bits16, KP_DIST_NORMAL, KP_CLASS_FP32, false},
               {bits16, KP_DIST_NORMAL, KP_CLASS_NORMWISE, false},
               {bits16, KP_DIST_NORMAL, KP_CLASS_TF32, true},
               {tf32, KP_DIST_NORMAL, KP_CLASS_FP32, false},
               {tf32, KP_DIST_NORMAL, KP_CLASS_NORMWISE, false},
               {tf32, KP_DIST_NORMAL, KP_CLASS_TF32, true},
               {tf32, KP_DIST_SCALED, KP_CLASS_TF32, true},
               {block, KP_DIST_NORMAL, KP_CLASS_NORMWISE, true},
               {block, KP_DIST_INNER, KP_CLASS_FP32, false},
               {block, KP_DIST_INNER, KP_CLASS_NORMWISE, true},
               {block16, KP_DIST_NORMAL, KP_CLASS_NORMWISE, false}};
    struct accuracy acc = judge();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct sample_errors e = sample(&acc, row[i].how, row[i].on, row[i].class);
        if (judgment_passes(&e.candidate) != row[i].passes)
            fail_msg("row %zu: %g of the limit", i, e.candidate.of_limit);
        if (!judgment_passes(&e.baseline[0]) || e.infinite || !(e.spread.norm > 0) ||
            isinf(e.spread.norm))
            fail_msg("row %zu: baseline at %g of the limit, spread %g", i, e.baseline[0].of_limit,
                     e.spread.norm);
    }
}

/* Baselines are judged as a candidate that computes as they do. */
static void test_baselines(void **state) {
    (void)state;
    struct accuracy acc = judge();
    for (int b = 0; b < 2; b++) {
        struct honest how = {.baseline = b};
        struct sample_errors e = sample(&acc, how, KP_DIST_DECLARED, KP_CLASS_FP32);
        near(e.candidate.rms, e.baseline[b].rms);
        near(e.candidate.of_limit, e.baseline[b].of_limit);
        assert_true(e.baseline[1].rms > 100 * e.baseline[0].rms);
    }
}

/* The size of the spreads is that of the class's roundings, about. */
static void test_spread_size(void **state) {
    (void)state;
    struct accuracy acc = judge();
    const struct honest how = {0};
    struct kp_error fp32 = sample(&acc, how, KP_DIST_DECLARED, KP_CLASS_FP32).spread;
    struct kp_error tf32 = sample(&acc, how, KP_DIST_DECLARED, KP_CLASS_TF32).spread;
    assert_true(fp32.norm > 0.6 * 0x1p-24 && fp32.norm < 1.8 * 0x1p-24);
    assert_true(tf32.norm > 0.6 * 0x1p-11 && tf32.norm < 1.8 * 0x1p-11);
    assert_true(fp32.element > 0.6 * 0x1p-24 && fp32.element < 3 * 0x1p-24);
}

/* A finite number where the oracle is infinite is wrong, but to those who compute relative to the
 * largest. */
static void test_lost(void **state) {
    (void)state;
    struct accuracy acc = judge();
    for (int c = 0; c < KP_CLASS_COUNT; c++) {
        const struct honest how = {0};
        struct sample_errors e = sample(&acc, how, KP_DIST_INFINITE, (enum kp_class)c);
        assert_true(judgment_passes(&e.candidate));
        float *y = data(&acc, OUT);
        int n = 0;
        for (int i = 0; i < AREA; i++)
            if (isinf(y[i])) y[i] = 1, n++;
        assert_int_equal(n, SIDE);
        accuracy_sample(&acc, 0, (enum kp_class)c, KP_ALL, 3, &e);
        assert_int_equal(judgment_passes(&e.candidate), c == KP_CLASS_NORMWISE);
        assert_int_equal(e.found[0].lost, n);
        assert_int_equal(e.found[0].bad, c == KP_CLASS_NORMWISE ? 0 : n);
    }
}

/* Where the most accurate baseline overflows and the oracle does not, the inputs are outside what
 * the task can compute; the candidate's own overflows are its own fault. */
static void test_outside(void **state) {
    (void)state;
    struct accuracy acc = judge();
    const struct honest how = {0};
    setenv("CUDA_VISIBLE_DEVICES", "skew=1e30", 1);
    struct sample_errors e = sample(&acc, how, KP_DIST_LARGE, KP_CLASS_FP32);
    assert_true(e.infinite);
    for (int d = 0; d < KP_DIST_COUNT; d++)
        assert_int_equal(sample_outside(&e, (enum kp_distribution)d), d != KP_DIST_DECLARED);
    assert_false(sample(&acc, how, KP_DIST_DECLARED, KP_CLASS_FP32).infinite);
    unsetenv("CUDA_VISIBLE_DEVICES");
    e = sample(&acc, how, KP_DIST_LARGE, KP_CLASS_FP32);
    data(&acc, OUT)[7] = INFINITY;
    accuracy_sample(&acc, 0, KP_CLASS_FP32, KP_ALL, 3, &e);
    assert_false(e.infinite || judgment_passes(&e.candidate));
    for (int d = 0; d < KP_DIST_COUNT; d++)
        assert_false(sample_outside(&e, (enum kp_distribution)d));
    e.baseline[0].of_limit = 1.01; /* finite, and wrong: where values are large it overflowed */
    for (int d = 0; d < KP_DIST_COUNT; d++)
        assert_int_equal(sample_outside(&e, (enum kp_distribution)d), d == KP_DIST_LARGE);
}

/* A candidate is excused where the most accurate baseline is wrong, too, unless it is more than
 * twice as wrong, or the baseline is more than twice as wrong in the first class; never on the
 * declared contents. */
static void test_excused(void **state) {
    (void)state;
    static const struct {
        double candidate, baseline, first;
        bool excused;
    } of[] = {{1.1, 0.9, 0.9, false},
              {1.1, 1.1, 1.1, true},
              {4, 2, 2, true},
              {4.1, 2, 2, false},
              {4, 2, 4, true},
              {4, 2, 4.1, false},
              {0.9, 2, 2, true},
              {INFINITY, INFINITY, INFINITY, false},
              {NAN, 2, 2, false},
              {1.1, 1.1, NAN, false},
              {2000, INFINITY, INFINITY, true}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (int d = 0; d < KP_DIST_COUNT; d++) {
            struct kp_judgment own = {.of_limit = of[i].candidate},
                               baseline = {.of_limit = of[i].baseline},
                               first = {.of_limit = of[i].first};
            assert_int_equal(sample_excused(&own, &baseline, &first, (enum kp_distribution)d),
                             of[i].excused && d != KP_DIST_DECLARED);
        }
}

/* What is still poison was not written; only the candidate's is. */
static void test_unwritten(void **state) {
    (void)state;
    struct accuracy acc = judge();
    const struct honest how = {0};
    struct sample_errors e = sample(&acc, how, KP_DIST_DECLARED, KP_CLASS_FP32);
    referee_poison(&acc.r, 0, 9);
    accuracy_sample(&acc, 0, KP_CLASS_FP32, KP_ALL, 3, &e);
    assert_int_equal(e.found[0].unwritten, AREA);
    assert_int_equal(e.found[0].bad, AREA);
    assert_int_equal(e.found[0].first_bad, 0);
    assert_true(judgment_passes(&e.baseline[0]));
}

/* The judgment of an fp32 product on declared inputs of which half is given to the oracle, if
 * `some`: `first` is the error of that half in spreads, and `last` that of the other. */
static struct kp_judgment halves(struct accuracy *acc, bool some, enum how_much much, double first,
                                 double last) {
    const struct honest how = {0};
    struct sample_errors e = sample(acc, how, KP_DIST_DECLARED, KP_CLASS_FP32);
    float *y = data(acc, OUT);
    for (int i = 0; i < AREA; i++)
        y[i] =
            (float)(y[i] * (1 + (i % 2 ? -1 : 1) * (i < AREA / 2 ? first : last) * e.spread.norm));
    if (some) setenv("CUDA_VISIBLE_DEVICES", "some=100", 1);
    accuracy_sample(acc, 0, KP_CLASS_FP32, much, 3, &e);
    unsetenv("CUDA_VISIBLE_DEVICES");
    return e.candidate;
}

/* Where slices are judged the rest is compared with the baseline, within twice the limits: but in
 * SLICES, and where all are judged.  What is not within them the oracle judges. */
static void test_how_much(void **state) {
    (void)state;
    const double fine = 1.5 * M_SQRT2 * KP_RMS_LIMIT, off = 2.5 * M_SQRT2 * KP_RMS_LIMIT,
                 half = 1.5 * KP_RMS_LIMIT;
    const struct {
        bool some;
        enum how_much much;
        double first, last;
        bool passes;
    } row[] = {{true, KP_ALL, 0, 0, true},         {true, KP_SOME, 0, 0, true},
               {true, KP_SLICES, 0, 0, true},      {true, KP_ALL, 0, fine, false},
               {true, KP_SOME, 0, fine, true},     {true, KP_SOME, 0, off, false},
               {true, KP_SLICES, 0, off, true},    {true, KP_SOME, half, 0, false},
               {true, KP_SLICES, half, 0, false},  {false, KP_SOME, 0, fine, false},
               {false, KP_SLICES, 0, fine, false}, {true, KP_SLICES, 0, INFINITY, true},
               {true, KP_SOME, 0, INFINITY, false}};
    struct accuracy acc = judge();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct kp_judgment j = halves(&acc, row[i].some, row[i].much, row[i].first, row[i].last);
        if (judgment_passes(&j) != row[i].passes) fail_msg("row %zu: %g", i, j.of_limit);
    }
    const struct honest how = {
        0}; /* the baseline's error is nobody's, whether all are judged or not */
    const char *const skewed[] = {"skew=1.001", "skew=1.001 some=100"};
    for (int i = 0; i < 2; i++) {
        struct sample_errors e = sample(&acc, how, KP_DIST_DECLARED, KP_CLASS_FP32);
        setenv("CUDA_VISIBLE_DEVICES", skewed[i], 1);
        accuracy_sample(&acc, 0, KP_CLASS_FP32, KP_SOME, 3, &e);
        unsetenv("CUDA_VISIBLE_DEVICES");
        assert_true(judgment_passes(&e.candidate) && !judgment_passes(&e.baseline[0]));
    }
}

/* Where the baseline overflows as the oracle does, the rest may be anything but finite, by the
 * oracle's rule; an element that is not is shown. */
static void test_rest_overflows(void **state) {
    (void)state;
    struct accuracy acc = judge();
    for (int c = 0; c < KP_CLASS_COUNT; c++)
        for (int finite = 0; finite < 3; finite++) {
            const int at = finite == 2 ? 1 : AREA - 3;
            struct sample_errors e;
            for (int i = 0; i < AREA; i++) {
                data(&acc, A)[i] = data(&acc, B)[i] = 1e30f;
                data(&acc, OUT)[i] = i % 2 ? NAN : i % 4 ? -INFINITY : INFINITY;
            }
            if (finite) data(&acc, OUT)[AREA - 3] = data(&acc, OUT)[at] = 7;
            setenv("CUDA_VISIBLE_DEVICES", "some=100", 1);
            accuracy_sample(&acc, 0, (enum kp_class)c, KP_SOME, 3, &e);
            unsetenv("CUDA_VISIBLE_DEVICES");
            bool bad = finite && c != KP_CLASS_NORMWISE;
            assert_int_equal(judgment_passes(&e.candidate), !bad);
            assert_int_equal(e.found[0].bad, bad);
            if (!bad) continue;
            assert_int_equal(e.found[0].first_bad, at);
            assert_true(e.found[0].first_found == 7 && !isinf(e.found[0].first_expected));
        }
}

/* How far others may stray is the same, whether baselines are judged or not. */
static void test_spread_alone(void **state) {
    (void)state;
    const struct honest how = {0};
    struct accuracy acc = judge();
    struct sample_errors with = sample(&acc, how, KP_DIST_DECLARED, KP_CLASS_FP32), alone;
    const int judged = acc.judged;
    accuracy_sample(&acc, 0, KP_CLASS_FP32, KP_ALL, 3, &with);
    acc.judged = 0;
    accuracy_sample(&acc, 0, KP_CLASS_FP32, KP_ALL, 3, &alone);
    acc.judged = judged;
    assert_true(fabs(alone.spread.element / with.spread.element - 1) < 1e-4);
    accuracy_close(&acc);
}

/* Fails unless two judgments are the same. */
static void same(struct kp_judgment got, struct kp_judgment want) {
    near(got.rms, want.rms);
    near(got.element, want.element);
    near(got.of_limit, want.of_limit);
}

/* Compute the outputs of others: memory for as many as fit is theirs. */
static void others(struct accuracy *acc, const struct honest *how, int n) {
    const void *tensors[KP_MAX_BUFFERS];
    void *own[KP_MAX_OUTPUTS];
    accuracy_others(acc, n, 0);
    assert_int_equal(acc->others, n);
    referee_pointers(&acc->r, 0, tensors, own);
    for (int i = 0; i < n; i++) {
        referee_fill(&acc->r, 0, KP_DIST_DECLARED, 11);
        for (int k = A; k <= B && how[i].bits; k++) cut(data(acc, k), how[i].bits, false);
        kp_exec_run(acc->exec[how[i].baseline], tensors, acc->other[i], acc->workspace,
                    acc->r.stream);
    }
}

/* Whoever is judged beside others is judged as if alone, whether or not baselines are. */
static void test_others(void **state) {
    (void)state;
    const struct honest how[] = {{.bits = 16}, {.baseline = 1}, {0}};
    enum { N = 3 };
    struct sample_errors alone[N], found;
    struct accuracy acc = judge();
    accuracy_others(&acc, 1, SIZE_MAX / 2);
    assert_int_equal(acc.others, 0);
    for (int i = 0; i < N; i++) alone[i] = sample(&acc, how[i], KP_DIST_DECLARED, KP_CLASS_FP32);
    others(&acc, how + 1, N - 1);
    for (acc.judged = 0; acc.judged <= acc.nbaselines; acc.judged++) {
        found = sample(&acc, how[0], KP_DIST_DECLARED, KP_CLASS_FP32);
        same(found.candidate, alone[0].candidate);
        for (int i = 1; i < N; i++) same(found.other[i - 1], alone[i].candidate);
        if (acc.judged == 2) same(found.baseline[1], alone[1].candidate);
    }
    acc.judged = acc.nbaselines;
    accuracy_close(&acc);
}

/* y = tanh(2^40 (1 - (1 - off))), as steep as a step: 1, where the candidate has `found`.  All
 * other elements are 0, or as right. */
static struct sample_errors steep(struct accuracy *acc, double off, float found, uint64_t seed) {
    struct sample_errors e;
    referee_fill(&acc->r, 0, KP_DIST_DECLARED, 11);
    for (int i = 0; i < AREA; i++) {
        data(acc, A)[i] = i > 1 ? 0 : i ? -0x1p40f : 0x1p40f;
        data(acc, B)[i] = i == SIDE ? (float)(1 - off) : i < SIDE;
        data(acc, OUT)[i] = i ? i < SIDE : found;
    }
    accuracy_sample(acc, 0, KP_CLASS_FP32, KP_ALL, seed, &e);
    return e;
}

/* Where an honest error carries an element over a step, which the first draws may all miss, more
 * draws tell; where no draw crosses it, an element on the other side is wrong.  NaN is as right, or
 * as wrong. */
static void test_steps(void **state) {
    (void)state;
    struct accuracy acc =
        judge_graph("a f32 [16,16]; b f32 [16,16]", "p[16,16] = matmul(a, b)\ny[16,16] = tanh(p)");
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct sample_errors e = steep(&acc, 0x1p-22, NAN, seed);
        assert_true(judgment_passes(&e.candidate) && !e.found[0].bad);
        e = steep(&acc, 0x1p-22, -1, seed);
        if (!judgment_passes(&e.candidate) || e.found[0].bad || e.candidate.element < 0.05)
            fail_msg("seed %d: %g of the limit", (int)seed, e.candidate.of_limit);
        assert_true(e.spread.element > 0.05);
    }
    for (int nan = 0; nan < 2; nan++) {
        struct sample_errors e = steep(&acc, 0x1p-10, nan ? NAN : -1, 3);
        assert_int_equal(e.found[0].bad, 1);
        assert_int_equal(e.found[0].first_bad, 0);
        assert_true(!judgment_passes(&e.candidate) && judgment_passes(&e.baseline[0]));
    }
    accuracy_close(&acc);
}

/* Draws that another element gets, in another slice, are none of this one's. */
static void test_steps_apart(void **state) {
    (void)state;
    struct accuracy acc =
        judge_graph("a f32 [16,16]; b f32 [16,16]", "p[16,16] = matmul(a, b)\ny[16,16] = tanh(p)");
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct sample_errors one = steep(&acc, 0x1p-22, -1, seed), two;
        data(&acc, OUT)[AREA - 1] = 7; /* which no draw explains */
        accuracy_sample(&acc, 0, KP_CLASS_FP32, KP_ALL, seed, &two);
        assert_int_equal(two.found[0].bad, 1);
        near(two.spread.element, one.spread.element);
    }
    accuracy_close(&acc);
}

/* As in test_steps, where that element is the whole output: it is off by less than an element may
 * be. */
static void test_step_alone(void **state) {
    (void)state;
    struct accuracy acc =
        judge_graph("a f32 [1,16]; b f32 [16,1]", "p[1,1] = matmul(a, b)\ny[1,1] = tanh(p)");
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct sample_errors e;
        for (int i = 0; i < SIDE; i++) {
            data(&acc, A)[i] = i > 1 ? 0 : i ? -0x1p40f : 0x1p40f;
            data(&acc, B)[i] = i == 1 ? 1 - 0x1p-22f : 1;
        }
        data(&acc, OUT)[0] = 1 - 3e-6f; /* 20 spreads, where no draw crosses the step */
        accuracy_sample(&acc, 0, KP_CLASS_FP32, KP_ALL, seed, &e);
        if (!judgment_passes(&e.candidate))
            fail_msg("seed %d: %g of the limit", (int)seed, e.candidate.of_limit);
    }
    accuracy_close(&acc);
}

/* More draws are not for a baseline that is meant to be of a lesser class. */
static void test_lesser(void **state) {
    (void)state;
    struct accuracy acc = judge_graph("a f32 [1,16]; b f32 [16,1]", "p[1,1] = matmul(a, b)");
    const struct kp_suspects *lesser = &acc.seen[2];
    struct sample_errors e = sample(&acc, (struct honest){0}, KP_DIST_DECLARED, KP_CLASS_FP32);
    assert_true(judgment_passes(&e.candidate) && !judgment_passes(&e.baseline[1]));
    assert_int_equal(lesser->count, 1);
    assert_int_equal(lesser->item[0].draws, KP_DRAWS);
    accuracy_close(&acc);
}

/* Where there is no candidate, what lies in its place gets no draws of its own. */
static void test_stand_in(void **state) {
    (void)state;
    struct accuracy acc = judge_graph("a f32 [16,16]; b f32 [16,16]", "y[16,16] = matmul(a, b)");
    struct sample_errors e;
    acc.stand_in = true;
    referee_fill(&acc.r, 0, KP_DIST_DECLARED, 5);
    for (int i = 0; i < AREA; i++) data(&acc, OUT)[i] = 7;
    accuracy_sample(&acc, 0, KP_CLASS_FP32, KP_ALL, 5, &e);
    assert_true(judgment_passes(&e.candidate));
    same(e.candidate, e.baseline[0]);
    assert_int_equal(acc.seen[0].count, acc.seen[1].count);
    accuracy_close(&acc);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sample),      cmocka_unit_test(test_baselines),
        cmocka_unit_test(test_spread_size), cmocka_unit_test(test_lost),
        cmocka_unit_test(test_excused),     cmocka_unit_test(test_outside),
        cmocka_unit_test(test_unwritten),   cmocka_unit_test(test_lesser),
        cmocka_unit_test(test_how_much),    cmocka_unit_test(test_rest_overflows),
        cmocka_unit_test(test_steps),       cmocka_unit_test(test_spread_alone),
        cmocka_unit_test(test_step_alone),  cmocka_unit_test(test_others),
        cmocka_unit_test(test_steps_apart), cmocka_unit_test(test_stand_in)};
    char message[1024];
    product = load_graph("a f32 [16,16]; b f32 [16,16]", "y[16,16] = matmul(a, b)", message);
    driver_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
