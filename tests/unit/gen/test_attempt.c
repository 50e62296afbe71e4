/* test_attempt.c: attempts on disk: what is read, what is skipped, which is the best. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/error.h"
#include "gen/attempt.h"
#include "base/hash.h"
#include "base/json.h"
#include "record/result.h"

static char folder[] = "/tmp/kernelproof-XXXXXX";

static int enter(void **state) {
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int clean(void **state) {
    (void)state;
    return system("rm -rf root here.json");
}

static int leave(void **state) {
    return clean(state) || chdir("/") || rmdir(folder);
}

/* ---- An invented tree -------------------------------------------------------------- */

/* Write ROOT/NAME/h200/l1_019_relu SUFFIX, and create its folders. */
static void put(const char *name, const char *suffix, const char *text) {
    char *path = attempt_path("root", name, "h200", "l1_019_relu", suffix);
    for (char *p = path; (p = strchr(p + 1, '/'));) {
        *p = 0;
        mkdir(path, 0700);
        *p = '/';
    }
    file_replace(path, text);
    free(path);
}

/* Write a gen.json of this outcome, with `more` members. */
static void put_gen(const char *name, const char *outcome, const char *more) {
    char *text = text_format("{\"schema\": 1, \"attempt\": \"%s\", \"gpu\": \"h200\", \"task\": "
                             "\"l1_019_relu\", \"outcome\": \"%s\"%s}",
                             name, outcome, more);
    put(name, ".gen.json", text);
    free(text);
}

/* An ok time.json; `sha` is the kernel's. */
static char *timed(const char *class, double ratio, double low, double high, const char *sha) {
    return text_format(
        "{\"schema\": 1, \"gpu\": \"h200\", \"task\": \"l1_019_relu\", \"verdict\": \"ok\", "
        "\"reason\": null, \"class\": \"%s\", \"kernel\": {\"sha256\": \"%s\"}, "
        "\"speedup\": {\"against\": \"fp32\", \"ratio\": %g, \"low\": %g, \"high\": %g}, "
        "\"time_us\": {\"candidate\": {\"midmean\": 20}, \"fp32\": {\"midmean\": %g}}}",
        class, sha, ratio, low, high, 20 * ratio);
}

static void put_ok(const char *name, const char *class, double ratio, double low, double high) {
    char *text = timed(class, ratio, low, high, "");
    put_gen(name, "code", "");
    put(name, ".time.json", text);
    free(text);
}

static void put_bad(const char *name, const char *step, const char *verdict, const char *reason) {
    char *text =
        text_format("{\"schema\": 1, \"gpu\": \"h200\", \"task\": \"l1_019_relu\", \"verdict\": "
                    "\"%s\", \"reason\": \"%s\"}",
                    verdict, reason);
    put(name, step, text);
    free(text);
}

static struct attempts all(const char *mode) {
    return attempts_load("root", "h200", "l1_019_relu", mode);
}

/* Load the only attempt. */
static struct attempt one(struct attempts *l) {
    *l = all(NULL);
    assert_int_equal(l->n, 1);
    return l->a[0];
}

/* ---- Tests ------------------------------------------------------------------------ */

static void test_names(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      "repair",
                                      "repair.r1",
                                      "repair.r1a",
                                      "repair.r0a1",
                                      "repair.r01a1",
                                      "repair.r1a01",
                                      "repair.r1a1 ",
                                      "repair.r1a1.x",
                                      "repair.r-1a1",
                                      "repair.r1a+1",
                                      "repair.r1234567a1",
                                      "Repair.r1a1",
                                      "evolve.r1a1",
                                      "../repair.r1a1",
                                      "one_shot_r1a1",
                                      "codes",
                                      "ledger"};
    char mode[24];
    int round, index;
    assert_true(attempt_parse("branching.r2a0", mode, &round, &index));
    assert_string_equal(mode, "branching");
    assert_int_equal(round, 2);
    assert_int_equal(index, 0);
    assert_true(attempt_parse("best_of_n.r12a250", mode, &round, &index));
    assert_string_equal(mode, "best_of_n");
    assert_int_equal(round, 12);
    assert_int_equal(index, 250);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (attempt_parse(bad[i], mode, &round, &index)) fail_msg("'%s' was taken", bad[i]);
    char *path = attempt_path("root", "repair.r1a2", "h200", "l1_019_relu", ".cu");
    assert_string_equal(path, "root/repair.r1a2/h200/l1_019_relu.cu");
    free(path);
}

static void test_order(void **state) {
    (void)state;
    struct attempts l = all(NULL);
    assert_int_equal(l.n, 0); /* no root */
    attempts_free(&l);
    static const char *const names[] = {"best_of_n.r1a1", "one_shot.r1a2", "one_shot.r1a10",
                                        "repair.r1a1",    "repair.r2a1",   "repair.r10a1"};
    for (int i = 5; i >= 0; i--) put_gen(names[i], "cut", ", \"reason\": \"at the cap\"");
    mkdir("root/codes", 0700);
    mkdir("root/repair.r3a1", 0700); /* asked, but without a gen.json so far */
    mkdir("root/repair.r3a1/h200", 0700);
    file_replace("root/ledger", "");
    l = all(NULL);
    assert_int_equal(l.n, 6);
    for (int i = 0; i < 6; i++) assert_string_equal(l.a[i].name, names[i]);
    assert_int_equal(l.a[2].round, 1);
    assert_int_equal(l.a[2].index, 10);
    assert_string_equal(l.a[2].mode, "one_shot");
    assert_string_equal(l.a[2].outcome, "cut");
    assert_string_equal(l.a[2].reason, "at the cap");
    assert_string_equal(l.a[2].verdict, "");
    attempts_free(&l);
    l = all("repair");
    assert_int_equal(l.n, 3);
    assert_string_equal(l.a[2].name, "repair.r10a1");
    attempts_free(&l);
}

static void test_gen(void **state) {
    (void)state;
    struct attempts l;
    put_gen(
        "branching.r2a3", "code",
        ", \"model\": \"m, n\", \"date\": \"2026-11-21T10:00:00Z\", \"idea\": 1, \"code_sha256\": "
        "\"abc\", \"tokens\": {\"input\": 1000, \"output\": 200}, \"cost_usd\": 0.5, \"seconds\": "
        "12");
    struct attempt a = one(&l);
    assert_string_equal(a.model, "m, n");
    assert_string_equal(a.date, "2026-11-21T10:00:00Z");
    assert_string_equal(a.code_hash, "abc");
    assert_int_equal(a.idea, 1);
    assert_true(a.input_tokens == 1000 && a.output_tokens == 200 && a.cost == 0.5 &&
                a.seconds == 12);
    assert_string_equal(json_text(a.gen, "attempt", ""), "branching.r2a3");
    assert_null(a.result);
    assert_string_equal(a.verdict, ""); /* not measured yet */
    assert_false(attempt_ok(&a));
    attempts_free(&l);
    put_gen("branching.r2a3", "code", ", \"tokens\": null, \"cost_usd\": null, \"idea\": null");
    a = one(&l);
    assert_true(isnan(a.input_tokens) && isnan(a.output_tokens) && isnan(a.cost));
    assert_int_equal(a.idea, -1);
    attempts_free(&l);
    put_gen("branching.r2a3", "duplicate", ", \"same_as\": \"branching.r1a1\"");
    put_bad("branching.r2a3", ".time.json", "wrong", "of an older kernel here");
    a = one(&l);
    assert_string_equal(a.verdict, "duplicate");
    assert_string_equal(a.same_as, "branching.r1a1");
    assert_string_equal(a.reason, "");
    attempts_free(&l);
}

/* Misplaced files are skipped with a line each, and the rest is read. */
static void test_foreign(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",
        "{\"schema\": 1, \"attempt\": \"repa",
        "[1]",
        "{\"schema\": 2, \"attempt\": \"repair.r1a1\", \"gpu\": \"h200\", \"task\": "
        "\"l1_019_relu\", "
        "\"outcome\": \"cut\"}",
        "{\"schema\": 1, \"attempt\": \"repair.r1a2\", \"gpu\": \"h200\", \"task\": "
        "\"l1_019_relu\", "
        "\"outcome\": \"cut\"}",
        "{\"schema\": 1, \"attempt\": \"repair.r1a1\", \"gpu\": \"a100\", \"task\": "
        "\"l1_019_relu\", "
        "\"outcome\": \"cut\"}",
        "{\"schema\": 1, \"attempt\": \"repair.r1a1\", \"gpu\": \"h200\", \"task\": \"l1_023\", "
        "\"outcome\": \"cut\"}",
        "{\"schema\": 1, \"attempt\": \"repair.r1a1\", \"gpu\": \"h200\", \"task\": "
        "\"l1_019_relu\"}",
        "{\"schema\": 1, \"attempt\": \"repair.r1a1\", \"gpu\": \"h200\", \"task\": "
        "\"l1_019_relu\", "
        "\"outcome\": \"wonderful\"}",
        "{\"schema\": 1, \"attempt\": \"repair.r1a1\", \"gpu\": \"h200\", \"task\": "
        "\"l1_019_relu\", "
        "\"outcome\": \"duplicate\"}"};
    put_gen("repair.r2a1", "refused", "");
    FILE *said = tmpfile();
    int real = dup(2);
    assert_non_null(said);
    dup2(fileno(said), 2);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put("repair.r1a1", ".gen.json", texts[i]);
        struct attempts l = all(NULL);
        dup2(real, 2);
        if (l.n != 1) fail_msg("taken: %s", texts[i]);
        assert_string_equal(l.a[0].name, "repair.r2a1");
        attempts_free(&l);
        dup2(fileno(said), 2);
    }
    dup2(real, 2);
    close(real);
    char line[600];
    size_t lines = 0;
    rewind(said);
    while (fgets(line, sizeof line, said)) {
        lines++;
        assert_non_null(strstr(line, "root/repair.r1a1/h200/l1_019_relu.gen.json "));
        assert_non_null(strstr(line, ": left out\n"));
    }
    assert_int_equal(lines, sizeof texts / sizeof *texts);
    fclose(said);
}

static void test_results(void **state) {
    (void)state;
    struct attempts l;
    put_ok("repair.r1a1", "fp32", 1.8, 1.75, 1.85);
    struct attempt a = one(&l);
    assert_true(attempt_ok(&a));
    assert_string_equal(a.verdict, "ok");
    assert_string_equal(a.class, "fp32");
    assert_true(a.ratio == 1.8 && a.low == 1.75 && a.high == 1.85 && a.us == 20 &&
                a.against_us == 36);
    attempts_free(&l);
    /* An unusable time.json is skipped with a line: the kernel counts as not measured. */
    put("repair.r1a1", ".time.json", "{\"schema\": 1, \"verd");
    put_bad("repair.r1a1", ".build.json", "ok", "");
    a = one(&l);
    assert_string_equal(a.verdict, "");
    assert_non_null(a.result);
    assert_false(attempt_ok(&a));
    attempts_free(&l);
    unlink("root/repair.r1a1/h200/l1_019_relu.time.json");
    put("repair.r1a1", ".verify.json",
        "{\"schema\": 1, \"task\": \"l1_019_relu\", \"verdict\": \"ok\", \"class\": \"fp32\"}");
    a = one(&l);
    assert_string_equal(a.verdict, ""); /* an ok of verify is not final */
    attempts_free(&l);
    put("repair.r1a1", ".verify.json",
        "{\"schema\": 1, \"task\": \"l1_019_relu\", \"verdict\": \"wrong\", \"reason\": \"y[7]\"}");
    a = one(&l);
    assert_string_equal(a.verdict, "wrong");
    assert_string_equal(a.reason, "y[7]");
    attempts_free(&l);
    unlink("root/repair.r1a1/h200/l1_019_relu.verify.json");
    put_bad("repair.r1a1", ".build.json", "build", "x.cu(3): error");
    a = one(&l);
    assert_string_equal(a.verdict, "build");
    assert_string_equal(a.reason, "x.cu(3): error");
    assert_true(a.ratio == 0 && a.us == 0);
    attempts_free(&l);
}

/* If a kernel is newer than its result, the result counts only if its hash matches the kernel. */
static void test_stale(void **state) {
    (void)state;
    struct attempts l;
    char sha[65];
    text_sha256("kernel\n", 7, sha);
    put_gen("repair.r1a1", "code", "");
    char *text = timed("fp32", 2, 1.9, 2.1, sha);
    put("repair.r1a1", ".time.json", text);
    usleep(20000);
    put("repair.r1a1", ".cu", "kernel\n");
    assert_true(one(&l).ratio == 2);
    attempts_free(&l);
    put("repair.r1a1", ".cu", "another\n");
    assert_string_equal(one(&l).verdict, "");
    attempts_free(&l);
    free(text);
}

static void test_current(void **state) {
    (void)state;
    struct attempt a;
    char why[200] = "", *text = timed("tf32", 1.5, 1.4, 1.6, "abcd");
    mkdir("root", 0700);
    file_replace("here.json", text);
    assert_true(attempt_current(&a, "here.json", "abcd", why, sizeof why));
    assert_string_equal(a.name, "current");
    assert_true(attempt_ok(&a) && a.ratio == 1.5 && a.idea == -1 && isnan(a.cost));
    assert_string_equal(a.class, "tf32");
    cJSON_Delete(a.result);
    assert_false(attempt_current(&a, "here.json", "abce", why, sizeof why));
    assert_string_equal(why, "is of another kernel than the present one");
    assert_false(attempt_current(&a, "nowhere.json", "abcd", why, sizeof why));
    assert_non_null(strstr(why, "cannot be read"));
    free(text);
}

/* An ok time.json with flags. */
static char *flagged(const char *class, double ratio, const char *flags) {
    char *plain = timed(class, ratio, ratio - 0.1, ratio + 0.1, "");
    char *text = text_format("%.*s, \"flags\": %s}", (int)strlen(plain) - 1, plain, flags);
    free(plain);
    return text;
}

/* A time that cannot be trusted does not count; other flags change nothing. */
static void test_doubtful(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"[\"latency-bound\", \"decoy-ratio\"]", "flagged decoy-ratio"},
        {"[7, \"clocks-disagree: the host waited longer\"]",
         "flagged clocks-disagree: the host waited longer"}};
    struct attempts l;
    struct attempt a;
    char *text, why[200] = "";
    put_gen("repair.r1a1", "code", "");
    for (int i = 0; i < 2; i++) {
        text = flagged("fp32", 9, bad[i][0]);
        put("repair.r1a1", ".time.json", text);
        a = one(&l);
        assert_false(attempt_ok(&a));
        assert_string_equal(a.verdict, "doubtful");
        assert_string_equal(a.reason, bad[i][1]);
        assert_true(a.ratio == 0 && a.low == 0 && a.high == 0 && a.us == 0 && a.against_us == 0);
        assert_non_null(a.result);
        assert_null(attempts_best(&l));
        attempts_free(&l);
        file_replace("here.json", text);
        free(text);
        assert_true(attempt_current(&a, "here.json", "", why, sizeof why));
        assert_false(attempt_ok(&a));
        cJSON_Delete(a.result);
    }
    text = flagged("fp32", 1.5, "[\"noisy\", \"weak-baseline: no cuDNN\", \"decoy-ratios\"]");
    put("repair.r1a1", ".time.json", text);
    free(text);
    a = one(&l);
    assert_true(attempt_ok(&a) && a.ratio == 1.5);
    attempts_free(&l);
}

static void best_is(const char *name) {
    struct attempts l = all(NULL);
    const struct attempt *best = attempts_best(&l);
    if (name) {
        assert_non_null(best);
        assert_string_equal(best->name, name);
    } else {
        assert_null(best);
    }
    attempts_free(&l);
}

static void test_best(void **state) {
    (void)state;
    put_gen("repair.r1a1", "code", "");
    best_is(NULL);
    put_ok("repair.r1a2", "bf16", 9, 8.9, 9.1);
    best_is("repair.r1a2");
    put_ok("one_shot.r1a1", "tf32", 3, 2.9, 3.1); /* more accurate, but slower */
    best_is("one_shot.r1a1");
    put_ok("repair.r2a1", "fp32", 1.50, 1.30, 1.70);
    best_is("repair.r2a1");
    put_ok("repair.r2a2", "fp32", 1.45, 1.44, 1.46); /* perhaps slower, but with a higher low end */
    best_is("repair.r2a2");
    put_ok("contrastive.r1a1", "fp32", 1.45, 1.44, 1.46); /* a tie: the first by name wins */
    best_is("contrastive.r1a1");
    put_bad("contrastive.r1a1", ".time.json", "wrong", "y[3]");
    best_is("repair.r2a2");
    char *text = flagged("fp32", 9, "[\"decoy-ratio\"]"); /* the fastest, if its time could be
                                                           * trusted */
    put_gen("repair.r3a1", "code", "");
    put("repair.r3a1", ".time.json", text);
    free(text);
    best_is("repair.r2a2");
    assert_int_equal(class_rank("exact"), class_rank("fp32"));
    assert_true(class_rank("fp32") < class_rank("fp32-normwise"));
    assert_true(class_rank("fp32-normwise") < class_rank("tf32"));
    assert_true(class_rank("tf32") < class_rank("f16") && class_rank("f16") < class_rank("bf16"));
    assert_true(class_rank("bf16") < CLASS_UNKNOWN && class_rank("") == CLASS_UNKNOWN);
    assert_int_equal(class_rank("fp8"), CLASS_UNKNOWN);
}

static void test_choice(void **state) {
    (void)state;
    enum { N = 20000, BINS = 20 };
    struct choice a = choice_seed("0 repair.r1a1"), b = choice_seed("0 repair.r1a1"),
                  c = choice_seed("0 repair.r1a2");
    int same = 0, seen[BINS] = {0}, first[BINS] = {0};
    for (int i = 0; i < 100; i++) {
        double x = choice_uniform(&a);
        assert_true(x == choice_uniform(&b));
        same += x == choice_uniform(&c);
    }
    assert_int_equal(same, 0);
    /* Uniform within a sequence, and over the first numbers of neighbouring seeds. */
    for (int i = 0; i < N; i++) {
        char text[40];
        snprintf(text, sizeof text, "0 best_of_n.r1a%d", i);
        struct choice d = choice_seed(text);
        double x = choice_uniform(&a), y = choice_uniform(&d);
        assert_true(x >= 0 && x < 1 && y >= 0 && y < 1);
        seen[(int)(x * BINS)]++;
        first[(int)(y * BINS)]++;
    }
    double expected = (double)N / BINS, spread = 4 * sqrt(expected);
    for (int i = 0; i < BINS; i++) {
        assert_true(fabs(seen[i] - expected) < spread);
        assert_true(fabs(first[i] - expected) < spread);
    }
}

int main(void) {
    kp_program("test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_names, clean),
        cmocka_unit_test_teardown(test_order, clean),
        cmocka_unit_test_teardown(test_gen, clean),
        cmocka_unit_test_teardown(test_foreign, clean),
        cmocka_unit_test_teardown(test_results, clean),
        cmocka_unit_test_teardown(test_stale, clean),
        cmocka_unit_test_teardown(test_current, clean),
        cmocka_unit_test_teardown(test_best, clean),
        cmocka_unit_test_teardown(test_doubtful, clean),
        cmocka_unit_test_teardown(test_choice, clean),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
