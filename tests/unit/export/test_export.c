/* test_export.c: rewards with known values, and prompts of each wire format. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/error.h"
#include "export/export.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void near(double x, double expected) {
    if (!(fabs(x - expected) <= 1e-9)) fail_msg("%.12g, expected %.12g", x, expected);
}

/* ---- rewards ---------------------------------------------------------------------- */

static void test_round(void **state) {
    static const double cases[][2] = {{1.118, 1.11},   {0.992, 1.00}, {1, 1},        {1.13, 1.13},
                                      {0.991, 1.00},   {0.99, 0.99},  {0.981, 0.99}, {1.0099, 1.00},
                                      {12.349, 12.34}, {0.5, 0.5},    {0.001, 0.01}, {2.29, 2.29}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        near(export_round(cases[i][0]), cases[i][1]);
}

/* A time.json of a kernel that takes 10 us and of a baseline with n given times. */
static cJSON *timed(const double *base, int n, int kernel_n, double ratio) {
    cJSON *json = cJSON_CreateObject(), *times = cJSON_AddObjectToObject(json, "time_us");
    cJSON *speedup = cJSON_AddObjectToObject(json, "speedup");
    cJSON *a = cJSON_AddArrayToObject(cJSON_AddObjectToObject(times, "candidate"), "samples");
    cJSON *b = cJSON_AddArrayToObject(cJSON_AddObjectToObject(times, "tf32"), "samples");
    cJSON_AddStringToObject(speedup, "against", "tf32");
    cJSON_AddNumberToObject(speedup, "ratio", ratio);
    for (int i = 0; i < kernel_n; i++) cJSON_AddItemToArray(a, cJSON_CreateNumber(10));
    for (int i = 0; i < n; i++) cJSON_AddItemToArray(b, cJSON_CreateNumber(base[i]));
    return json;
}

static void scores(const double *base, int n, int kernel_n, double score, double variance) {
    double found;
    cJSON *json = timed(base, n, kernel_n, 1.777);
    near(export_score(json, &found), score);
    if (isnan(variance))
        assert_true(isnan(found));
    else
        near(found, variance);
    near(export_score(json, NULL), score);
    cJSON_Delete(json);
}

static void test_score(void **state) {
    /* Buckets of one sample each, with ratios 1.1 to 1.7 and one outlier. */
    double seven[] = {11, 1000, 12, 13, 14, 15, 16}, steady[14], thirty[30];
    (void)state;
    cJSON *json = timed(seven, 7, 7, 9);
    near(export_score(json, NULL), 1.4); /* 1.1 1.2 1.3 1.4 1.5 1.6 100 */
    cJSON_Delete(json);
    for (int i = 0; i < 14; i++) steady[i] = i % 2 ? 21 : 20;
    scores(steady, 14, 14, 2.05, 0);
    /* 30 samples: buckets begin at 0 4 8 12 17 21 25; all samples of a bucket are equal */
    static const int first[] = {0, 4, 8, 12, 17, 21, 25, 30};
    for (int b = 0; b < 7; b++)
        for (int i = first[b]; i < first[b + 1]; i++) thirty[i] = 10 + b;
    scores(thirty, 30, 30, 1.3, 0.04); /* 1.0 1.1 ... 1.6: variance 4 hundredths */
    /* Too few pairs, or two sides that do not match: the ratio of interquartile means. */
    scores(thirty, 6, 6, 1.77, NAN);
    scores(thirty, 30, 29, 1.77, NAN);
    scores(thirty, 0, 0, 1.77, NAN);
    thirty[3] = -1;
    scores(thirty, 30, 30, 1.77, NAN);
}

/* Expect this worth of a result with this verdict and flag: by its ratio of 1.777, and by its
 * score. */
static void worth(const char *verdict, const char *flag, double ratio, double score) {
    double base[7] = {20, 20, 20, 20, 20, 20, 20};
    const double expected[] = {ratio, score};
    cJSON *json = timed(base, 7, 7, 1.777), *flags = cJSON_AddArrayToObject(json, "flags");
    cJSON_AddStringToObject(json, "verdict", verdict);
    cJSON_AddItemToArray(flags, cJSON_CreateString("noisy"));
    cJSON_AddItemToArray(flags, cJSON_CreateString(flag));
    for (int shaped = 0; shaped < 2; shaped++) {
        double found = export_worth(json, shaped);
        if (isnan(expected[shaped]))
            assert_true(isnan(found));
        else
            near(found, expected[shaped]);
    }
    cJSON_Delete(json);
}

static void test_worth(void **state) {
    (void)state;
    worth("ok", "latency-bound", 1.777, 2);
    worth("ok", "weak-baseline: no cuDNN", 1.777, 2);
    worth("wrong", "latency-bound", 0, 0);
    worth("skipped", "latency-bound", NAN, NAN);
    /* its time cannot be trusted */
    worth("ok", "decoy-ratio", 0, 0);
    worth("ok", "clocks-disagree: the host waited longer", 0, 0);
    /* doing nothing would score best */
    worth("ok", "degenerate: output is identically 0", NAN, NAN);
    worth("ok", "no-influence: bias", NAN, NAN);
    worth("wrong", "no-influence: bias", NAN, NAN);
}

static void test_rewards(void **state) {
    const double score[] = {0, 0, 0, 1, 4}, equal[] = {2, 2, 2}, one = 3;
    double r[5];
    (void)state;
    export_rewards(score, r, 5); /* mean 1, deviation sqrt(12/5) */
    near(r[0], -1 / sqrt(2.4));
    near(r[2], r[0]);
    near(r[3], 0);
    near(r[4], 1.5); /* 1.94, clipped */
    export_rewards(equal, r, 3);
    near(r[0], 0);
    near(r[2], 0);
    export_rewards(&one, r, 1);
    near(r[0], 0);
    export_rewards(NULL, NULL, 0);
}

static void test_split(void **state) {
    int test = 0;
    (void)state;
    /* printf %s l1_019_relu | sha256sum begins with 4ba7f7f2: 0.2955 of 2^32 */
    assert_string_equal(export_split("l1_019_relu", 0.295), "train");
    assert_string_equal(export_split("l1_019_relu", 0.296), "test");
    assert_string_equal(export_split("l1_019_relu", 0), "train");
    assert_string_equal(export_split("l1_019_relu", 1), "test");
    char name[32];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "t_%03d", i);
        const char *side = export_split(name, 0.2);
        assert_ptr_equal(side, export_split(name, 0.2));
        test += !strcmp(side, "test");
        /* a task that is in the test set of a small share is also in that of a larger one */
        if (!strcmp(side, "test")) assert_string_equal(export_split(name, 0.5), "test");
    }
    if (test < 8 || test > 32) fail_msg("%d of 100 are in the test", test); /* 3 deviations */
}

/* ---- texts ------------------------------------------------------------------------ */

static void messages(const char *request, const char *expected) {
    cJSON *json = cJSON_Parse(request), *found = export_messages(json);
    char *text = found ? cJSON_PrintUnformatted(found) : text_format("none");
    assert_non_null(json);
    assert_string_equal(text, expected);
    free(text);
    cJSON_Delete(found);
    cJSON_Delete(json);
}

static void test_messages(void **state) {
    static const char both[] =
        "[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\",\"content\":\"U\\n1\"}]";
    (void)state;
    messages("{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"S\"},{\"role\":"
             "\"user\",\"content\":\"U\\n1\"}],\"stream\":true}",
             both);
    messages("{\"messages\":[{\"role\":\"developer\",\"content\":\"S\"},{\"role\":\"user\","
             "\"content\":[{\"type\":\"text\",\"text\":\"U\\n\"},{\"type\":\"text\",\"text\":\"1\"}"
             "]}]}",
             both);
    messages("{\"system\":[{\"type\":\"text\",\"text\":\"S\",\"cache_control\":{\"type\":"
             "\"ephemeral\"}}],\"messages\":[{\"role\":\"user\",\"content\":\"U\\n1\"}]}",
             both);
    messages("{\"instructions\":\"S\",\"input\":\"U\\n1\"}", both);
    messages("{\"input\":[{\"role\":\"system\",\"content\":[{\"type\":\"input_text\",\"text\":"
             "\"S\"}]},{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"U\\n1\"}"
             "]}]}",
             both);
    messages("{\"model\":\"m\"}", "none");
    messages("{\"messages\":[]}", "none");
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round),    cmocka_unit_test(test_score),
        cmocka_unit_test(test_rewards),  cmocka_unit_test(test_split),
        cmocka_unit_test(test_messages), cmocka_unit_test(test_worth)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
