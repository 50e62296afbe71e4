/* test_stray.c: how far an output strays from the oracle: spreads, single elements, parts, and
 * what is summed over the slices of an output, on the pretend GPU. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "gpu/device.h"
#include "gpu/stray.h"

static void near(double got, double want) {
    if (got == want) return; /* infinite */
    if (!(fabs(got - want) <= 1e-12 * fabs(want))) fail_msg("got %.17g, expected %.17g", got, want);
}

/* ---- One element ----------------------------------------------------------------------------- */

/* How many times larger than honest roundings the oracle's noise is. */
static double amplified(void) {
    double rough[KP_DRAWS];
    for (int d = 0; d < KP_DRAWS; d++) rough[d] = 1;
    return 1 / kp_spread_of(0, rough, kp_limits_of(KP_F32));
}

/* Draws around o in which honest roundings would be off by `by`, up and down in turn. */
static void draws(double *rough, double o, double by) {
    for (int d = 0; d < KP_DRAWS; d++) rough[d] = o + (d % 2 ? -by : by) * amplified();
}

/* The root mean square of what the draws do, of rounding, and of underflow. */
static void test_spread(void **state) {
    (void)state;
    const struct {
        enum kp_dtype type;
        double o, by, spread;
    } row[] = {{KP_F32, 0, 3, 3},
               {KP_F32, 4 * sqrt(3) * 0x1p24, 3, 5},
               {KP_F16, -4 * sqrt(3) * 0x1p11, 3, 5},
               {KP_BF16, 4 * sqrt(3) * 0x1p8, 3, 5},
               {KP_F64, 4 * sqrt(3) * 0x1p53, 0, 4},
               {KP_F32, 0, 0, 0x1p-126},
               {KP_BF16, 0, 0, 0x1p-126},
               {KP_F16, 0, 0, 0x1p-25},
               {KP_F16, 0, 0x1p-25, sqrt(2) * 0x1p-25}};
    double rough[KP_DRAWS];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        draws(rough, row[i].o, row[i].by);
        near(kp_spread_of(row[i].o, rough, kp_limits_of(row[i].type)), row[i].spread);
    }
    draws(rough, 0, 0);
    rough[KP_DRAWS - 1] = amplified() * sqrt(KP_DRAWS); /* each draw counts */
    near(kp_spread_of(0, rough, kp_limits_of(KP_F32)), 1);
    rough[0] = INFINITY;
    assert_false(isfinite(kp_spread_of(0, rough, kp_limits_of(KP_F32))));
}

/* How far y is from o, in spreads; what counts, and what is lost. */
static void test_stray(void **state) {
    (void)state;
    const double inf = INFINITY, most = 0x1.fffffep127;
    const struct {
        double y, o, spread;
        enum kp_dtype type;
        double t;
        bool counted, lost;
    } row[] = {
        {5, 3, 0.5, KP_F32, 4, true, false},
        {1, 3, 0.5, KP_F32, 4, true, false},
        {3, 3, 0, KP_F32, 0, true, false},
        {inf, 3, 0.5, KP_F32, inf, true, false},
        {NAN, 3, 0.5, KP_F32, inf, true, false},
        {7, 3, inf, KP_F32, 0, false, false}, /* the spread is not finite: anything goes */
        {NAN, 3, NAN, KP_F32, 0, false, false},
        {7, NAN, 1, KP_F32, 0, false, false}, /* nor is the oracle */
        {NAN, NAN, 1, KP_F32, 0, false, false},
        {7, inf, 1, KP_F32, 0, false, true}, /* an infinity that was lost */
        {7, -inf, NAN, KP_F32, 0, false, true},
        {inf, inf, 1, KP_F32, 0, false, false},
        {NAN, inf, 1, KP_F32, 0, false, false},
        {inf, most * 2, 1, KP_F32, 0, false, false}, /* an overflow counts as one */
        {-inf, most * -2, 1, KP_F32, 0, false, false},
        {7, most * 2, 1, KP_F32, 0, false, true},
        {most, most * 2, 1, KP_F32, 0, false, false}, /* rounded down to the largest number */
        {most / 2, most * 2, 1, KP_F32, 0, false, true},
        {most, most, 1, KP_F32, 0, true, false},
        {65504, 70000, 1, KP_F16, 0, false, false},
        {65472, 70000, 1, KP_F16, 0, false, false}, /* the next below it */
        {60000, 70000, 1, KP_F16, 0, false, true},
        {70000, 70001, 1, KP_F32, 1, true, false},
        {0x1.fep127, 0x1p128, 1, KP_BF16, 0, false, false},
        {0x1p-24, 0, 0x1p-25, KP_F16, 2, true, false}, /* a subnormal step of f16 */
        {7, 7, 0, KP_I64, 0, true, false},
        {8, 7, 100, KP_I64, inf, true, false}, /* integers are exact */
        {0, 1, inf, KP_BOOL, inf, true, false},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct kp_strayed e =
            kp_stray_of(row[i].y, row[i].o, row[i].spread, kp_limits_of(row[i].type));
        if (e.counted != row[i].counted || e.lost != row[i].lost || e.t != row[i].t)
            fail_msg("%s %g for %g: t %g%s%s", kp_dtype_name(row[i].type), row[i].y, row[i].o, e.t,
                     e.counted ? ", counted" : "", e.lost ? ", lost" : "");
    }
}

/* Parts are contiguous and equal but for the last, at most KP_PARTS, and none is small. */
static void test_parts(void **state) {
    (void)state;
    const struct {
        uint64_t n;
        int parts;
    } row[] = {{1, 1},
               {2 * KP_LEAST_PART - 1, 1},
               {2 * KP_LEAST_PART, 2},
               {5 * KP_LEAST_PART / 2, 2},
               {3 * KP_LEAST_PART, 3},
               {KP_PARTS * KP_LEAST_PART + 1, KP_PARTS},
               {1000000, KP_PARTS}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        uint64_t n = row[i].n, size[KP_PARTS] = {0};
        int before = 0;
        for (uint64_t k = 0; k < n; k++) {
            int p = kp_part_of(k, n);
            assert_true(p == before || p == before + 1);
            assert_in_range(p, 0, row[i].parts - 1);
            size[p]++, before = p;
        }
        assert_int_equal(before, row[i].parts - 1);
        for (int p = 0; p < row[i].parts - 1; p++) assert_int_equal(size[p], size[0]);
        for (int p = 0; p < row[i].parts && n >= KP_LEAST_PART; p++)
            assert_true(size[p] * 10 >= 9 * KP_LEAST_PART || size[p] * 2 >= size[0]);
    }
}

/* Oracles that are 0, on which noise has no effect but where a test says so. */
enum { WIDE = 2000, STEP = WIDE / (2 * KP_AROUND) + 1 };
struct flat {
    double exact[WIDE], rough[KP_DRAWS][WIDE];
    struct kp_draws draws;
};

static struct flat *flat(void) {
    struct flat *x = calloc(1, sizeof *x);
    if (!x) abort();
    x->draws.exact = x->exact;
    for (int d = 0; d < KP_DRAWS; d++) x->draws.rough[d] = x->rough[d];
    return x;
}

/* Element `at` gets this spread. */
static void put(struct flat *x, int at, double spread) {
    double rough[KP_DRAWS];
    draws(rough, 0, spread);
    for (int d = 0; d < KP_DRAWS; d++) x->rough[d][at] = rough[d];
}

static double around(const struct flat *x, int i, int count) {
    return kp_spread_around(&x->draws, (uint64_t)i, (uint64_t)count, kp_limits_of(KP_F32));
}

/* The spread around an element: of those near it that noise has an effect on, */
static void test_near(void **state) {
    (void)state;
    const int at = 125 * STEP + 1 + KP_AROUND; /* the first near it is none of those all over */
    struct flat *x = flat();
    near(around(x, at, WIDE), 0);
    put(x, at - KP_AROUND, 3);
    near(around(x, at, WIDE), 3);
    near(around(x, at + 1, WIDE), 0);
    put(x, at + 1, 4);
    near(around(x, at, WIDE), sqrt(12.5));
    put(x, at + 2, INFINITY);
    near(around(x, at, WIDE), sqrt(12.5));
    put(x, 1, 7); /* the first elements have fewer before them */
    for (int i = 0; i <= KP_AROUND + 1; i++) near(around(x, i, WIDE), 7);
    near(around(x, KP_AROUND + 2, WIDE), 0);
    put(x, 2 * KP_AROUND - 1, 1);
    near(around(x, 0, WIDE), 5);
    free(x);
}

/* and of some all over the slice, the larger; nothing beyond the slice. */
static void test_all_over(void **state) {
    (void)state;
    const int at = 60 * STEP + 1;
    struct flat *x = flat();
    put(x, at + 2 * KP_AROUND - 1, 3); /* not near it */
    near(around(x, at, WIDE), 3);
    put(x, at + 2 * KP_AROUND, 9); /* nor among those */
    near(around(x, at, WIDE), 3);
    put(x, at + 1, 5); /* near it, not among those */
    near(around(x, at, WIDE), 5);
    for (int k = at - KP_AROUND; k < at + KP_AROUND; k++) put(x, k, 5);
    assert_true(around(x, at, WIDE) > 4.9);
    put(x, WIDE - STEP, 1e9); /* behind a slice that ends before it */
    near(around(x, WIDE - 2 * STEP, WIDE - STEP), around(x, WIDE - 2 * STEP - 1, WIDE - STEP));
    for (int d = 0; d < KP_DRAWS; d++) x->rough[d][at] = 0;
    x->rough[KP_DRAWS - 1][at] = amplified(); /* one draw is enough */
    double o, rough[KP_DRAWS];
    assert_true(kp_draws_at(&x->draws, (uint64_t)at, &o, rough));
    assert_false(kp_draws_at(&x->draws, (uint64_t)(WIDE - 1), &o, rough));
    free(x);
}

/* An element on which noise has no effect is judged by the spread around it, if it is off by its
 * own; one with an effect, an integer and one that is not off by their own. */
static void test_judged(void **state) {
    (void)state;
    const int at = 60 * STEP + 1;
    struct flat *x = flat();
    const struct kp_type_limits f32 = kp_limits_of(KP_F32), whole = kp_limits_of(KP_I64);
    put(x, at + 1, 3);
    struct kp_judged j = kp_judged_at(6, &x->draws, (uint64_t)at, WIDE, f32, 10);
    near(j.e.t, 2);
    assert_true(j.spread < 1e-30 && j.o == 0);
    near(kp_judged_at(6, &x->draws, (uint64_t)at, WIDE, f32, INFINITY).e.t, 6 / j.spread);
    assert_true(isinf(kp_judged_at(6, &x->draws, (uint64_t)at, WIDE, whole, 10).e.t));
    put(x, at, 1e-3);
    near(kp_judged_at(6, &x->draws, (uint64_t)at, WIDE, f32, 10).e.t, 6000);
    free(x);
}

/* ---- An output in slices
 * -------------------------------------------------------------------------- */

enum { COUNT = 4 * KP_LEAST_PART, CUT = 1000 };
static const uint32_t poison = 0x7b327b11;

struct output { /* and its oracle, whose draws are off by half, away from 0 and towards it in turn
                 */
    float y[COUNT];
    double exact[COUNT], rough[KP_DRAWS][COUNT];
};

/* An output that is right: 1, -2, 3, -1, ... */
static struct output *right(void) {
    struct output *x = malloc(sizeof *x);
    if (!x) abort();
    for (int i = 0; i < COUNT; i++) {
        double o = (1 + i % 3) * (i % 2 ? -1 : 1), rough[KP_DRAWS];
        x->y[i] = (float)(x->exact[i] = o);
        draws(rough, o, o < 0 ? -0.5 : 0.5);
        for (int d = 0; d < KP_DRAWS; d++) x->rough[d][i] = rough[d];
    }
    return x;
}

/* Compare it in two slices. */
static void compare(const struct output *x, bool lost, struct kp_stray *s, struct kp_spread *own) {
    const struct kp_stray_rule rule = {.limit = 10, .lost = lost, .rms = 2, .poison = poison};
    device_stray_reset(s, NULL);
    if (own) device_spread_reset(own, NULL);
    for (int at = 0; at < COUNT; at = at ? COUNT : CUT) {
        int n = at ? COUNT - CUT : CUT;
        struct kp_draws values = {.exact = x->exact + at};
        for (int d = 0; d < KP_DRAWS; d++) values.rough[d] = x->rough[d] + at;
        device_stray(x->y + at, KP_F32, &values, at, n, COUNT, &rule, s, own, NULL);
    }
}

/* What is right does not stray; the draws do, by a spread each. */
static void test_right(void **state) {
    (void)state;
    struct output *x = right();
    struct kp_stray s;
    struct kp_spread own;
    compare(x, true, &s, &own);
    for (int p = 0; p < KP_PARTS; p++) {
        assert_int_equal(s.part_count[p], p < 4 ? KP_LEAST_PART : 0);
        assert_true(s.part_t2[p] == 0);
    }
    assert_true(s.bias == 0 && s.largest == 0 && s.bad == 0 && s.first_bad == ~0ull);
    assert_true(s.lost == 0 && s.infinite == 0 && s.unwritten == 0);
    assert_int_equal(own.count, COUNT);
    for (int d = 0; d < KP_DRAWS; d++) {
        near(own.t2[d], COUNT);
        near(own.bias[d], d % 2 ? -COUNT : COUNT);
    }
    near(own.sum_s2, COUNT * 0.25);
    near(own.largest, 0.5 / 3); /* where |o| is 1 */
    double o2 = 0;
    for (int i = 0; i < COUNT; i++) o2 += x->exact[i] * x->exact[i];
    near(own.sum_o2, o2);
    compare(x, true, &s, NULL);
    free(x);
}

/* Errors add up by parts; those towards 0 are negative. */
static void test_errors(void **state) {
    (void)state;
    struct output *x = right();
    struct kp_stray s;
    x->y[10] *= 1.5f, x->y[11] *= 1.5f; /* 2 and -3, by half: by 1 and 1.5 spreads of 0.5 */
    x->y[1500] = 0;                     /* o is 1: 2 spreads towards 0 */
    compare(x, true, &s, NULL);
    double ten = fabs(x->exact[10]), eleven = fabs(x->exact[11]), lost = fabs(x->exact[1500]) * 2;
    near(s.part_t2[0], ten * ten + eleven * eleven);
    near(s.part_t2[1], lost * lost);
    near(s.bias, ten + eleven - lost);
    near(s.largest, fmax(fmax(ten, eleven), lost));
    assert_int_equal(s.bad, 0);
    free(x);
}

/* The first bad element, its index in the whole output, and how many there are; which still hold
 * poison. */
static void test_bad(void **state) {
    (void)state;
    struct output *x = right();
    struct kp_stray s;
    x->y[3000] = NAN;
    x->y[2000] = (float)x->exact[2000] + 6; /* 12 spreads */
    x->y[2001] = (float)x->exact[2001] + 4; /* 8 */
    memcpy(&x->y[3500], &poison, 4);
    compare(x, true, &s, NULL);
    assert_int_equal(s.bad, 3);
    assert_int_equal(s.first_bad, 2000);
    near(s.first_expected, x->exact[2000]);
    near(s.first_found, x->exact[2000] + 6);
    assert_int_equal(s.unwritten, 1);
    assert_int_equal(s.infinite, 1);
    assert_true(isinf(s.largest) && isinf(s.part_t2[2]));
    free(x);
}

/* An element on which noise has no effect may be off as its neighbours may, and no more. */
static void test_flat(void **state) {
    (void)state;
    const struct {
        float y;
        int bad;
    } row[] = {{0, 0}, {4.5f, 0}, {-4.5f, 0}, {5.5f, 1}, {-5.5f, 1}, {INFINITY, 1}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct output *x = right();
        struct kp_stray s;
        x->exact[3000] = 0, x->y[3000] = row[i].y;
        for (int d = 0; d < KP_DRAWS; d++) x->rough[d][3000] = 0;
        compare(x, true, &s, NULL);
        assert_int_equal(s.bad, row[i].bad);
        if (isfinite(row[i].y) && fabs(s.largest - 2 * fabs(row[i].y)) > 0.01)
            fail_msg("%g strays by %g", row[i].y, s.largest);
        x->rough[0][3000] = 1e-9; /* it has a spread of its own */
        compare(x, true, &s, NULL);
        assert_int_equal(s.bad, row[i].y != 0);
        free(x);
    }
}

/* Where the oracle is infinite only an infinity counts that was lost, as far as the rule says so.
 */
static void test_lost(void **state) {
    (void)state;
    for (int counts = 0; counts < 2; counts++) {
        struct output *x = right();
        struct kp_stray s;
        struct kp_spread own;
        x->exact[5] = INFINITY;                      /* y is finite */
        x->exact[6] = -INFINITY, x->y[6] = NAN;      /* y is not */
        x->rough[3][7] = INFINITY, x->y[7] = -12345; /* the spread is infinite */
        compare(x, counts, &s, &own);
        assert_int_equal(s.lost, 1);
        assert_int_equal(s.bad, counts);
        assert_true(s.first_bad == (counts ? 5 : ~0ull));
        assert_int_equal(s.infinite, 0);
        assert_int_equal(s.part_count[0], KP_LEAST_PART - 3);
        assert_int_equal(own.count, COUNT - 3);
        assert_true(isfinite(own.sum_s2) && isfinite(own.sum_o2) && isfinite(own.largest));
        free(x);
    }
}

/* Integers are right or wrong; they have no spreads. */
static void test_integers(void **state) {
    (void)state;
    const struct kp_stray_rule rule = {.limit = 10, .lost = true, .rms = 2, .poison = poison};
    const int64_t y[] = {1, 2, 4};
    const double exact[] = {1, 2, 3};
    struct kp_draws values = {.exact = exact};
    struct kp_stray s;
    struct kp_spread own;
    for (int d = 0; d < KP_DRAWS; d++) values.rough[d] = exact;
    device_stray_reset(&s, NULL);
    device_spread_reset(&own, NULL);
    device_stray(y, KP_I64, &values, 0, 3, 3, &rule, &s, &own, NULL);
    assert_int_equal(s.bad, 1);
    assert_int_equal(s.first_bad, 2);
    assert_true(isinf(s.largest));
    assert_int_equal(s.part_count[0], 3);
    assert_int_equal(own.count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spread),   cmocka_unit_test(test_stray),
        cmocka_unit_test(test_parts),    cmocka_unit_test(test_right),
        cmocka_unit_test(test_errors),   cmocka_unit_test(test_bad),
        cmocka_unit_test(test_lost),     cmocka_unit_test(test_near),
        cmocka_unit_test(test_all_over), cmocka_unit_test(test_judged),
        cmocka_unit_test(test_flat),     cmocka_unit_test(test_integers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
