/* test_referee.c: the referee on the pretend GPU: the errors over outputs, its poison, canaries and
 * checksums, and what it compares. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "measure/referee.h"

/* Fails unless two numbers are the same to 12 digits. */
static void near(double got, double want) {
    if (!(fabs(got - want) <= 1e-12 * fabs(want))) fail_msg("got %.17g, expected %.17g", got, want);
}

/* Fails unless an error is what it should be, measure by measure. */
static void error_is(struct kp_error e, double norm, double element) {
    near(e.norm, norm);
    near(e.element, element);
}

/* ---- A task of one input and two outputs ---------------------------------------------- */

enum { X, Y, Z };
static struct kp_tensor tensor = {.name = "x",
                                  .dtype = KP_F32,
                                  .shape = {1, {100}},
                                  .fill = {.kind = KP_FILL_UNIFORM, .a = 0, .b = 1}};
static struct kp_value values[] = {
    {"x", KP_F32, {1, {100}}}, {"y", KP_F32, {1, {100}}}, {"z", KP_F32, {2, {5, 5}}}};
static const struct kp_task two = {.name = "two",
                                   .ntensors = 1,
                                   .ninputs = 1,
                                   .tensors = &tensor,
                                   .nvalues = 3,
                                   .values = values,
                                   .noutputs = 2,
                                   .outputs = {Y, Z}};

/* ---- Errors from what was compared ----------------------------------------------------------- */

/* The worst over both outputs, whichever shows it. */
static void test_error(void **state) {
    (void)state;
    struct kp_compare f[] = {{.sum_d2 = 4, .sum_b2 = 100, .largest = 0.5, .count = 100},
                             {.sum_d2 = 1, .sum_b2 = 400, .largest = 0.25, .count = 25}};
    error_is(referee_error(&two, f), 0.2, 0.5);
    f[Z - 1].sum_d2 = 400, f[Z - 1].largest = 2;
    error_is(referee_error(&two, f), 1, 2);
    struct kp_compare zeros[] = {{.sum_d2 = 100 * 0x1p-260, .count = 100}, {.count = 25}};
    error_is(referee_error(&two, zeros), 0x1p-4, 0); /* against the smallest normal numbers */
}

/* NaN is worst of all, whichever output and whichever measure has it. */
static void test_error_nan(void **state) {
    (void)state;
    const struct kp_compare fine = {.sum_d2 = 1, .sum_b2 = 400, .largest = 0.25, .count = 25};
    for (int k = 0; k < 2; k++)
        for (int measure = 0; measure < 2; measure++) {
            struct kp_compare f[] = {fine, fine};
            *(measure == 0 ? &f[k].sum_d2 : &f[k].largest) = NAN;
            struct kp_error e = referee_error(&two, f);
            assert_true(isnan(measure == 0 ? e.norm : e.element));
        }
}

/* ---- The referee, on the pretend GPU ---------------------------------------------------- */

enum { SCRATCH = 13, BUFFERS = 4, PLACEMENTS = 2 };

/* A referee for `two` with scratch, at two placements. */
static struct referee opened(void) {
    struct referee r;
    size_t needed;
    assert_true(referee_open(&r, &two, PLACEMENTS, SCRATCH, 0, 5, &needed));
    return r;
}

/* The bytes of buffer b of the second placement. */
static unsigned char *bytes_of(const struct referee *r, int b) {
    return span_data(&r->at[r->nbuffers + b]);
}

/* All that a candidate can write is poisoned, with a word that the seed decides. */
static void test_poison(void **state) {
    (void)state;
    struct referee r = opened();
    uint32_t seen[3];
    memset(span_data(&r.at[r.nbuffers]), 1, 400);
    for (int i = 0; i < 3; i++) {
        referee_poison(&r, 1, (uint64_t)i);
        seen[i] = r.poison;
        for (int b = 1; b < BUFFERS; b++)
            for (size_t k = 0; k < r.at[b].bytes / 4; k++)
                assert_memory_equal(bytes_of(&r, b) + 4 * k, &r.poison, 4);
        assert_int_equal(*bytes_of(&r, X), 1);
    }
    assert_true(seen[0] != seen[1] && seen[1] != seen[2]);
}

/* Outputs are untouched until one byte of one of them is written. */
static void test_untouched(void **state) {
    (void)state;
    struct referee r = opened();
    referee_poison(&r, 1, 1);
    assert_true(referee_untouched(&r, 1));
    bytes_of(&r, 3)[0] ^= 1; /* scratch is anybody's */
    assert_true(referee_untouched(&r, 1));
    for (int b = Y; b <= Z; b++) {
        unsigned char *last = bytes_of(&r, b) + r.at[b].bytes - 1;
        *last ^= 1;
        assert_false(referee_untouched(&r, 1));
        *last ^= 1;
    }
}

/* A byte before or behind any buffer that can be written is seen, at any placement, and the buffer
 * named. */
static void test_canaries(void **state) {
    (void)state;
    struct referee r = opened();
    unsigned long long bytes = 7;
    const char *const name[] = {NULL, "y", "z", "scratch"};
    referee_poison(&r, 1, 1);
    assert_null(referee_canaries(&r, &bytes));
    for (int k = 0; k < PLACEMENTS * BUFFERS; k++) {
        const struct kp_span *s = &r.at[k];
        int b = k % BUFFERS;
        if (b == X) continue;
        unsigned char *base = (unsigned char *)(uintptr_t)s->base;
        size_t end = s->offset + s->bytes;
        size_t at[] = {0, s->offset - 1, end, s->mapped - 1};
        for (int i = 0; i < 4; i++) {
            if (at[i] >= s->mapped) continue;
            base[at[i]] ^= 0x10;
            const char *found = referee_canaries(&r, &bytes);
            if (!found || strcmp(found, name[b]))
                fail_msg("%s: byte %zu: %s", name[b], at[i], found);
            assert_int_equal(bytes, 1);
            base[at[i]] ^= 0x10;
        }
    }
    assert_null(referee_canaries(&r, &bytes));
}

/* The canaries' word differs from run to run. */
static void test_canary_secret(void **state) {
    (void)state;
    struct referee r[2];
    size_t needed;
    for (int i = 0; i < 2; i++)
        assert_true(referee_open(&r[i], &two, 1, 0, 0, (uint64_t)(i + 1), &needed));
    assert_true(r[0].canary != r[1].canary);
}

/* A checksum sees any word of any of its buffers, and no others. */
static void test_checksum(void **state) {
    (void)state;
    struct referee r = opened();
    referee_fill(&r, 1, KP_DIST_DECLARED, 3);
    referee_poison(&r, 1, 1);
    for (int inputs = 0; inputs < 2; inputs++)
        for (int b = 0; b < BUFFERS; b++) {
            unsigned long long before = referee_checksum(&r, 1, inputs);
            unsigned char *last = bytes_of(&r, b) + r.at[b].bytes - 1;
            bool covered = inputs ? b == X : b == Y || b == Z;
            *last ^= 1;
            assert_true((referee_checksum(&r, 1, inputs) != before) == covered);
            *last ^= 1;
        }
}

/* Contents are a function of the seed. */
static void test_fill(void **state) {
    (void)state;
    struct referee r = opened();
    unsigned long long sum[3];
    for (int i = 0; i < 3; i++) {
        referee_fill(&r, 1, KP_DIST_DECLARED, (uint64_t)(i / 2));
        sum[i] = referee_checksum(&r, 1, true);
    }
    assert_true(sum[0] == sum[1] && sum[1] != sum[2]);
}

/* Comparing finds an element that is off in the last output, and counts each. */
static void test_compare(void **state) {
    (void)state;
    struct referee r = opened();
    float y[100], z[25];
    void *const with[] = {y, z}, *const outputs[] = {bytes_of(&r, Y), bytes_of(&r, Z)};
    double rms[4];
    struct kp_compare found[4];
    for (int i = 0; i < 100; i++) y[i] = 3;
    for (int i = 0; i < 25; i++) z[i] = 2;
    memcpy(bytes_of(&r, Y), y, sizeof y);
    memcpy(bytes_of(&r, Z), z, sizeof z);
    referee_rms(&r, with, rms);
    near(rms[0], 3);
    near(rms[1], 2);
    memset(z, 0, sizeof z);
    referee_rms(&r, with, rms);
    near(rms[1], 0x1p-126); /* no less than the smallest normal number */
    for (int i = 0; i < 25; i++) z[i] = 2;
    referee_rms(&r, with, rms);
    ((float *)bytes_of(&r, Z))[24] = 3;
    referee_compare(&r, outputs, with, rms, 0.2, true, found);
    assert_int_equal(found[0].bad, 0);
    assert_int_equal(found[0].count, 100);
    assert_int_equal(found[1].bad, 1);
    assert_int_equal(found[1].first_bad, 24);
    struct kp_error e = referee_error(&two, found);
    near(e.element, 1 / 4.0);
    near(e.norm, sqrt(1 / (25 * 4.0)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error),    cmocka_unit_test(test_error_nan),
        cmocka_unit_test(test_poison),   cmocka_unit_test(test_untouched),
        cmocka_unit_test(test_canaries), cmocka_unit_test(test_canary_secret),
        cmocka_unit_test(test_checksum), cmocka_unit_test(test_fill),
        cmocka_unit_test(test_compare)};
    driver_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
