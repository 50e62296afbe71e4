/* test_tolerance.c: how far off a kernel of each class may be, what is worst, what exceeds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "measure/tolerance.h"

/* Fails unless two numbers agree to 12 digits. */
static void near(double got, double want) {
    if (!(fabs(got - want) <= 1e-12 * fabs(want))) fail_msg("got %.17g, expected %.17g", got, want);
}

static void error_is(struct kp_error e, double norm, double element, double mean) {
    near(e.norm, norm);
    near(e.element, element);
    near(e.mean, mean);
}

enum { ENOUGH = 10000 }; /* elements, so that luck explains little */

/* A task of `n` outputs with these types and counts. */
static struct kp_task outputs(struct kp_value *values, int n, const enum kp_dtype *type,
                              const int64_t *count) {
    struct kp_task t = {.nvalues = n, .values = values, .noutputs = n};
    for (int k = 0; k < n; k++) {
        values[k] = (struct kp_value){.dtype = type[k], .shape = {1, {count[k]}}};
        t.outputs[k] = k;
    }
    return t;
}

/* Four times the baseline's error, where that is more than rounding costs. */
static void test_factor(void **state) {
    (void)state;
    struct kp_value v;
    struct kp_task t = outputs(&v, 1, (const enum kp_dtype[]){KP_F32}, (const int64_t[]){ENOUGH});
    struct kp_error b = {1e-4, 3e-4, 2e-5};
    error_is(tolerance_of_class(&t, &b), 4e-4, 12e-4, 8e-5);
}

/* What rounding the result costs is always allowed: two units in the last place, four for one
 * element.  A baseline whose error is NaN allows no more. */
static void test_rounding(void **state) {
    (void)state;
    const struct {
        enum kp_dtype type;
        double unit;
    } row[] = {{KP_F32, 0x1p-23}, {KP_F16, 0x1p-10}, {KP_BF16, 0x1p-7}, {KP_F64, 0}, {KP_I64, 0}};
    const struct kp_error none = {0, 0, 0}, nan = {NAN, NAN, NAN};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct kp_value v;
        struct kp_task t = outputs(&v, 1, &row[i].type, (const int64_t[]){ENOUGH});
        double u = row[i].unit;
        error_is(tolerance_of_class(&t, &none), 2 * u, 4 * u, 2 * u);
        error_is(tolerance_of_class(&t, &nan), 2 * u, 4 * u, 2 * u);
    }
}

/* The coarsest output decides, wherever it stands. */
static void test_coarsest(void **state) {
    (void)state;
    const enum kp_dtype order[2][2] = {{KP_F16, KP_F32}, {KP_F32, KP_F16}};
    const struct kp_error none = {0, 0, 0};
    for (int i = 0; i < 2; i++) {
        struct kp_value v[2];
        struct kp_task t = outputs(v, 2, order[i], (const int64_t[]){ENOUGH, ENOUGH});
        error_is(tolerance_of_class(&t, &none), 0x1p-9, 0x1p-8, 0x1p-9);
    }
}

/* A baseline's mean error may be small by luck: as much is allowed as the smallest output
 * explains. */
static void test_luck(void **state) {
    (void)state;
    struct kp_value v[2];
    struct kp_task t =
        outputs(v, 2, (const enum kp_dtype[]){KP_F32, KP_F32}, (const int64_t[]){100, 25});
    struct kp_error b = {1e-3, 1e-3, 0};
    error_is(tolerance_of_class(&t, &b), 4e-3, 4e-3, 4e-3 / 5);
    b.mean = 1e-3;
    error_is(tolerance_of_class(&t, &b), 4e-3, 4e-3, 4e-3);
}

/* A timed output may be off by twice both errors; the norm bounds the mean, too. */
static void test_timed(void **state) {
    (void)state;
    struct kp_error allowed = {1, 10, 1000}, reference = {2, 20, 2000};
    error_is(tolerance_when_timed(allowed, reference), 6, 60, 6);
    error_is(tolerance_to_oracle(allowed), 2, 20, 2);
}

/* The worse of two, measure by measure; NaN is worst, on either side and in any measure. */
static void test_worst(void **state) {
    (void)state;
    struct kp_error a = {1, 5, 3}, b = {2, 4, 6};
    error_is(error_worst(a, b), 2, 5, 6);
    error_is(error_worst(b, a), 2, 5, 6);
    for (int k = 0; k < 3; k++) {
        struct kp_error bad = {k == 0 ? NAN : 0, k == 1 ? NAN : 0, k == 2 ? NAN : 0};
        struct kp_error one = error_worst(a, bad), other = error_worst(bad, a);
        assert_true(isnan(k == 0 ? one.norm : k == 1 ? one.element : one.mean));
        assert_true(isnan(k == 0 ? other.norm : k == 1 ? other.element : other.mean));
    }
    struct kp_error both = error_worst((struct kp_error){NAN, 0, 1}, (struct kp_error){0, NAN, 2});
    assert_true(isnan(both.norm) && isnan(both.element)); /* either NaN stays */
    near(both.mean, 2);
}

/* Each measure counts; what is exactly allowed passes; NaN and infinity never do. */
static void test_exceeds(void **state) {
    (void)state;
    const struct kp_error most = {1, 2, 3}, least = {0, 0, 0}, nan = {NAN, NAN, NAN};
    assert_null(error_exceeds(&most, &most));
    assert_null(error_exceeds(&least, &most));
    const double over[] = {nextafter(3, 4), INFINITY, NAN};
    for (int i = 0; i < 3; i++) {
        struct kp_error norm = {over[i], 0, 0}, element = {0, over[i], 0}, mean = {0, 0, over[i]};
        assert_string_equal(error_exceeds(&norm, &most), "norm");
        assert_string_equal(error_exceeds(&element, &most), "element");
        assert_string_equal(error_exceeds(&mean, &most), "mean");
    }
    assert_string_equal(error_exceeds(&least, &nan), "element"); /* a tolerance that is none */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_factor),   cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_coarsest), cmocka_unit_test(test_luck),
        cmocka_unit_test(test_timed),    cmocka_unit_test(test_worst),
        cmocka_unit_test(test_exceeds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
