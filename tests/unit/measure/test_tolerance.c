/* test_tolerance.c: the classes of a task, and how far off an output of each may be. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "measure/tolerance.h"
#include "task_text.h"

/* Fails unless two numbers agree to 12 digits. */
static void near(double got, double want) {
    if (got == want) return; /* infinite */
    if (!(fabs(got - want) <= 1e-12 * fabs(want))) fail_msg("got %.17g, expected %.17g", got, want);
}

static void judged(const struct kp_stray *s, const struct kp_spread *own, struct kp_judgment want) {
    struct kp_judgment j = judge_output(s, own, KP_CLASS_FP32);
    near(j.rms, want.rms);
    near(j.part, want.part);
    near(j.element, want.element);
    near(j.bias, want.bias);
    near(j.of_limit, want.of_limit);
}

static const struct kp_spread no_draws = {.count = 0};

/* ---- Classes --------------------------------------------------------------------------- */

static struct kp_task *task(const char *tensors, const char *graph) {
    char message[1024];
    struct kp_task *t = load_graph(tensors, graph, message);
    if (!t) fail_msg("%s", message);
    return t;
}

/* A task has the classes that its operands and its ops can tell apart, best first. */
static void test_classes(void **state) {
    (void)state;
    const struct {
        const char *tensors, *graph;
        int n;
        enum kp_class class[KP_CLASS_COUNT];
    } row[] = {
        {"x f32 [4]", "y[4] = relu(x)", 1, {KP_CLASS_FP32}},
        {"x f32 [4,4]; y f32 [4,4]",
         "z[4,4] = matmul(x, y)\nr[4,4] = relu(z)",
         3,
         {KP_CLASS_FP32, KP_CLASS_NORMWISE, KP_CLASS_TF32}},
        {"x f16 [4,4]; y f16 [4,4]", "z[4,4] = matmul(x, y)", 1, {KP_CLASS_HALF}},
        {"i i64 [4]; x bf16 [4,2]", "y[] = cross_entropy(x, target=i)", 1, {KP_CLASS_HALF}},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        enum kp_class got[KP_CLASS_COUNT];
        struct kp_task *t = task(row[i].tensors, row[i].graph);
        assert_int_equal(classes_of(t, got), row[i].n);
        for (int k = 0; k < row[i].n; k++) assert_int_equal(got[k], row[i].class[k]);
        task_free(t);
    }
}

/* Each class has a name, by which it is found; another name is that of FP32. */
static void test_names(void **state) {
    (void)state;
    static const char *const names[] = {"fp32", "fp32-normwise", "tf32", "f16"};
    struct kp_task *f16 = task("x f16 [4]", "y[4] = relu(x)");
    struct kp_task *bf16 = task("x bf16 [4]", "y[4] = relu(x)");
    for (int c = 0; c < KP_CLASS_COUNT; c++) {
        assert_string_equal(class_name(f16, (enum kp_class)c), names[c]);
        assert_int_equal(class_find(f16, names[c]), c);
    }
    assert_string_equal(class_name(bf16, KP_CLASS_HALF), "bf16");
    assert_int_equal(class_find(bf16, "bf16"), KP_CLASS_HALF);
    assert_int_equal(class_find(bf16, "tf32"), KP_CLASS_TF32);
    assert_int_equal(class_find(f16, ""), KP_CLASS_FP32);
    assert_int_equal(class_of_math(KP_MATH_FP32), KP_CLASS_FP32);
    assert_int_equal(class_of_math(KP_MATH_TF32), KP_CLASS_TF32);
    assert_int_equal(class_of_math(KP_MATH_HALF), KP_CLASS_HALF);
    task_free(f16);
    task_free(bf16);
}

/* ---- Against the oracle ------------------------------------------------------------------ */

/* An output of which nothing counts is right. */
static void test_nothing(void **state) {
    (void)state;
    const struct kp_stray s = {.first_bad = ~0ull};
    judged(&s, &no_draws, (struct kp_judgment){0});
}

/* The root mean square over all parts; the oracle's own draws widen its limit, and never narrow
 * it. */
static void test_rms(void **state) {
    (void)state;
    struct kp_stray s = {.part_count = {100}, .part_t2 = {400}};
    struct kp_spread own = {.count = 50};
    judged(&s, &no_draws, (struct kp_judgment){.rms = 2, .of_limit = 2.0 / KP_RMS_LIMIT});
    own.t2[1] = 50 * 9, own.t2[2] = 50 * 4;
    judged(&s, &own, (struct kp_judgment){.rms = 2, .of_limit = 2.0 / KP_RMS_LIMIT / 3});
    own.t2[1] = own.t2[2] = 50 * 0.25;
    judged(&s, &own, (struct kp_judgment){.rms = 2, .of_limit = 2.0 / KP_RMS_LIMIT});
    own.t2[KP_DRAWS - 1] = 50 * 4; /* the last draw counts, too */
    judged(&s, &own, (struct kp_judgment){.rms = 2, .of_limit = 1.0 / KP_RMS_LIMIT});
    s.part_count[KP_PARTS - 1] = 300, s.part_t2[KP_PARTS - 1] = 3200; /* 3600 over 400 */
    judged(
        &s, &no_draws,
        (struct kp_judgment){.rms = 3, .part = sqrt(3200 / 300.0), .of_limit = 3.0 / KP_RMS_LIMIT});
}

/* A part may be as far off as that only, whatever the whole is and whatever draws are.  A whole
 * that is one part has no limit but its own. */
static void test_part(void **state) {
    (void)state;
    const double off = 4.0 * KP_PART_LIMIT;
    const struct kp_spread own = {.count = 1, .t2 = {1e6}};
    struct kp_stray s = {.part_count = {0, 1e6, 10}, .part_t2 = {0, 0, 10 * off * off}};
    struct kp_judgment want = {
        .rms = off * sqrt(10 / (1e6 + 10)), .part = off, .of_limit = off / KP_PART_LIMIT};
    judged(&s, &own, want);
    struct kp_stray first = {.part_count = {10, 0, 1e6}, .part_t2 = {10 * off * off}};
    judged(&first, &own, want);
    s.part_count[1] = 0;
    want = (struct kp_judgment){.rms = off, .of_limit = off / KP_RMS_LIMIT};
    judged(&s, &no_draws, want);
}

/* One element has a limit of its own. */
static void test_element(void **state) {
    (void)state;
    const struct kp_stray s = {.part_count = {1000}, .largest = 3.0 * KP_ELEMENT_LIMIT};
    const struct kp_spread own = {.count = 1, .t2 = {1e6}, .bias = {1e6}};
    judged(&s, &own, (struct kp_judgment){.element = 3.0 * KP_ELEMENT_LIMIT, .of_limit = 3});
}

/* The mean counts, of either sign; it may be as large again as the draws' own, and as luck makes
 * of independent errors. */
static void test_bias(void **state) {
    (void)state;
    struct kp_stray s = {.part_count = {100}, .bias = 500};
    struct kp_spread own = {.count = 50, .bias = {0, 20}};
    judged(&s, &no_draws, (struct kp_judgment){.bias = 5, .of_limit = 5.0 / KP_BIAS_LIMIT});
    s.bias = -500;
    judged(&s, &no_draws, (struct kp_judgment){.bias = 5, .of_limit = 5.0 / KP_BIAS_LIMIT});
    own.bias[KP_DRAWS - 1] = -150; /* the worst draw: 3 on average */
    judged(&s, &own, (struct kp_judgment){.bias = 5, .of_limit = 5.0 / (KP_BIAS_LIMIT * 4)});
    s.part_t2[0] = 100; /* a spread each: luck is a tenth of KP_LUCK */
    own = (struct kp_spread){.varied = true};
    judged(&s, &own,
           (struct kp_judgment){
               .rms = 1, .bias = 5, .of_limit = 5 / (KP_BIAS_LIMIT + KP_LUCK / 10.0)});
    own.varied = false; /* one number everywhere, whose error is one error */
    judged(&s, &own,
           (struct kp_judgment){.rms = 1, .bias = 5, .of_limit = 5.0 / (KP_BIAS_LIMIT + KP_LUCK)});
}

/* An infinity that was lost fails, where it counts. */
static void test_lost(void **state) {
    (void)state;
    struct kp_stray s = {.part_count = {100}, .lost = 1};
    struct kp_judgment j = judge_output(&s, &no_draws, KP_CLASS_FP32);
    assert_false(judgment_passes(&j));
    j = judge_output(&s, &no_draws, KP_CLASS_NORMWISE);
    assert_true(judgment_passes(&j));
    s.lost = 0;
    j = judge_output(&s, &no_draws, KP_CLASS_FP32);
    assert_true(judgment_passes(&j));
}

/* NaN, and an integer that differs, fail whatever else there is. */
static void test_not_finite(void **state) {
    (void)state;
    const struct kp_spread own = {.count = 1, .t2 = {1e6}, .bias = {1e6}};
    const double bad[] = {INFINITY, NAN};
    for (int i = 0; i < 2; i++)
        for (int measure = 0; measure < 3; measure++)
            for (int at = 0; at < 2; at++) {
                struct kp_stray s = {.part_count = {100, 100}};
                *(measure == 0 ? &s.part_t2[at] : measure == 1 ? &s.bias : &s.largest) = bad[i];
                struct kp_judgment j = judge_output(&s, &own, KP_CLASS_FP32);
                if (judgment_passes(&j)) fail_msg("%g, measure %d passes", bad[i], measure);
                assert_true(isinf(bad[i]) ? isinf(j.of_limit) : isnan(j.of_limit));
            }
    const struct kp_stray all = {.part_count = {100}, .part_t2 = {INFINITY}, .bias = -INFINITY};
    struct kp_judgment j = judge_output(&all, &own, KP_CLASS_FP32);
    assert_true(isinf(j.of_limit));
}

/* The worse of two, measure by measure; NaN is worst, on either side and in any measure. */
static void test_judgment_worst(void **state) {
    (void)state;
    const struct kp_judgment a = {1, 9, 2, 8, 3}, b = {6, 4, 7, 5, 8};
    const struct kp_judgment worst[] = {judgment_worst(a, b), judgment_worst(b, a)};
    for (int i = 0; i < 2; i++) {
        near(worst[i].rms, 6);
        near(worst[i].part, 9);
        near(worst[i].element, 7);
        near(worst[i].bias, 8);
        near(worst[i].of_limit, 8);
    }
    const struct kp_judgment nan = {NAN, NAN, NAN, NAN, NAN};
    const struct kp_judgment bad[] = {judgment_worst(a, nan), judgment_worst(nan, a)};
    for (int i = 0; i < 2; i++)
        assert_true(isnan(bad[i].rms) && isnan(bad[i].part) && isnan(bad[i].element) &&
                    isnan(bad[i].bias) && isnan(bad[i].of_limit));
}

/* What is exactly at the limit passes. */
static void test_passes(void **state) {
    (void)state;
    struct kp_judgment j = {.of_limit = 1};
    assert_true(judgment_passes(&j));
    const double over[] = {nextafter(1, 2), INFINITY, NAN};
    for (int i = 0; i < 3; i++) {
        j.of_limit = over[i];
        assert_false(judgment_passes(&j));
    }
}

/* ---- Against a baseline ---------------------------------------------------------------------- */

/* The limits, as an error, are those of the spreads; in a timed sample a baseline may be as far
 * off as the candidate. */
static void test_timed(void **state) {
    (void)state;
    const struct kp_spread own = {.sum_s2 = 4, .sum_o2 = 100, .largest = 0.5};
    struct kp_error spread = spread_as_error(&own, KP_F32);
    near(spread.norm, 0.2);
    near(spread.element, 0.5);
    near(tolerance_of(spread).norm, 0.2 * KP_RMS_LIMIT);
    near(tolerance_of(spread).element, 0.5 * KP_ELEMENT_LIMIT);
    near(tolerance_when_timed(spread).norm, KP_TIMED_FACTOR * 0.2 * KP_RMS_LIMIT);
    near(tolerance_when_timed(spread).element, KP_TIMED_FACTOR * 0.5 * KP_ELEMENT_LIMIT);
    near(spread_as_error(&no_draws, KP_F32).norm, 0);
    const struct kp_spread small = {.count = 4,
                                    .sum_s2 = 0x1p-250}; /* that of 4 smallest numbers */
    near(spread_as_error(&small, KP_F32).norm, 1);
    near(spread_as_error(&small, KP_F16).norm, 0x1p-101);
    near(output_square(3, 5, KP_F32), 3);
}

static void test_worst(void **state) {
    (void)state;
    const struct kp_error a = {1, 5}, b = {2, 4}, nan = {NAN, NAN};
    near(error_worst(a, b).norm, 2);
    near(error_worst(b, a).norm, 2);
    near(error_worst(a, b).element, 5);
    near(error_worst(b, a).element, 5);
    assert_true(isnan(error_worst(a, nan).norm) && isnan(error_worst(a, nan).element));
    assert_true(isnan(error_worst(nan, a).norm) && isnan(error_worst(nan, a).element));
}

/* Each measure counts; what is exactly allowed passes; NaN and infinity never do. */
static void test_exceeds(void **state) {
    (void)state;
    const struct kp_error most = {1, 2}, least = {0, 0}, nan = {NAN, NAN};
    assert_null(error_exceeds(&most, &most));
    assert_null(error_exceeds(&least, &most));
    const double over[] = {nextafter(2, 4), INFINITY, NAN};
    for (int i = 0; i < 3; i++) {
        struct kp_error norm = {over[i], 0}, element = {0, over[i]};
        assert_string_equal(error_exceeds(&norm, &most), "norm");
        assert_string_equal(error_exceeds(&element, &most), "element");
    }
    const struct kp_error half = {1, NAN};
    assert_string_equal(error_exceeds(&least, &nan), "element"); /* a tolerance that is none */
    assert_string_equal(error_exceeds(&least, &half), "element");
    assert_string_equal(error_exceeds(&least, &(struct kp_error){NAN, 1}), "norm");
}

/* Noise of a quarter of the output: accuracy against the largest element says nothing there, the
 * other classes do. */
static void test_swamped(void **state) {
    (void)state;
    struct kp_stray s = {.part_t2 = {1e6}, .part_count = {1}, .largest = 1000};
    const double a2 = 16.0 * KP_AMPLIFIED * KP_AMPLIFIED;
    struct kp_spread below = {.count = 1, .sum_s2 = 0.99 / a2, .sum_o2 = 1};
    struct kp_spread above = {.count = 1, .sum_s2 = 1.01 / a2, .sum_o2 = 1};
    for (int c = 0; c < KP_CLASS_COUNT; c++) {
        struct kp_judgment j = judge_output(&s, &below, (enum kp_class)c);
        assert_false(judgment_passes(&j));
        j = judge_output(&s, &above, (enum kp_class)c);
        assert_int_equal(judgment_passes(&j), c == KP_CLASS_NORMWISE);
    }
}

/* An error over a tolerance: none is within any, NaN within no one. */
static void test_judge_error(void **state) {
    (void)state;
    const struct kp_error tolerance = {2, 4}, zero = {0, 0};
    const struct {
        struct kp_error e;
        double want;
    } row[] = {{{0, 0}, 0}, {{1, 1}, 0.5}, {{1, 3}, 0.75}, {{3, 1}, 1.5}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        near(judge_error(&row[i].e, &tolerance).of_limit, row[i].want);
    near(judge_error(&zero, &zero).of_limit, 0);
    for (int k = 0; k < 2; k++) {
        const struct kp_error nan = {k ? 1 : NAN, k ? NAN : 1};
        struct kp_judgment j = judge_error(&nan, &tolerance);
        assert_false(judgment_passes(&j));
    }
}

/* A suspect is an element that fails by itself, or that makes a small output fail. */
static void test_suspect(void **state) {
    (void)state;
    assert_true(suspect_from(1) == 3 && suspect_from(100) == 30 && suspect_from(400) == 60);
    assert_true(suspect_from(500) == 64 && suspect_from(1 << 30) == 64);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_swamped),
                                       cmocka_unit_test(test_judge_error),
                                       cmocka_unit_test(test_suspect),
                                       cmocka_unit_test(test_classes),
                                       cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_nothing),
                                       cmocka_unit_test(test_rms),
                                       cmocka_unit_test(test_part),
                                       cmocka_unit_test(test_element),
                                       cmocka_unit_test(test_bias),
                                       cmocka_unit_test(test_lost),
                                       cmocka_unit_test(test_not_finite),
                                       cmocka_unit_test(test_judgment_worst),
                                       cmocka_unit_test(test_passes),
                                       cmocka_unit_test(test_timed),
                                       cmocka_unit_test(test_worst),
                                       cmocka_unit_test(test_exceeds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
