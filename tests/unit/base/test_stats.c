/* test_stats.c: known values, the coverage of intervals, and odd cases. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/error.h"
#include "base/stats.h"

static void near(double got, double want) {
    if (!(fabs(got - want) <= 1e-12 * fabs(want))) fail_msg("got %.17g, expected %.17g", got, want);
}

static void test_location(void **state) {
    (void)state;
    double one[] = {3}, two[] = {5, 1}, three[] = {9, 1, 2}, eight[] = {8, 1, 7, 2, 1e9, 3, 5, 4};
    near(stat_median(one, 1), 3);
    near(stat_median(two, 2), 3);
    near(stat_median(three, 3), 2);
    near(stat_median(eight, 8), 4.5);
    near(stat_quantile(eight, 8, 0), 1);
    near(stat_quantile(eight, 8, 1), 1e9);
    near(stat_quantile(two, 2, 0.25), 2);
    near(stat_quantile(three, 3, 0.75), 5.5);
    near(stat_interquartile_mean(one, 1), 3);
    near(stat_interquartile_mean(two, 2), 3);
    near(stat_interquartile_mean(three, 3), (0.25 * 1 + 2 + 0.25 * 9) / 1.5);
    near(stat_interquartile_mean(eight, 8), (3 + 4 + 5 + 7) / 4.0);
    near(eight[4], 1e9); /* the arguments are unchanged */
    double powers[] = {0.25, 4, 2, 8};
    near(stat_geomean(powers, 4), 2);
    near(stat_geomean(one, 1), 3);
}

static void test_random(void **state) {
    (void)state;
    uint64_t s = 1234567; /* the published first values of splitmix64 for this seed */
    assert_true(stat_random(&s) == 6457827717110365317u);
    assert_true(stat_random(&s) == 3203168211198807973u);
}

static uint64_t seed;

static double uniform(void) {
    return ((stat_random(&seed) >> 11) + 0.5) * 0x1p-53;
}

static double normal(void) {
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

/* The share of 300 data sets whose interval of a ratio contains the true ratio, 1.  Every runner
 * varies by `within` from round to round; the first also by `between` from placement to
 * placement. */
static double coverage(int placements, int rounds, double between, double within) {
    enum { SETS = 300, MOST = 128 };
    double a[MOST], b[MOST];
    int p[MOST], n = placements * rounds, hits = 0;
    assert_true(n <= MOST);
    for (int set = 0; set < SETS; set++) {
        double shift = 0;
        for (int i = 0; i < n; i++) {
            if (i % rounds == 0) shift = between * normal();
            p[i] = 7 - i / rounds; /* any numbers */
            a[i] = 10 * exp(shift + within * normal());
            b[i] = 10 * exp(within * normal());
        }
        struct kp_interval r = stat_ratio(a, b, p, n, 0, set, 300);
        assert_true(r.low <= r.value && r.value <= r.high && r.low > 0);
        hits += r.low <= 1 && 1 <= r.high;
    }
    return hits / (double)SETS;
}

static void test_coverage(void **state) {
    (void)state;
    seed = 1;
    double c[] = {
        coverage(1, 30, 0, 0.02),      coverage(1, 100, 0, 0.02),    coverage(1, 5, 0, 0.02),
        coverage(5, 20, 0.02, 0.005),  coverage(5, 20, 0, 0.02), /* the last is conservative */
        coverage(10, 10, 0.02, 0.005), coverage(2, 20, 0.02, 0.005),
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++)
        if (!(c[i] >= 0.92)) fail_msg("case %zu: covers %g; expected 0.95", i, c[i]);
    if (!(c[1] <= 0.98)) fail_msg("100 rounds cover %g: the interval is too wide", c[1]);
}

/* With few placements that do not vary inside, the bootstrap interval ends at the outermost
 * ones; Student's t, with the variance that resampling lacks, widens it. */
static void test_stretch(void **state) {
    (void)state;
    const double t[] = {12.7062, 4.3027}, normal = 1.959964;
    for (int m = 2; m <= 3; m++) {
        double x[12];
        int place[12];
        for (int i = 0; i < 12; i++) place[i] = i % m, x[i] = 1 + 0.1 * place[i];
        double factor = sqrt(m / (m - 1.0)) * t[m - 2] / normal,
               middle = stat_interquartile_mean(x, 12);
        struct kp_interval r = stat_single(x, place, 12, 0, 1, 1000);
        near(r.low, middle * pow(1 / middle, factor));
        near(r.high, middle * pow((1 + 0.1 * (m - 1)) / middle, factor));
    }
}

/* Student's t as tables have it, to the four digits that they give. */
static void test_student(void **state) {
    static const struct {
        int freedom;
        double t;
    } table[] = {{1, 12.706}, {2, 4.303},  {3, 3.182},  {4, 2.776},   {5, 2.571},
                 {6, 2.447},  {10, 2.228}, {30, 2.042}, {120, 1.980}, {1000000, 1.960}};
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!(fabs(stat_student(table[i].freedom) - table[i].t) < 0.0015))
            fail_msg("t(%d) is %g", table[i].freedom, stat_student(table[i].freedom));
}

static void test_ratio(void **state) {
    (void)state;
    double num[40], den[40];
    int place[40];
    seed = 2;
    for (int i = 0; i < 40; i++) {
        double clock = 1 + 0.3 * (i % 2); /* shared by both runners of a round */
        num[i] = 30 * clock * (1 + 0.001 * normal());
        den[i] = 20 * clock * (1 + 0.001 * normal());
        place[i] = i / 8;
    }
    struct kp_interval r = stat_ratio(num, den, place, 40, 0, 9, 1000);
    assert_true(fabs(r.value - 1.5) < 0.01 && r.low < 1.5 && 1.5 < r.high);
    assert_true(r.high - r.low < 0.02); /* rounds are paired, so the clock cancels */
    assert_true(r.low > 1);
    assert_false(stat_ratio(den, num, place, 40, 0, 9, 1000).low > 1);
    struct kp_interval same = stat_ratio(num, den, place, 40, 0, 9, 1000);
    assert_true(same.low == r.low && same.high == r.high); /* the seed determines the result */
    struct kp_interval other = stat_ratio(num, den, place, 40, 0, 10, 1000);
    assert_true(other.low != r.low);

    struct kp_interval s = stat_single(num, place, 40, 0, 9, 1000);
    near(s.value, stat_interquartile_mean(num, 40));
    assert_true(s.low < s.value && s.value < s.high);
}

/* Samples without variation leave only the clock's tick. */
static void test_tick(void **state) {
    (void)state;
    double num[20], den[20];
    for (int i = 0; i < 20; i++) num[i] = 8, den[i] = 4;
    struct kp_interval r = stat_ratio(num, den, NULL, 20, 0.5, 1, 100);
    near(r.value, 2);
    near(r.high - r.low, 2 * 0.5 / 4);
    struct kp_interval s = stat_single(num, NULL, 20, 0.5, 1, 100);
    near(s.low, 7.75);
    near(s.high, 8.25);
    s = stat_single(num, NULL, 20, 0, 1, 100);
    near(s.low, 8);
    near(s.high, 8);
    double barely[] = {1.01, 1.01, 1.01}, one[] = {1, 1, 1};
    assert_true(stat_ratio(barely, one, NULL, 3, 0.001, 1, 100).low > 1);
    assert_false(stat_ratio(barely, one, NULL, 3, 0.05, 1, 100).low > 1);
}

static void test_few(void **state) {
    (void)state;
    double num[] = {2, 2.2}, den[] = {1, 1};
    int apart[] = {0, 1};
    struct kp_interval r = stat_ratio(num, den, NULL, 1, 0.01, 1, 100);
    assert_true(r.value == 2 && r.low == 0 && isinf(r.high));
    for (int k = 0; k < 2; k++) {
        r = stat_ratio(num, den, k ? apart : NULL, 2, 0, 1, 1000);
        near(r.value, 2.1);
        assert_true(0 < r.low && r.low < 2 && 2.2 < r.high && isfinite(r.high));
    }
    double fine[] = {1, 2, 3, 4};
    int lopsided[] = {5, 5, 5, -1}; /* placements of unequal size */
    r = stat_single(fine, lopsided, 4, 0, 1, 1000);
    assert_true(r.low < 2.5 && 2.5 < r.high);
}

/* Make one bad call in a child; its exit status says that the call was refused. */
static void refused(int which) {
    double x[] = {1, NAN, 2}, zero[] = {1, 0, 2}, ok[] = {1, 2, 3}, inf[] = {1, INFINITY, 2};
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(1);
        switch (which) {
        case 0: stat_median(x, 3); break;
        case 1: stat_interquartile_mean(inf, 3); break;
        case 2: stat_geomean(zero, 3); break;
        case 3: stat_ratio(ok, zero, NULL, 3, 0, 1, 10); break;
        case 4: stat_ratio(x, ok, NULL, 3, 0, 1, 10); break;
        case 5: stat_single(ok, NULL, 0, 0, 1, 10); break;
        case 6: stat_single(ok, NULL, 3, NAN, 1, 10); break;
        case 7: stat_single(ok, NULL, 3, 0, 1, 0); break;
        case 8: stat_quantile(ok, 3, 1.5); break;
        }
        _exit(0);
    }
    int status;
    assert_true(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != KP_BUG)
        fail_msg("call %d was not refused: status %d", which, status);
}

static void test_refused(void **state) {
    (void)state;
    for (int which = 0; which <= 8; which++) refused(which);
}

/* 1000 resamples of 100 rounds took 1.3 ms; the limit allows for a busy machine. */
static void test_speed(void **state) {
    (void)state;
    double num[100], den[100];
    int place[100];
    seed = 3;
    for (int i = 0; i < 100; i++) num[i] = 1 + uniform(), den[i] = 1 + uniform(), place[i] = i / 20;
    clock_t start = clock();
    for (int i = 0; i < 10; i++) stat_ratio(num, den, place, 100, 0, i, 1000);
    double ms = 1e3 * (clock() - start) / CLOCKS_PER_SEC / 10;
    if (!(ms < 20)) fail_msg("%g ms for one interval; expected under 20", ms);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_location), cmocka_unit_test(test_random),
        cmocka_unit_test(test_coverage), cmocka_unit_test(test_stretch),
        cmocka_unit_test(test_student),  cmocka_unit_test(test_ratio),
        cmocka_unit_test(test_tick),     cmocka_unit_test(test_few),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
