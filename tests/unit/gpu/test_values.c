/* test_values.c: what the distributions put into tensors, by their moments, and which domains and
 * structures they keep to. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gpu/values_case.h"

/* ---- The generator ----------------------------------------------------------------------------
 */

/* The first numbers of splitmix64 from seed 0, as published; and what is made of bits. */
static void test_generator(void **state) {
    (void)state;
    assert_true(kp_mix(0, 0) == 0xe220a8397b1dcdafull);
    assert_true(kp_mix(0, 1) == 0x6e789e6aa1b965f4ull);
    assert_true(kp_mix(0, 2) == 0x06c45d188009454full);
    assert_true(kp_even(~0ull) == 1 - 0x1p-24f && kp_even(0) == 0);
    assert_true(kp_even(0x8000000000000000ull) == 0.5f);
    about(kp_normal(0), sqrt(-2 * log(0x1p-25)), 1e-5);              /* the largest */
    about(kp_normal(0x80000000ull), -sqrt(-2 * log(0x1p-25)), 1e-5); /* half a turn on */
    about(kp_normal(0x8000000040000000ull), 0, 1e-6);                /* a quarter */
}

/* ---- Declared fills -----------------------------------------------------------------------------
 */

/* Range, mean and variance of what the task declares. */
static void test_declared(void **state) {
    (void)state;
    const struct {
        const char *fill;
        double least, most, mean, variance;
    } row[] = {{"uniform(2,5)", 2, 5, 3.5, 9 / 12.0},
               {"normal(3,2)", -9, 15, 3, 4},
               {"fan_in(4)", -0.5, 0.5, 0, 1 / 12.0},
               {"constant(7)", 7, 7, 7, 0},
               {"integers(2,5)", 2, 4, 3, 2 / 3.0},
               {"bernoulli(0.25)", 0, 1, 0.25, 3 / 16.0},
               {"signs()", -1, 1, 0, 1}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char tensor[128];
        sprintf(tensor, "x f32 [256,256] %s real", row[i].fill);
        struct kp_task *t = task(tensor, "y[256,256] = relu(x)");
        double *x = values(t, 0, KP_DIST_DECLARED, 7);
        int64_t n = count_of(t, 0);
        double mean = moment(x, n, 1), by = 0.02 * (row[i].most - row[i].least);
        about(mean, row[i].mean, by);
        about(moment(x, n, 2) - mean * mean, row[i].variance, by);
        assert_true(least_of(x, n) >= row[i].least && most_of(x, n) <= row[i].most);
        assert_true(most_of(x, n) - least_of(x, n) >= 0.6 * (row[i].most - row[i].least));
        free(x);
        task_free(t);
    }
}

/* scaled(): one number in [0,1) for the whole tensor, another for each seed; in other
 * distributions, too. */
static void test_scaled_fill(void **state) {
    (void)state;
    struct kp_task *t = task("x f32 [8] scaled(constant(3)) real", "y[8] = relu(x)");
    double before = -1;
    for (uint64_t seed = 0; seed < 20; seed++) {
        double *x = values(t, 0, KP_DIST_DECLARED, seed);
        assert_true(least_of(x, 8) == most_of(x, 8) && x[0] >= 0 && x[0] < 3 && x[0] != before);
        before = x[0];
        free(x);
    }
    task_free(t);
}

/* ---- Normal, scaled ---- */

/* Signed numbers of the declared root mean square: normal, or even where normal is declared. */
static void test_normal(void **state) {
    (void)state;
    const struct {
        const char *fill;
        double square, fourth; /* mean x^2; mean x^4 over that squared */
    } row[] = {{"uniform(0,1)", 1 / 3.0, 3}, {"uniform(1,3)", 13 / 3.0, 3}, {"normal(0,2)", 4, 1.8},
               {"normal(3,2)", 13, 3},       {"fan_in(12)", 1 / 36.0, 3},   {"constant(-2)", 4, 3},
               {"constant(0)", 1, 3}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char tensor[128];
        sprintf(tensor, "x f32 [256,256] %s real", row[i].fill);
        struct kp_task *t = task(tensor, "y[256,256] = relu(x)");
        double *x = values(t, 0, KP_DIST_NORMAL, 7);
        int64_t n = count_of(t, 0);
        double square = moment(x, n, 2);
        about(moment(x, n, 1) / sqrt(square), 0, 0.02);
        about(square / row[i].square, 1, 0.03);
        about(moment(x, n, 4) / square / square, row[i].fourth, 0.1);
        free(x);
        task_free(t);
    }
}

/* Each element is scaled by a power of two of its own, even in its range: as wide as the domain
 * and the type bear. */
static void test_scaled(void **state) {
    (void)state;
    const struct {
        const char *type, *domain;
        double low, spread;
    } row[] = {{"f32", "real", -18, 36},
               {"bf16", "real", -18, 36},
               {"f16", "real", -6, 8},
               {"f32", "moderate", -2, 4},
               {"f16", "moderate", -2, 4}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char tensor[128];
        sprintf(tensor, "x %s [256,256] uniform(0,1) %s", row[i].type, row[i].domain);
        struct kp_task *t = task(tensor, "y[256,256] = relu(x)");
        double *x = values(t, 0, KP_DIST_SCALED, 7), *plain = values(t, 0, KP_DIST_NORMAL, 7);
        int64_t n = count_of(t, 0);
        for (int64_t k = 0; k < n; k++) x[k] = log2(x[k] / plain[k]);
        double mean = moment(x, n, 1);
        about(mean, row[i].low + row[i].spread / 2, 0.01 * row[i].spread);
        about(moment(x, n, 2) - mean * mean, row[i].spread * row[i].spread / 12,
              0.02 * row[i].spread * row[i].spread / 12);
        about(least_of(x, n), row[i].low, 0.01);
        about(most_of(x, n), row[i].low + row[i].spread, 0.01);
        free(x);
        free(plain);
        task_free(t);
    }
}

/* ---- Domains and structure ---- */

/* In every distribution positive values are above 0, [0,1] holds its own, and what is declared is
 * as it is declared. */
static void test_domains(void **state) {
    (void)state;
    struct kp_task *t =
        task_of("p f32 [32,32] normal(0,1) positive; u f32 [32,32] uniform(0,1) unit;"
                "d f32 [32,32] bernoulli(0.3) declared; i i64 [32] integers(0,32) declared;"
                "q f16 [32,32] uniform(1,2) positive",
                "v[32,32] = mul(p, u)|y[32,32] = mul(v, d)|r[32,32] = relu(q)|c[] = "
                "cross_entropy(v, target=i)",
                "y r c");
    double *declared = values(t, 2, KP_DIST_DECLARED, 5);
    double *indices = values(t, 3, KP_DIST_DECLARED, 5);
    for (int d = KP_DIST_NORMAL; d < KP_DIST_COUNT; d++) {
        double *x[5];
        for (int i = 0; i < 5; i++) x[i] = values(t, i, (enum kp_distribution)d, 5);
        assert_true((float)least_of(x[0], 1024) > 0 && least_of(x[4], 1024) > 0x1p-24);
        assert_true(most_of(x[0], 1024) < INFINITY);
        assert_true(least_of(x[1], 1024) >= 0 && most_of(x[1], 1024) <= 1);
        about(moment(x[1], 1024, 1), d == KP_DIST_SCALED ? 0.2 : 0.5, 0.04);
        assert_memory_equal(x[2], declared, 1024 * sizeof(double));
        assert_memory_equal(x[3], indices, 32 * sizeof(double));
        for (int i = 0; i < 5; i++) free(x[i]);
    }
    free(declared);
    free(indices);
    task_free(t);
}

/* In every distribution what is symmetric stays so, triangles stay zero, and the transpose of a
 * tensor is that. */
static void test_structure(void **state) {
    (void)state;
    struct kp_task *t = task("s f32 [2,9,9] symmetric(uniform(0,1)) real; u f32 [2,9,9] "
                             "upper(uniform(0,1)) real; l f32 [2,9,9] lower(uniform(0,1)) real;"
                             "a f32 [2,9,5] uniform(0,1) real; b f32 [2,5,9] transposed(a) real",
                             "v[2,9,9] = matmul(a, b)|w[2,9,9] = matmul(s, u)|z[2,9,9] = matmul(w, "
                             "l)|y[2,9,9] = add(z, v)");
    for (int d = 0; d < KP_DIST_COUNT; d++) {
        double *x[5];
        int nonzero = 0;
        for (int i = 0; i < 5; i++) x[i] = values(t, i, (enum kp_distribution)d, 5);
        for (int m = 0; m < 2; m++)
            for (int r = 0; r < 9; r++)
                for (int c = 0; c < 9; c++) {
                    int at = 81 * m + 9 * r + c, mirror = 81 * m + 9 * c + r;
                    assert_true(x[0][at] == x[0][mirror]);
                    if (c < r) assert_true(x[1][at] == 0 && x[2][mirror] == 0);
                    nonzero += x[1][at] != 0 && x[2][mirror] != 0;
                    if (c < 5) assert_true(x[3][45 * m + 5 * r + c] == x[4][45 * m + 9 * c + r]);
                }
        assert_int_equal(nonzero, 2 * 45);
        for (int i = 0; i < 5; i++) free(x[i]);
    }
    double *s = values(t, 0, KP_DIST_DECLARED, 5); /* (U + U^T) / 2 */
    struct kp_values w = kp_values_of(t, 0, KP_DIST_DECLARED, 5);
    about(s[1], (kp_value_scaled(&w, 1) + kp_value_scaled(&w, 9)) / 2, 1e-12);
    free(s);
    task_free(t);
}

/* Listed values are those of the file in every distribution, and their transpose is that. */
static void test_listed(void **state) {
    (void)state;
    struct kp_task *t = task("a f32 [2,3] values(1,2*2,-4.5,0,6) declared; b f32 [3,2] "
                             "transposed(a) declared; c f32 [3,3] uniform(0,1) real",
                             "v[2,2] = matmul(a, b)|w[2,3] = matmul(a, c)|y[2,3] = matmul(v, w)");
    const double want[] = {1, 2, 2, -4.5, 0, 6}, swapped[] = {1, -4.5, 2, 0, 2, 6};
    for (int d = 0; d < KP_DIST_COUNT; d++) {
        double *a = values(t, 0, (enum kp_distribution)d, 5),
               *b = values(t, 1, (enum kp_distribution)d, 5);
        assert_memory_equal(a, want, sizeof want);
        assert_memory_equal(b, swapped, sizeof swapped);
        free(a);
        free(b);
    }
    assert_true(t->tensors[0].fill.a == -4.5 && t->tensors[0].fill.b == 7);
    task_free(t);
}

/* ---- Which distributions, which seeds ---- */

static void test_applies(void **state) {
    (void)state;
    const struct {
        const char *tensors, *op, *applies;
    } row[] = {
        {"a f32 [3,4] uniform(0,1) real; b f32 [4,2] uniform(0,1) real", "y[3,2] = matmul(a, b)",
         "declared normal scaled rows columns inner outlier large tiny infinite "},
        {"a f16 [3,4] uniform(0,1) real; b f16 [4,2] uniform(0,1) real", "y[3,2] = matmul(a, b)",
         "declared normal scaled rows columns inner outlier tiny infinite "},
        {"a f32 [3,4] uniform(0,1) real", "y[3,4] = relu(a)",
         "declared normal scaled rows columns outlier large tiny infinite "},
        {"a f32 [3] uniform(0,1) real", "y[3] = relu(a)",
         "declared normal scaled outlier large tiny infinite "},
        {"a f32 [3,4] uniform(0,1) positive", "y[3,4] = relu(a)",
         "declared normal scaled rows columns outlier "},
        {"a f32 [3,4] uniform(0,1) moderate", "y[3,4] = relu(a)",
         "declared normal scaled rows columns outlier "},
        {"a f32 [3,4] uniform(0,1) unit", "y[3,4] = relu(a)", "declared normal scaled "},
        {"a f32 [3,4] uniform(0,1) declared", "y[3,4] = relu(a)", "declared "},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct kp_task *t = task(row[i].tensors, row[i].op);
        char found[256] = "";
        for (int d = 0; d < KP_DIST_COUNT; d++)
            if (kp_distribution_applies(t, (enum kp_distribution)d))
                sprintf(found + strlen(found), "%s ", kp_distribution_name[d]);
        assert_string_equal(found, row[i].applies);
        task_free(t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_generator),   cmocka_unit_test(test_declared),
        cmocka_unit_test(test_scaled_fill), cmocka_unit_test(test_normal),
        cmocka_unit_test(test_scaled),      cmocka_unit_test(test_domains),
        cmocka_unit_test(test_structure),   cmocka_unit_test(test_listed),
        cmocka_unit_test(test_applies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
