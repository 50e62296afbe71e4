/* test_export.c: rewards with known values, prompts of each wire format, and a checker that
 * finds every fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ends.h"
#include "base/error.h"
#include "export/export.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/kernelproof-XXXXXX";

static int enter(void **state) {
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave(void **state) {
    (void)state;
    unlink("a.jsonl");
    unlink("b.jsonl");
    return chdir("/") || rmdir(folder);
}

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

static void test_fenced(void **state) {
    static const char *const cases[][2] = {{"int x;\n", "```cuda\nint x;\n```\n"},
                                           {"int x;", "```cuda\nint x;\n```\n"},
                                           {"// ``` and `` \n", "````cuda\n// ``` and `` \n````\n"},
                                           {"", "```cuda\n\n```\n"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = export_fenced(cases[i][0]);
        assert_string_equal(text, cases[i][1]);
        free(text);
    }
}

/* ---- the checker ------------------------------------------------------------------ */

#define PAIR                                                                                       \
    "{\"prompt\":[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\",\"content\":\"U\"}]," \
    "\"completion\":[{\"role\":\"assistant\",\"content\":\"A\"}],\"task\":\"l1_019_relu\","        \
    "\"gpu\":"                                                                                     \
    "\"h200\",\"attempt\":\"repair.r1a1\",\"speedup\":1.5,\"class\":\"fp32\",\"split\":\"train\"}"
#define RL                                                                                        \
    "{\"data_source\":\"kernelproof\",\"prompt\":[{\"role\":\"user\",\"content\":\"U\"}],"        \
    "\"ability\":\"cuda\",\"reward_model\":{\"style\":\"rule\",\"ground_truth\":"                 \
    "\"h200/l1_019_relu\"},\"extra_info\":{\"split\":\"train\",\"index\":0,\"task\":"             \
    "\"l1_019_relu\",\"gpu\":\"h200\",\"attempt\":\"repair.r1a1\",\"mode\":\"repair\",\"round\":" \
    "1,"                                                                                          \
    "\"model\":\"m\",\"class\":\"fp32\",\"score\":1.5,\"bucket_variance\":0.001},\"answer\":"     \
    "\"A\","                                                                                      \
    "\"verdict\":\"ok\",\"ratio\":1.52,\"reward\":-0.25}"

static bool is_good(const char *line, enum export_kind *kind, char *why) {
    char task[64], split[8];
    bool good = export_check_line(line, strlen(line), kind, task, split, why, 200);
    if (good) assert_string_equal(task, "l1_019_relu");
    return good;
}

/* The line with its first `from` replaced. */
static char *edited(const char *line, const char *from, const char *to) {
    const char *at = strstr(line, from);
    if (!at) fail_msg("%s is not in %s", from, line);
    return text_format("%.*s%s%s", (int)(at - line), line, to, at + strlen(from));
}

static void good(const char *line, const char *from, const char *to) {
    enum export_kind kind;
    char why[200] = "", *text = edited(line, from, to);
    if (!is_good(text, &kind, why)) fail_msg("%s: %s", text, why);
    assert_int_equal(kind, line[2] == 'p' ? EXPORT_PAIR : EXPORT_RL);
    free(text);
}

static void bad(const char *line, const char *from, const char *to, const char *reason) {
    enum export_kind kind;
    char why[200] = "", *text = edited(line, from, to);
    if (is_good(text, &kind, why)) fail_msg("taken as good: %s", text);
    if (!strstr(why, reason)) fail_msg("%s: \"%s\" and not \"%s\"", text, why, reason);
    free(text);
}

static void test_good(void **state) {
    (void)state;
    good(PAIR, "1.5", "1.5");
    good(PAIR, "1.5", "null");
    good(PAIR, "fp32", "bf16");
    good(PAIR, "\"S\"", "\"\\\\u0000 \xc3\xa9 \xf0\x9d\x9b\x91 \\\" \\u00e9\"");
    good(PAIR, "{\"role\":\"system\",\"content\":\"S\"},", "");
    good(PAIR, "{\"role\":\"user\",\"content\":\"U\"}",
         "{\"role\":\"user\",\"content\":\"U\"},{\"role\":\"assistant\",\"content\":\"B\"},"
         "{\"role\":\"user\",\"content\":\"V\"}");
    good(RL, "0.001", "null");
    good(RL, "-0.25", "1.5");
    good(RL,
         "\"class\":\"fp32\",\"score\":1.5,\"bucket_variance\":0.001},\"answer\":\"A\","
         "\"verdict\":\"ok\",\"ratio\":1.52",
         "\"class\":null,\"score\":0,\"bucket_variance\":null},\"answer\":\"\","
         "\"verdict\":\"empty\",\"ratio\":0");
    good(RL,
         "\"class\":\"fp32\",\"score\":1.5,\"bucket_variance\":0.001},\"answer\":\"A\","
         "\"verdict\":\"ok\",\"ratio\":1.52",
         "\"class\":null,\"score\":0,\"bucket_variance\":null},\"answer\":\"A\","
         "\"verdict\":\"doubtful\",\"ratio\":0");
}

static void test_bad_pairs(void **state) {
    (void)state;
    bad(PAIR, PAIR, "", "not a JSON object");
    bad(PAIR, PAIR, "[1]", "not a JSON object");
    bad(PAIR, "\"train\"}", "\"train\"", "not a JSON object");
    bad(PAIR, "\"train\"}", "\"train\"} {}", "not a JSON object");
    bad(PAIR, "\"S\"", "\"\xff\"", "byte 40 is not UTF-8");
    bad(PAIR, "\"S\"", "\"\xed\xa0\x80\"", "is not UTF-8"); /* a surrogate */
    bad(PAIR, "\"S\"", "\"\xc0\xaf\"", "is not UTF-8");     /* overlong */
    bad(PAIR, "\"S\"", "\"\xe2\x82\"", "is not UTF-8");     /* cut short */
    bad(PAIR, "\"S\"", "\"\xf4\x90\x80\x80\"", "is not UTF-8");
    bad(PAIR, "\"S\"", "\"a\\u0000b\"", "holds a NUL");
    bad(PAIR, "\"S\"", "\"\\\\\\u0000b\"", "holds a NUL");
    bad(PAIR, "\"S\"", "\"\\ud800\"", "not a JSON object");
    bad(PAIR, "\"S\"", "\"\"", "\"content\" is no text, or empty");
    bad(PAIR, "\"S\"", "7", "\"content\" is no text, or empty");
    bad(PAIR, "\"content\":\"S\"", "\"text\":\"S\"", "prompt lacks \"content\"");
    bad(PAIR, "\"content\":\"S\"", "\"content\":\"S\",\"name\":\"x\"", "which is no column");
    bad(PAIR, "\"content\":\"S\"", "\"content\":\"S\",\"role\":\"user\"", "a column twice");
    bad(PAIR, "system", "user", "where \"assistant\" speaks");
    bad(PAIR, "\"user\"", "\"assistant\"", "where \"user\" speaks");
    bad(PAIR, "\"user\"", "\"system\"", "where \"user\" speaks");
    bad(PAIR, ",{\"role\":\"user\",\"content\":\"U\"}", "", "ends with \"system\"");
    bad(PAIR, "\"assistant\"", "\"user\"", "where \"assistant\" speaks");
    bad(PAIR, "[{\"role\":\"assistant\",\"content\":\"A\"}]", "[]", "is no list of messages");
    bad(PAIR, "[{\"role\":\"assistant\",\"content\":\"A\"}]", "\"A\"", "is no list of messages");
    bad(PAIR, "\"content\":\"A\"}",
        "\"content\":\"A\"},{\"role\":\"user\",\"content\":\"U\"},{\"role\":\"assistant\","
        "\"content\":\"A\"}",
        "not one message");
    bad(PAIR, "\"gpu\":\"h200\",", "", "the line lacks \"gpu\"");
    bad(PAIR, "l1_019_relu", "L1/19", "no task's name");
    bad(PAIR, "h200", "", "no GPU's name");
    bad(PAIR, "repair.r1a1", "", "\"attempt\" is no text");
    bad(PAIR, "1.5", "\"1.5\"", "\"speedup\" is no number");
    bad(PAIR, "1.5", "0", "\"speedup\" is 0");
    bad(PAIR, "1.5", "true", "\"speedup\" is no number");
    bad(PAIR, "fp32", "fp64", "no arithmetic class");
    bad(PAIR, "train", "valid", "neither train nor test");
}

static void test_bad_rl(void **state) {
    (void)state;
    bad(RL, "\"ability\":\"cuda\",", "", "the line lacks \"ability\"");
    bad(RL, "\"style\":\"rule\"", "\"style\":\"model\"", "\"style\" is not rule");
    bad(RL, "h200/l1_019_relu", "h200/l1_023_softmax", "\"ground_truth\" is not h200/l1_019_relu");
    bad(RL, "\"index\":0", "\"index\":0.5", "no whole number");
    bad(RL, "\"index\":0", "\"index\":-1", "no whole number");
    bad(RL, "\"index\":0,", "", "extra_info lacks \"index\"");
    bad(RL, "\"round\":1", "\"round\":0", "\"round\" is 0");
    bad(RL, "\"answer\":\"A\"", "\"answer\":null", "\"answer\" is no text");
    bad(RL, "\"verdict\":\"ok\"", "\"verdict\":\"fine\"", "\"verdict\" is none");
    bad(RL, "\"verdict\":\"ok\"", "\"verdict\":\"skipped\"", "\"verdict\" is none");
    bad(RL, "\"verdict\":\"ok\"", "\"verdict\":\"wrong\"", "\"class\" is given");
    bad(RL, "\"class\":\"fp32\"", "\"class\":null", "no arithmetic class");
    bad(RL, "\"ratio\":1.52", "\"ratio\":0", "\"ratio\" is 0");
    bad(RL, "\"score\":1.5", "\"score\":null", "\"score\" is no number");
    bad(RL, "-0.25", "1.6", "\"reward\" is 1.6, not from -1.5 to 1.5");
    bad(RL, "-0.25", "null", "\"reward\" is no number");
    bad(RL, "0.001", "-1", "\"bucket_variance\" is -1");
    bad(RL, "\"model\":\"m\"", "\"model\":null", "\"model\" is no text");
}

/* ---- whole files ------------------------------------------------------------------ */

static char *paths[] = {"a.jsonl", "b.jsonl", NULL};

static void check_them(void) {
    if (!freopen("/dev/null", "w", stdout)) return;
    export_check(paths);
}

/* Check both files in a child process; expect this exit code and these words. */
static void files(const char *a, const char *b, int code, const char *words) {
    file_replace("a.jsonl", a);
    file_replace("b.jsonl", b);
    ends(check_them, code, words);
}

static void test_files(void **state) {
    char *other = edited(PAIR, "train", "test"), *two = text_format("%s\n%s\n", PAIR, PAIR);
    char *softmax = edited(other, "l1_019_relu", "l1_023_softmax");
    char *mixed = text_format("%s\n%s\n", PAIR, RL), *cut = text_format("%s\n%.90s", PAIR, PAIR);
    char *both = text_format("%s\n%s", PAIR, other), *blank = text_format("%s\n\n", PAIR);
    (void)state;
    files(two, RL, 0, "");
    files("", "", 0, "");
    files(two, softmax, 0, "");
    files(two, other, KP_INPUT,
          "b.jsonl:1: l1_019_relu is in test, and in train at a.jsonl:1; export again");
    files(both, "", KP_INPUT, "a.jsonl:2: l1_019_relu is in test, and in train at a.jsonl:1");
    files(mixed, "", KP_INPUT, "a.jsonl:2: not of the same kind as the first line");
    files(two, cut, KP_INPUT, "b.jsonl:2: not a JSON object; export again");
    files(blank, "", KP_INPUT, "a.jsonl:2: not a JSON object");
    unlink("b.jsonl");
    free(other), free(two), free(softmax), free(mixed), free(cut), free(both), free(blank);
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round),    cmocka_unit_test(test_score),
        cmocka_unit_test(test_rewards),  cmocka_unit_test(test_split),
        cmocka_unit_test(test_messages), cmocka_unit_test(test_fenced),
        cmocka_unit_test(test_good),     cmocka_unit_test(test_bad_pairs),
        cmocka_unit_test(test_bad_rl),   cmocka_unit_test(test_files),
        cmocka_unit_test(test_worth)};
    return cmocka_run_group_tests(tests, enter, leave);
}
