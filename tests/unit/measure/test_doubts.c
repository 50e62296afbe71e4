/* test_doubts.c: what makes a time doubtful: how often a kernel that looks at its data is found,
 * and how rarely an honest one is. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gpu/values.h"
#include "measure/doubts.h"

static void near(double got, double want) {
    if (!(fabs(got - want) <= 1e-12 * fabs(want))) fail_msg("got %.17g, expected %.17g", got, want);
}

/* ---- Control inputs ------------------------------------------------------------------------ */

enum { CELLS = 1000 };
static const double tick_us = 0.03;

/* A time around `us` that is off by a share, normally distributed. */
static double noisy(double us, double share, uint64_t *state) {
    return us * (1 + share * kp_normal(stat_random(state)));
}

/* Of CELLS cells, those that are flagged: each has the samples on control inputs that it needs, on
 * which the candidate is `slower` times slower, and 1 to 3 % of noise. */
static int flagged(double slower, uint64_t state) {
    int found = 0;
    for (int i = 0; i < CELLS; i++) {
        double against[KP_LEAST_CONTROLS], own[KP_LEAST_CONTROLS], ratio;
        double alone[KP_FEW_CONTROLS];
        double share = 0.01 + 0.02 * kp_even(stat_random(&state));
        double off = 0.003 * kp_normal(stat_random(&state)); /* of the declared ratio */
        struct kp_interval declared = {1.25 * (1 + off), 1.25 * (1 + off - 0.006),
                                       1.25 * (1 + off + 0.006)};
        for (int k = 0; k < KP_FEW_CONTROLS; k++) alone[k] = noisy(100 * slower, share, &state);
        if (!control_differs(alone, KP_FEW_CONTROLS, 100)) continue;
        for (int k = 0; k < KP_LEAST_CONTROLS; k++) {
            against[k] = noisy(125, share, &state);
            own[k] = noisy(100 * slower, share, &state);
        }
        found += doubt_control(against, own, KP_LEAST_CONTROLS, tick_us, (uint64_t)i, declared, 100,
                               &ratio);
    }
    return found;
}

/* As many samples as are needed find 1.3x in 95 of 100 cells, slower or faster, and flag an honest
 * kernel whose power differs in less than 1. */
static void test_control_power(void **state) {
    (void)state;
    const struct {
        double slower;
        int least, most;
    } row[] = {{1.3, CELLS * 95 / 100, CELLS},
               {1 / 1.3, CELLS * 95 / 100, CELLS},
               {1, 0, CELLS / 100 - 1},
               {1.05, 0, CELLS / 100 - 1},
               {1 / 1.05, 0, CELLS / 100 - 1}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        int n = flagged(row[i].slower, i + 1);
        if (n < row[i].least || n > row[i].most)
            fail_msg("%.2fx: %d of %d cells are flagged", row[i].slower, n, CELLS);
    }
}

/* One sample that is off by more than 7.5 % is enough. */
static void test_control_differs(void **state) {
    (void)state;
    const struct {
        double us[3];
        int n;
        bool differs;
    } row[] = {{{200, 200, 200}, 0, false}, {{107, 94, 100}, 3, false},
               {{108, 100, 100}, 1, true},  {{100, 100, 108}, 2, false},
               {{100, 100, 108}, 3, true},  {{100, 100 / 1.08, 100}, 3, true}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (control_differs(row[i].us, row[i].n, 100) != row[i].differs) fail_msg("row %zu", i);
    assert_false(control_differs(row[0].us, 3, NAN)); /* before any round */
}

/* Steady samples: the ratio is theirs, and 15 % to either side are the limit. */
static void test_control_share(void **state) {
    (void)state;
    const struct kp_interval declared = {2, 1.99, 2.01}, wide = {2, 1, 4};
    const struct {
        double us;
        bool doubt;
    } row[] = {{100, false}, {114, false}, {116, true}, {100 / 1.14, false}, {100 / 1.16, true}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const double against[] = {200, 200, 200, 200};
        const double own[] = {row[i].us, row[i].us, row[i].us, row[i].us};
        double ratio;
        assert_int_equal(doubt_control(against, own, 4, 1e-3, 1, declared, 100, &ratio),
                         row[i].doubt);
        near(ratio, 200 / row[i].us);
        assert_false(doubt_control(against, own, 4, 1e-3, 1, wide, 100, &ratio));
    }
}

/* Both runners are slower on those inputs: no doubt.  Samples that differ much say little. */
static void test_control_interval(void **state) {
    (void)state;
    const struct kp_interval declared = {2, 1.99, 2.01};
    const double against[] = {200, 200, 200, 200}, own[] = {70, 130, 150, 170};
    const double slow[] = {400, 400, 400, 400}, slower[] = {200, 200, 200, 200};
    double ratio;
    assert_false(doubt_control(slow, slower, 4, 1e-3, 1, declared, 100, &ratio));
    const double usual[] = {100, 100, 100, 100}; /* the baseline alone is slower */
    assert_false(doubt_control(slow, usual, 4, 1e-3, 1, declared, 100, &ratio));
    near(ratio, 4);
    assert_true(doubt_control(slow, usual, 4, 1e-3, 1, declared, 80, &ratio));
    const double both[] = {440, 440, 440, 440}; /* or slower by 10 % more than the candidate */
    assert_false(doubt_control(both, slower, 4, 1e-3, 1, declared, 100, &ratio));
    near(ratio, 2.2);
    assert_false(doubt_control(against, own, 4, 1e-3, 1, declared, 100, &ratio));
}

/* One sample says nothing, nor do none; two do. */
static void test_control_few(void **state) {
    (void)state;
    const struct kp_interval declared = {2, 1.99, 2.01};
    const double against[] = {200, 200}, own[] = {200, 200};
    for (int n = 0; n < 2; n++) {
        double ratio = 1;
        assert_false(doubt_control(against, own, n, 1e-3, 1, declared, 100, &ratio));
        assert_true(isnan(ratio));
    }
    double ratio;
    assert_true(doubt_control(against, own, 2, 1e-3, 1, declared, 100, &ratio));
}

/* ---- The slowest quarter ------------------------------------------------------------------------
 */

enum { ROUNDS = 100 };

/* Samples of 100 us, every `every`th `slower` times slower; 0: none. */
static void samples(double *us, int every, double slower, double share, uint64_t state) {
    for (int i = 0; i < ROUNDS; i++) {
        us[i] = noisy(100, share, &state);
        if (every && i % every == 0) us[i] *= slower;
    }
}

/* A kernel that is slow in every fifth replay is found, in noise as without. */
static void test_slow_every_fifth(void **state) {
    (void)state;
    double own[ROUNDS], against[ROUNDS], share;
    for (uint64_t seed = 0; seed < 100; seed++) {
        double noise = 0.0003 * (double)seed;
        samples(against, 0, 1, noise, seed + 1000);
        samples(own, 5, 1.3, noise, seed);
        assert_true(doubt_slow_quarter(own, against, ROUNDS, &share));
        samples(own, 0, 1, noise, seed);
        assert_false(doubt_slow_quarter(own, against, ROUNDS, &share));
    }
}

/* The share is that of the slowest quarter's mean; 15 % is the limit, and 15 % beyond the
 * baseline's. */
static void test_slow_share(void **state) {
    (void)state;
    const double even[] = {100, 100, 100, 100, 100, 100, 100, 100};
    const double slow[] = {112, 100, 100, 100, 100, 116, 100, 100};   /* 14 % */
    const double slower[] = {100, 100, 118, 100, 100, 116, 100, 100}; /* 17 % */
    const double some[] = {100, 106, 100, 100, 106, 100, 100, 100};   /* 6 % */
    double share;
    assert_false(doubt_slow_quarter(slow, even, 8, &share));
    near(share, 0.14);
    assert_true(doubt_slow_quarter(slower, even, 8, &share));
    near(share, 0.17);
    assert_false(doubt_slow_quarter(slower, some, 8, &share));
    assert_false(doubt_slow_quarter(slower, slower, 8, &share));
    assert_false(doubt_slow_quarter(even, even, 8, &share));
    const double last[] = {100, 100, 100, 100, 120}; /* of five, the slowest two */
    doubt_slow_quarter(last, even, 5, &share);
    near(share, 0.1);
}

/* ---- Clocks
 * --------------------------------------------------------------------------------------- */

/* The host may wait 20 us and 2 % longer, by the medians. */
static void test_clocks(void **state) {
    (void)state;
    const double event[] = {1000, 1, 1000, 1000, 9000}, fine[] = {1039, 1039, 1039, 9000, 9000};
    const double late[] = {1041, 1041, 1041, 1, 9000}, early[] = {900, 900, 900, 900, 900};
    assert_false(doubt_clocks(event, fine, 5));
    assert_true(doubt_clocks(event, late, 5));
    assert_false(doubt_clocks(event, early, 5));
    const double brief[] = {5}, host[] = {25}, later[] = {25.2};
    assert_false(doubt_clocks(brief, host, 1));
    assert_true(doubt_clocks(brief, later, 1));
}

/* ---- Heat ------------------------------------------------------------------------------- */

/* The driver's reasons of heat and supply count, alone or among others. */
static void test_throttle(void **state) {
    static const struct {
        const char *reasons, *why;
    } cases[] = {{"[]", NULL},
                 {"null", NULL},
                 {"[\"power cap\", \"sync boost\", \"application clocks\"]", NULL},
                 {"[\"power cap\", \"thermal\"]", "thermal"},
                 {"[\"hardware thermal\"]", "hardware thermal"},
                 {"[\"hardware slowdown\"]", "hardware slowdown"},
                 {"[3, \"power brake\"]", "power brake"}};
    (void)state;
    assert_null(doubt_throttle(NULL));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cJSON *reasons = cJSON_Parse(cases[i].reasons);
        const char *why = doubt_throttle(reasons);
        if (cases[i].why)
            assert_string_equal(why, cases[i].why);
        else
            assert_null(why);
        cJSON_Delete(reasons);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_control_power), cmocka_unit_test(test_control_differs),
        cmocka_unit_test(test_control_share), cmocka_unit_test(test_control_interval),
        cmocka_unit_test(test_control_few),   cmocka_unit_test(test_slow_every_fifth),
        cmocka_unit_test(test_slow_share),    cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_throttle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
