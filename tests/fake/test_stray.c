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
#include "measure/accuracy.h"

static void near(double got, double want) {
    if (got == want) return; /* infinite */
    if (!(fabs(got - want) <= 1e-7 * fabs(want))) fail_msg("got %.17g, expected %.17g", got, want);
}

/* ---- One element ----------------------------------------------------------------------------- */

enum { RMS = 1000 }; /* of outputs: noise does not swamp them */

/* How many times larger than honest roundings the oracle's noise is. */
static double amplified(void) {
    return 1 / kp_spread_of(0, 7, 7, RMS, kp_limits_of(KP_F32));
}

/* The spread of an element from KP_DRAWS draws. */
static double spread_of(double o, const double *rough, enum kp_dtype type) {
    return kp_spread_of(o, kp_sum_of_draws(o, rough), KP_DRAWS, RMS, kp_limits_of(type));
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
        near(spread_of(row[i].o, rough, row[i].type), row[i].spread);
    }
    draws(rough, 0, 0);
    rough[KP_DRAWS - 1] = amplified() * sqrt(KP_DRAWS); /* each draw counts */
    near(spread_of(0, rough, KP_F32), 1);
    rough[0] = INFINITY;
    assert_false(isfinite(spread_of(0, rough, KP_F32)));
}

/* Where noise is a quarter of the element, and of the output, it is not divided. */
static void test_swamped(void **state) {
    (void)state;
    const struct {
        double o, rms, spread;
    } row[] = {{0, 0, 4},     {15.9, 1, 4}, {-15.9, 1, 4}, {16.1, 1, 1},
               {-16.1, 1, 1}, {1, 15.9, 4}, {1, 16.1, 1},  {12, 12, 4}};
    double rough[KP_DRAWS];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        draws(rough, row[i].o, 1);
        double s2 = kp_sum_of_draws(row[i].o, rough);
        near(kp_spread_of(row[i].o, s2, KP_DRAWS, row[i].rms, kp_limits_of(KP_F64)), row[i].spread);
    }
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
        {most / 2, most, most / 100, KP_F32, 50, true, false},
        {most * 0.5, most * 1.13, most / 100, KP_F32, 0, false, false}, /* as near as it can be */
        {most * -0.5, most * -1.13, most / 100, KP_F32, 0, false, false},
        {most * 0.5, most * 1.15, most / 100, KP_F32, 0, false, true},
        {most * -0.5, most * 1.13, most / 100, KP_F32, 0, false, true},
        {7, inf, inf, KP_F32, 0, false, true},
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

/* How far y is from a baseline's b: what is not finite, by the same rule. */
static void test_apart(void **state) {
    (void)state;
    const double inf = INFINITY, most = 0x1.fffffep127;
    const struct {
        double y, b, rms;
        enum kp_dtype type;
        double t, unlost; /* where a lost infinity is bad, and where it is not */
    } row[] = {{5, -3, 1, KP_F32, 2, 2},      {3, 3, 0, KP_F32, 0, 0},
               {inf, 3, 1, KP_F32, inf, inf}, {NAN, 3, 1, KP_F32, inf, inf},
               {7, NAN, 1, KP_F32, 0, 0},     {NAN, NAN, 1, KP_F32, 0, 0},
               {7, inf, 1, KP_F32, inf, 0},   {inf, inf, 1, KP_F32, 0, 0},
               {-inf, inf, 1, KP_F32, 0, 0},  {NAN, -inf, 1, KP_F32, 0, 0},
               {most, inf, 1, KP_F32, 0, 0},  {60000, inf, 1, KP_F16, inf, 0},
               {7, 7, 0, KP_I64, 0, 0},       {1, 0, 0, KP_I64, inf, inf}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int lost = 0; lost < 2; lost++) {
            const struct kp_stray_rule rule = {.lost = lost, .rms = row[i].rms};
            double t = kp_apart(row[i].y, row[i].b, &rule, kp_limits_of(row[i].type));
            if (t != (lost ? row[i].t : row[i].unlost))
                fail_msg("%g for %g: t %g", row[i].y, row[i].b, t);
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

/* ---- An output in slices -------------------------------------------------------------------- */

enum { COUNT = 4 * KP_LEAST_PART, CUT = 1000 };
static const uint32_t poison = 0x7b327b11;

struct output { /* and its oracle, whose draws are off by half, away from 0 and towards it */
    float y[COUNT];
    double exact[COUNT], rough[KP_DRAWS][COUNT];
};

/* An output that is right: 1024, -1025, 1026, -1024, ...  Noise is less than a sixteenth of it. */
static struct output *right(void) {
    struct output *x = malloc(sizeof *x);
    if (!x) abort();
    for (int i = 0; i < COUNT; i++) {
        double o = (1024 + i % 3) * (i % 2 ? -1 : 1), rough[KP_DRAWS];
        x->y[i] = (float)(x->exact[i] = o);
        draws(rough, o, o < 0 ? -0.5 : 0.5);
        for (int d = 0; d < KP_DRAWS; d++) x->rough[d][i] = rough[d];
    }
    return x;
}

/* One of its two slices; returns how many elements. */
static int slice(const struct output *x, int at, struct kp_draws *values) {
    *values = (struct kp_draws){.exact = x->exact + at};
    for (int d = 0; d < KP_DRAWS; d++) values->rough[d] = x->rough[d] + at;
    return at ? COUNT - CUT : CUT;
}

/* Compare it in two slices; the suspects are then in `suspects`. */
static struct kp_suspects suspects;
static void compare(const struct output *x, bool lost, struct kp_stray *s, struct kp_spread *own) {
    const struct kp_stray_rule rule = {.limit = 10, .lost = lost, .rms = RMS, .poison = poison};
    device_stray_reset(s, &suspects, NULL);
    if (own) device_spread_reset(own, NULL);
    for (int at = 0; at < COUNT; at = at ? COUNT : CUT) {
        struct kp_draws values;
        int n = slice(x, at, &values);
        device_stray(x->y + at, KP_F32, &values, at, n, COUNT, &rule, s, &suspects, own, NULL);
    }
}

/* Give the suspects the output's draws once more. */
static void again(const struct output *x) {
    for (int at = 0; at < COUNT; at = at ? COUNT : CUT) {
        struct kp_draws values;
        int n = slice(x, at, &values);
        device_redraw(&values, at, n, &suspects, NULL);
    }
}

/* Judge the suspects. */
static void settle(struct kp_stray *s) {
    for (size_t k = 0; k < suspects.count && k < KP_MOST_SUSPECTS; k++)
        kp_settle(s, &suspects.item[k], RMS, COUNT, kp_limits_of(KP_F32), 10);
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
    near(own.largest, 0.5 / (RMS + 1024)); /* where |o| is 1024 */
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
    x->y[10] += 1, x->y[11] -= 1.5f; /* spreads of 0.5, away from 0 */
    x->y[1500] -= 2;                 /* towards it */
    compare(x, true, &s, NULL);
    double ten = 2, eleven = 3, lost = 4;
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
    assert_int_equal(suspects.count, 3);
    near(s.largest, 8);
    assert_true(s.bad == 0 && s.part_count[2] == KP_LEAST_PART - 1);
    settle(&s);
    for (int p = 0; p < 4; p++) assert_int_equal(s.part_count[p], KP_LEAST_PART);
    assert_int_equal(s.bad, 3);
    assert_int_equal(s.first_bad, 2000);
    near(s.first_expected, x->exact[2000]);
    near(s.first_found, x->exact[2000] + 6);
    assert_int_equal(s.unwritten, 1);
    assert_int_equal(s.infinite, 1);
    assert_true(isinf(s.largest) && isinf(s.part_t2[2]));
    free(x);
}

/* A suspect gets more draws: one that they carry as far is right, one that they do not is bad. */
static void test_redraw(void **state) {
    (void)state;
    struct output *x = right();
    struct kp_stray s;
    x->y[400] = (float)x->exact[400] + 8; /* 16 spreads */
    x->y[3000] = (float)x->exact[3000] + 8;
    compare(x, true, &s, NULL);
    assert_int_equal(suspects.count, 2);
    struct kp_stray before = s;
    again(x);
    settle(&s);
    assert_int_equal(s.bad, 2);
    near(s.largest, 16);
    near(s.part_t2[2], 256); /* 3000 is in the third part */
    near(s.bias, 32);
    s = before;
    x->rough[2][400] = x->exact[400] + 8 * amplified(); /* one draw of eight, and 64 / 16 of that */
    again(x);
    settle(&s);
    assert_int_equal(s.bad, 1);
    assert_int_equal(s.first_bad, 3000);
    near(s.part_t2[0], 64 / ((23 * 0.25 + 64) / 24));
    s = before;
    x->rough[7][3000] = -INFINITY; /* a draw overflows: anything may stand */
    again(x);
    settle(&s);
    assert_int_equal(s.bad, 0);
    assert_int_equal(s.part_count[2], KP_LEAST_PART - 1);
    free(x);
}

/* Where some draws leave an element alone and one takes it away, it may be NaN, and nothing else
 * that is not near. */
static void test_jump(void **state) {
    (void)state;
    const struct {
        double least, most;
        float y;
        bool more, bad; /* the draws that show it come later */
    } row[] = {{1e-9, 8, NAN, false, false},     {1e-9, 8, NAN, true, false},
               {1e-9, 8, INFINITY, false, true}, {1e-9, 8, 1000, false, true},
               {0.02, 8, NAN, false, true},      {1e-9, 1e-6, NAN, false, true},
               {1e-9, 2e-3, NAN, false, false},  {1e-9, 0.9e-3, NAN, false, true}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct output *x = right();
        struct kp_stray s;
        x->exact[402] = 1;
        x->y[402] = row[i].y;
        if (row[i].more) compare(x, true, &s, NULL);
        for (int d = 0; d < KP_DRAWS; d++)
            x->rough[d][402] = x->exact[402] - (d == 5 ? row[i].most : row[i].least);
        if (row[i].more)
            again(x);
        else
            compare(x, true, &s, NULL);
        assert_int_equal(suspects.count, 1);
        settle(&s);
        if (s.bad != row[i].bad) fail_msg("row %zu: %llu bad", i, s.bad);
        assert_int_equal(s.part_count[0], KP_LEAST_PART - !row[i].bad);
        assert_int_equal(s.infinite, row[i].bad && !isfinite(row[i].y));
        free(x);
    }
}

/* Where noise is a sixteenth of an element, an honest error may do sixteen times as much. */
static void test_steps(void **state) {
    (void)state;
    const struct {
        double o, noise, off; /* noise: of the draws that come after the first */
        bool bad;
    } row[] = {{1, 0.07, 2.4, false},
               {-1, 0.07, 2.4, false},
               {1, 0.07, 2.8, true},
               {1, 0.06, 0.17, true},
               {1, 0.05, 0.17, true}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct output *x = right();
        struct kp_stray s;
        x->exact[402] = row[i].o;
        x->y[402] = (float)(row[i].o + row[i].off);
        for (int d = 0; d < KP_DRAWS; d++) x->rough[d][402] = row[i].o + 0.06;
        compare(x, true, &s, NULL);
        for (int d = 0; d < KP_DRAWS; d++) x->rough[d][402] = row[i].o + row[i].noise;
        again(x);
        settle(&s);
        if (s.bad != row[i].bad) fail_msg("row %zu: %llu bad", i, s.bad);
        free(x);
    }
}

/* An output is one number if every slice is, within a spread. */
static void test_varied(void **state) {
    (void)state;
    struct output *x = right();
    struct kp_stray s;
    struct kp_spread own;
    compare(x, true, &s, &own);
    assert_true(own.varied);
    for (int i = 0; i < COUNT; i++) {
        x->exact[i] = (i < CUT ? 2 : 3) + (i % 2 ? 0.49 : 0);
        for (int d = 0; d < KP_DRAWS; d++) x->rough[d][i] = x->exact[i] + (d % 2 ? -2 : 2);
    }
    compare(x, true, &s, &own);
    assert_false(own.varied);
    x->exact[COUNT - 1] = 2;
    compare(x, true, &s, &own);
    assert_true(own.varied);
    free(x);
}

/* Where there are too many, the rest counts at once: as many get more draws as coins may leave. */
static void test_many(void **state) {
    (void)state;
    enum { MOST = KP_JUDGED_ELEMENTS >> 9, ALL = MOST + 3 };
    struct output *x = right();
    struct kp_stray s;
    struct kp_draws values;
    const struct kp_stray_rule rule = {.limit = 10, .lost = true, .rms = RMS, .poison = poison};
    for (int i = 0; i < COUNT; i++) x->y[i] = 100;
    slice(x, 0, &values);
    device_stray_reset(&s, &suspects, NULL);
    for (int at = 0; at < ALL; at += COUNT)
        device_stray(x->y, KP_F32, &values, at, ALL - at < COUNT ? ALL - at : COUNT, ALL, &rule, &s,
                     &suspects, NULL, NULL);
    assert_true(suspects.count == ALL && s.bad == 3 && s.part_count[kp_part_of(MOST, ALL)] == 3);
    free(x);
}

/* Where the oracle is infinite only a lost infinity counts, as far as the rule says so. */
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
    const struct kp_stray_rule rule = {.limit = 10, .lost = true, .rms = RMS, .poison = poison};
    const int64_t y[] = {1, 2, 4};
    const double exact[] = {1, 2, 3};
    struct kp_draws values = {.exact = exact};
    struct kp_stray s;
    struct kp_spread own;
    for (int d = 0; d < KP_DRAWS; d++) values.rough[d] = exact;
    device_stray_reset(&s, &suspects, NULL);
    device_spread_reset(&own, NULL);
    device_stray(y, KP_I64, &values, 0, 3, 3, &rule, &s, &suspects, &own, NULL);
    assert_int_equal(suspects.count, 0);
    assert_int_equal(s.bad, 1);
    assert_int_equal(s.first_bad, 2);
    assert_true(isinf(s.largest));
    assert_int_equal(s.part_count[0], 3);
    assert_int_equal(own.count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spread),  cmocka_unit_test(test_stray),
        cmocka_unit_test(test_apart),   cmocka_unit_test(test_parts),
        cmocka_unit_test(test_right),   cmocka_unit_test(test_errors),
        cmocka_unit_test(test_bad),     cmocka_unit_test(test_lost),
        cmocka_unit_test(test_redraw),  cmocka_unit_test(test_many),
        cmocka_unit_test(test_swamped), cmocka_unit_test(test_jump),
        cmocka_unit_test(test_steps),   cmocka_unit_test(test_varied),
        cmocka_unit_test(test_integers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
