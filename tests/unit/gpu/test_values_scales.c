/* test_values_scales.c: which elements the distributions scale, and by how much. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gpu/values_case.h"

/* ---- Scales along an axis ---- */

/* By how much element k is scaled against normal values, as a whole power of two. */
static int power_at(const struct kp_task *t, int i, enum kp_distribution d, int64_t k) {
    struct kp_values w = kp_values_of(t, i, d, 7), plain = kp_values_of(t, i, KP_DIST_NORMAL, 7);
    if (plain.kind == KP_FILL_FAN_IN) plain.kind = KP_FILL_NORMAL, plain.a = 0; /* declared so */
    double by = log2(kp_value_at(&w, (uint64_t)k) / kp_value_at(&plain, (uint64_t)k));
    assert_true(by == floor(by));
    return (int)by;
}

/* Fails unless tensor i is scaled along that axis alone: the power at each place of it goes to
 * power[].  Returns the length of the axis. */
static int powers_along(const struct kp_task *t, int i, enum kp_distribution d, int axis,
                        int power[64]) {
    const struct kp_shape *s = &t->tensors[i].shape;
    int64_t inner = 1;
    for (int a = axis + 1; a < s->n; a++) inner *= s->dim[a];
    for (int64_t k = count_of(t, i) - 1; k >= 0; k--) {
        int at = (int)(k / inner % s->dim[axis]), by = power_at(t, i, d, k);
        if (k < inner * s->dim[axis] && k % inner == 0) power[at] = by;
    }
    for (int64_t k = 0; k < count_of(t, i); k++)
        assert_int_equal(power_at(t, i, d, k), power[k / inner % s->dim[axis]]);
    return (int)s->dim[axis];
}

/* Fails unless these powers are within a range and reach both of its outer quarters. */
static void spread_over(const int *power, int n, int low, int high) {
    int least = high, most = low;
    for (int i = 0; i < n; i++) {
        if (power[i] < low || power[i] > high) fail_msg("2^%d", power[i]);
        if (power[i] < least) least = power[i];
        if (power[i] > most) most = power[i];
    }
    assert_true(4 * (least - low) <= high - low && 4 * (high - most) <= high - low);
}

/* Rows are scaled along the first axis, columns along the last, each tensor by scales of its own;
 * a vector is not. */
static void test_rows_columns(void **state) {
    (void)state;
    struct kp_task *t = task_of(
        "a f32 [40,3,40] uniform(0,1) real; b f32 [40] uniform(0,1) real;"
        "c f16 [40,40] uniform(0,1) real; d f32 [40,40] uniform(0,1) moderate;"
        "e f32 [40,3,40] uniform(0,1) real",
        "y[40,3,40] = add(a, e)|z[40] = relu(b)|v[40,40] = relu(c)|u[40,40] = relu(d)", "y z v u");
    const int low[] = {-18, 0, -6, -2, -18}, high[] = {18, 0, 2, 2, 18};
    int power[5][64];
    for (int d = KP_DIST_ROWS; d <= KP_DIST_COLUMNS; d++)
        for (int i = 0; i < 5; i++) {
            int axis = d == KP_DIST_ROWS ? 0 : t->tensors[i].shape.n - 1;
            int n = powers_along(t, i, (enum kp_distribution)d, axis, power[i]);
            if (i != 1) spread_over(power[i], n, low[i], high[i]);
            for (int k = 0; k < n && i == 1; k++) assert_int_equal(power[i][k], 0);
        }
    assert_memory_not_equal(power[0], power[4], 40 * sizeof(int));
    task_free(t);
}

struct product { /* the axes along which its operands are scaled against each other */
    const char *tensors, *op;
    int tensor[2], axis[2];
    int period;
};

/* Both operands of a product have scales along the inner index that cancel, also where it is
 * seen through a view, and within the channels of a group. */
static void test_inner(void **state) {
    (void)state;
    const struct product row[] = {
        {"a f32 [3,40] uniform(0,1) real; b f32 [40,2] normal(0,1) real",
         "y[3,2] = matmul(a, b)",
         {0, 1},
         {1, 0},
         40},
        {"a f32 [2,3,40] uniform(0,1) real; b f32 [2,40,2] uniform(0,1) real",
         "y[2,3,2] = matmul(a, b)",
         {0, 1},
         {2, 1},
         40},
        {"x f32 [3,40] uniform(0,1) real; w f32 [2,40] uniform(0,1) real; b f32 [2] normal(0,1) "
         "real",
         "y[3,2] = linear(x, weight=w, bias=b)",
         {0, 1},
         {1, 1},
         40},
        {"a f32 [3,40] uniform(0,1) real; b f32 [2,40] uniform(0,1) real",
         "c[40,2] = transpose(b; dims=[0,1])|y[3,2] = matmul(a, c)",
         {0, 1},
         {1, 1},
         40},
        {"a f32 [40,3] uniform(0,1) real; b f32 [40,2] uniform(0,1) real",
         "c[3,40] = transpose(a; dims=[0,1])|y[3,2] = matmul(c, b)",
         {0, 1},
         {0, 0},
         40},
        {"x f32 [2,60,3,3] uniform(0,1) real; w f32 [6,20,2,2] uniform(0,1) real",
         "y[2,6,2,2] = conv2d(x, weight=w; groups=3)",
         {0, 1},
         {1, 1},
         20},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const struct product *p = &row[i];
        struct kp_task *t = task(p->tensors, p->op);
        int one[64], two[64];
        int n = powers_along(t, p->tensor[0], KP_DIST_INNER, p->axis[0], one);
        int m = powers_along(t, p->tensor[1], KP_DIST_INNER, p->axis[1], two);
        spread_over(one, p->period, -18, 18);
        assert_int_equal(n < m ? n : m, p->period);
        for (int k = 0; k < n; k++) assert_int_equal(one[k], -two[k % p->period]);
        for (int k = 0; k < t->ntensors; k++) /* a bias is left alone */
            if (k != p->tensor[0] && k != p->tensor[1])
                assert_int_equal(power_at(t, k, KP_DIST_INNER, 0), 0);
        task_free(t);
    }
}

/* Left alone are a tensor on both sides of a product, operands that may not be scaled, and the
 * operands of what is no product. */
static void test_inner_none(void **state) {
    (void)state;
    const struct product row[] = {
        {"x f32 [3,4] uniform(0,1) real",
         "z[4,3] = transpose(x; dims=[0,1])|y[3,3] = matmul(x, z)",
         {0, 0},
         {0, 0},
         0},
        {"a f32 [3,4] uniform(0,1) positive; b f32 [4,2] uniform(0,1) real",
         "y[3,2] = matmul(a, b)",
         {0, 1},
         {0, 0},
         0},
        {"a f32 [3,4] uniform(0,1) real; b f32 [4,2] uniform(0,1) real",
         "c[4,2] = relu(b)|y[3,2] = matmul(a, c)",
         {0, 1},
         {0, 0},
         0},
        {"a f32 [3,4] uniform(0,1) real; b f32 [3,4] uniform(0,1) real",
         "y[3,4] = mul(a, b)",
         {0, 1},
         {0, 0},
         0},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct kp_task *t = task(row[i].tensors, row[i].op);
        assert_false(kp_distribution_applies(t, KP_DIST_INNER));
        for (int side = 0; side < 2; side++)
            for (int64_t k = 0; k < count_of(t, row[i].tensor[side]); k++)
                assert_int_equal(power_at(t, row[i].tensor[side], KP_DIST_INNER, k), 0);
        task_free(t);
    }
}

/* ---- Single elements, extremes ---- */

/* How many elements of tensor i are not normal values; *factor: the last one's over its normal
 * value. */
static int changed(const struct kp_task *t, int i, enum kp_distribution d, uint64_t seed,
                   double *factor) {
    double *x = values(t, i, d, seed), *plain = values(t, i, KP_DIST_NORMAL, seed);
    int n = 0;
    for (int64_t k = 0; k < count_of(t, i); k++)
        if (x[k] != plain[k]) n++, *factor = x[k] / plain[k];
    free(x);
    free(plain);
    return n;
}

/* One element is far larger, another one with another seed. */
static void test_outlier(void **state) {
    (void)state;
    const struct {
        const char *tensor;
        double factor;
    } row[] = {{"x f32 [8,8] uniform(0,1) real", 0x1p28},
               {"x f16 [8,8] uniform(0,1) real", 16},
               {"x f32 [8,8] uniform(0,1) moderate", 4},
               {"x f32 [8,8] uniform(0,1) positive", 0x1p28}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct kp_task *t = task(row[i].tensor, "y[8,8] = relu(x)");
        int64_t places[2];
        for (uint64_t seed = 0; seed < 2; seed++) {
            double factor = 0;
            assert_int_equal(changed(t, 0, KP_DIST_OUTLIER, seed, &factor), 1);
            assert_true(factor == row[i].factor);
            places[seed] = kp_values_of(t, 0, KP_DIST_OUTLIER, seed).special;
        }
        assert_true(places[0] != places[1]);
        task_free(t);
    }
}

/* The first tensor that may have an outlier has one, and one of the others: each at times. */
static void test_outliers(void **state) {
    (void)state;
    struct kp_task *t = task("u f32 [8,8] uniform(0,1) unit; a f32 [8,8] uniform(0,1) real;"
                             "b f32 [8,8] uniform(0,1) positive; c f32 [8,8] uniform(0,1) real",
                             "v[8,8] = mul(u, a)|z[8,8] = add(v, b)|y[8,8] = add(z, c)");
    int found[4] = {0};
    for (uint64_t seed = 0; seed < 40; seed++) {
        int all = 0;
        for (int i = 0; i < 4; i++) {
            double factor;
            int n = changed(t, i, KP_DIST_OUTLIER, seed, &factor);
            found[i] += n, all += n;
        }
        assert_int_equal(all, 2);
    }
    assert_int_equal(found[0], 0);
    assert_int_equal(found[1], 40);
    assert_true(found[2] > 9 && found[3] > 9);
    task_free(t);
}

/* One element of one tensor is infinite, of either sign; each real tensor has it at times. */
static void test_infinite(void **state) {
    (void)state;
    struct kp_task *t = task("a f32 [8,8] uniform(0,1) real; b f32 [8,8] uniform(0,1) positive;"
                             "c f32 [8,8] uniform(0,1) real",
                             "z[8,8] = add(a, b)|y[8,8] = add(z, c)");
    int found[3] = {0}, negative = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        int all = 0;
        for (int i = 0; i < 3; i++) {
            double factor = 0, *x = values(t, i, KP_DIST_INFINITE, seed);
            int n = changed(t, i, KP_DIST_INFINITE, seed, &factor);
            all += n, found[i] += n;
            if (n) assert_true(factor == INFINITY); /* of the sign that it had */
            negative += n && least_of(x, 64) == -INFINITY;
            free(x);
        }
        assert_int_equal(all, 1);
    }
    assert_true(found[0] > 5 && found[1] == 0 && found[2] > 5 && negative > 5 && negative < 35);
    task_free(t);
}

/* The first real tensor is near the largest number, the others are so small that 16,384 products
 * and their sum are finite in fp32. */
static void test_large(void **state) {
    (void)state;
    struct kp_task *t = task("p f32 [2] uniform(0,1) positive; a f32 [2,16384] uniform(0,1) real;"
                             "b f32 [16384,2] uniform(0,1) real",
                             "z[2,2] = matmul(a, b)|y[2,2] = add(z, p)");
    double *a = values(t, 1, KP_DIST_LARGE, 3);
    double *b = values(t, 2, KP_DIST_LARGE, 3);
    about(sqrt(moment(a, 32768, 2)) / 0x1p124, 1, 0.03);
    about(sqrt(moment(b, 32768, 2)) * 0x1p20 * sqrt(3), 1, 0.03);
    assert_true(most_of(a, 32768) <= FLT_MAX && most_of(a, 32768) >= FLT_MAX / 4);
    double factor;
    assert_int_equal(changed(t, 0, KP_DIST_LARGE, 3, &factor), 0);
    double most = most_of(a, 32768) * most_of(b, 32768) * 16384;
    assert_true(most < FLT_MAX && kp_normal(0) * 0x1p124 < FLT_MAX);
    free(a);
    free(b);
    task_free(t);
    t = task("a f16 [64,64] uniform(0,1) real", "y[64,64] = relu(a)");
    assert_int_equal(changed(t, 0, KP_DIST_LARGE, 3, &factor), 0);
    task_free(t);
}

/* The first real tensor is around the smallest normal number: most of it is subnormal. */
static void test_tiny(void **state) {
    (void)state;
    const struct {
        const char *type;
        double rms, normal;
    } row[] = {{"f32", 0x1p-128, 0x1p-126}, {"f16", 0x1p-16, 0x1p-14}};
    for (int i = 0; i < 2; i++) {
        char tensors[256];
        sprintf(tensors,
                "p f32 [2,2] uniform(0,1) positive; a %s [256,256] uniform(0,1) real;"
                "b %s [256,256] uniform(0,1) real",
                row[i].type, row[i].type);
        struct kp_task *t = task_of(tensors, "y[256,256] = add(a, b)|z[2,2] = relu(p)", "y z");
        double *a = values(t, 1, KP_DIST_TINY, 3), factor = 0;
        int64_t n = count_of(t, 1), normal = 0;
        for (int64_t k = 0; k < n; k++) normal += fabs(a[k]) >= row[i].normal, a[k] /= row[i].rms;
        about(moment(a, n, 2), 1, 0.03);
        assert_true(normal > 0 && normal < n / 100);
        assert_int_equal(changed(t, 0, KP_DIST_TINY, 3, &factor), 0);
        assert_int_equal(changed(t, 2, KP_DIST_TINY, 3, &factor), 0);
        free(a);
        task_free(t);
    }
}

/* ---- Seeds ---- */

/* Values are a function of seed, tensor and distribution: two tensors, or two seeds, are never
 * alike. */
static void test_seeds(void **state) {
    (void)state;
    struct kp_task *t = task("a f32 [8,8] uniform(0,1) real; b f32 [8,8] uniform(0,1) real",
                             "y[8,8] = matmul(a, b)");
    for (int d = 0; d < KP_DIST_COUNT; d++) {
        double *x = values(t, 0, (enum kp_distribution)d, 5);
        double *same = values(t, 0, (enum kp_distribution)d, 5);
        double *other = values(t, 0, (enum kp_distribution)d, 6);
        double *second = values(t, 1, (enum kp_distribution)d, 5);
        assert_memory_equal(x, same, 64 * sizeof *x);
        for (int k = 0; k < 64; k++) assert_true(x[k] != other[k] && x[k] != second[k]);
        free(x), free(same), free(other), free(second);
    }
    int one[64], two[64]; /* scales along the inner index are drawn anew, too */
    powers_along(t, 0, KP_DIST_INNER, 1, one);
    struct kp_values w = kp_values_of(t, 0, KP_DIST_INNER, 8), v = w;
    v.steps = 0;
    for (int k = 0; k < 8; k++)
        two[k] = (int)log2(kp_value_at(&w, (uint64_t)k) / kp_value_at(&v, (uint64_t)k));
    assert_memory_not_equal(one, two, 8 * sizeof(int));
    task_free(t);
}

/* Of [5, 4, 3], along axis 1; and of a tensor whose numbers need 64 bits. */
static void test_place(void **state) {
    (void)state;
    struct kp_values w = {.stride = 3, .size = 4, .period = 3};
    for (uint64_t i = 0; i < 60; i++) assert_int_equal(kp_place_along(&w, i), i / 3 % 4 % 3);
    w = (struct kp_values){.stride = 3, .size = (int64_t)1 << 33, .period = (int64_t)1 << 33};
    const uint64_t far = ((uint64_t)1 << 33) - 5;
    assert_int_equal(kp_place_along(&w, 3 * far + 2), far);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_columns), cmocka_unit_test(test_inner),
        cmocka_unit_test(test_inner_none),   cmocka_unit_test(test_outlier),
        cmocka_unit_test(test_outliers),     cmocka_unit_test(test_infinite),
        cmocka_unit_test(test_large),        cmocka_unit_test(test_tiny),
        cmocka_unit_test(test_seeds),        cmocka_unit_test(test_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
