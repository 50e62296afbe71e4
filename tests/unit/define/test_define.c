/* test_define.c: the results of ops compared with values from elsewhere: computed by hand
 * (tests/data/hand_values.json) and by PyTorch (torch_values.json, written by
 * tests/data/make_torch_values.py).  A case is a whole task with its tensors and the expected
 * outputs.  Run it from the root of the tree, or with the folder of the two files as the
 * argument. */
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
#include <cjson/cJSON.h>

#include "define/define.h"

static const char *data_folder = "tests/data";
static char scratch[] = "/tmp/test_define_XXXXXX";

/* The file as JSON.  If it is absent, the test fails and says how to make it. */
static cJSON *read_values(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", data_folder, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("%s is missing; run this from the root of the tree, or make the file with "
                 "tests/data/make_torch_values.py on a machine with PyTorch",
                 path);
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    char *text = calloc((size_t)size + 1, 1);
    assert_true(text && fread(text, 1, (size_t)size, f) == (size_t)size);
    fclose(f);
    cJSON *json = cJSON_Parse(text);
    free(text);
    if (!json) fail_msg("%s is not valid JSON", path);
    return json;
}

static const cJSON *member(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* Load a case's task through a file SUITE/NAME.json, where a task must be. */
static struct kp_task *load(const cJSON *task) {
    char path[512], message[1024];
    const char *suite = member(task, "suite")->valuestring;
    snprintf(path, sizeof path, "%s/%s", scratch, suite);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/%s.json", scratch, suite, member(task, "task")->valuestring);
    char *text = cJSON_Print(task);
    FILE *f = fopen(path, "w");
    assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
    free(text);
    struct kp_task *t = task_load_error(path, message, sizeof message);
    unlink(path);
    if (!t) fail_msg("%s", message);
    return t;
}

/* Read the `count` numbers of a JSON list; "nan", "inf" and "-inf" are strings there. */
static double *numbers(const char *name, const cJSON *list, int64_t count) {
    double *x = calloc((size_t)count, sizeof *x);
    if (cJSON_GetArraySize(list) != count)
        fail_msg("%s: a list of %d numbers; expected %lld", name, cJSON_GetArraySize(list),
                 (long long)count);
    int i = 0;
    const cJSON *v;
    cJSON_ArrayForEach(v, list) x[i++] =
        cJSON_IsString(v) ? strtod(v->valuestring, NULL) : v->valuedouble;
    return x;
}

/* The root mean square of the finite values, the scale of errors: single values may be close to
 * zero. */
static double scale_of(const double *x, int64_t count) {
    double sum = 0;
    int64_t finite = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(x[i])) sum += x[i] * x[i], finite++;
    return finite ? sqrt(sum / (double)finite) : 0;
}

static bool agrees(double got, double want, double tolerance) {
    if (isnan(want)) return isnan(got);
    return got == want || fabs(got - want) <= tolerance;
}

/* Compare every element of one output; integers and `exact` cases bit for bit. */
static void compare(const char *name, int output, const double *got, const double *want,
                    int64_t count, bool exact) {
    double scale = scale_of(want, count);
    for (int64_t i = 0; i < count; i++)
        if (!agrees(got[i], want[i], exact ? 0 : 1e-12 * (fabs(want[i]) + scale)))
            fail_msg("%s: output %d, element %lld of %lld: got %.17g, expected %.17g", name, output,
                     (long long)i, (long long)count, got[i], want[i]);
}

/* Run one case and compare; mark its ops in seen[]. */
static void check_case(const cJSON *c, bool *seen) {
    struct kp_task *t = load(member(c, "task"));
    double *tensors[8] = {0}, *want[4] = {0}, *got[4] = {0};
    bool exact = cJSON_IsTrue(member(c, "exact"));
    const cJSON *message = member(c, "message");
    assert_true(t->ntensors <= 8);
    for (int i = 0; i < t->ntensors; i++)
        tensors[i] = numbers(t->name, cJSON_GetArrayItem(member(c, "tensors"), i),
                             kp_shape_count(&t->tensors[i].shape));
    for (int i = 0; i < t->noutputs; i++) {
        int64_t count = kp_shape_count(&t->values[t->outputs[i]].shape);
        want[i] = numbers(t->name, cJSON_GetArrayItem(member(c, "outputs"), i), count);
        got[i] = calloc((size_t)count, sizeof(double));
    }
    const char *found = define_run(t, (const double *const *)tensors, got);
    if (message) {
        if (!found || !strstr(found, message->valuestring))
            fail_msg("%s: message is \"%s\", expected \"%s\"", t->name, found ? found : "",
                     message->valuestring);
    } else if (found) {
        fail_msg("%s: %s", t->name, found);
    }
    for (int i = 0; i < t->noutputs && !message; i++) {
        const struct kp_value *v = &t->values[t->outputs[i]];
        compare(t->name, i, got[i], want[i], kp_shape_count(&v->shape),
                exact || v->dtype == KP_I64);
    }
    for (int i = 0; i < t->nops; i++) seen[t->ops[i].def->id] = true;
    for (int i = 0; i < 8; i++) free(tensors[i]);
    for (int i = 0; i < 4; i++) free(want[i]), free(got[i]);
    task_free(t);
}

/* Check all cases of a file; together they must cover every op. */
static void check_file(const char *name) {
    bool seen[KP_OP_COUNT] = {false};
    cJSON *json = read_values(name);
    const cJSON *c;
    cJSON_ArrayForEach(c, member(json, "cases")) check_case(c, seen);
    for (int i = 0; i < KP_OP_COUNT; i++)
        if (!seen[i]) fail_msg("%s: no case has %s", name, op_get((enum kp_op_id)i)->name);
    cJSON_Delete(json);
}

static void test_hand(void **state) {
    (void)state;
    check_file("hand_values.json");
}

static void test_torch(void **state) {
    (void)state;
    check_file("torch_values.json");
}

/* The comparison itself rejects what it must. */
static void test_comparison(void **state) {
    (void)state;
    assert_true(agrees(NAN, NAN, 0) && agrees(INFINITY, INFINITY, 0) && agrees(-0.0, 0.0, 0));
    assert_false(agrees(NAN, 1, 1e9));
    assert_false(agrees(1, NAN, 1e9));
    assert_false(agrees(INFINITY, 1, 1e9));
    assert_false(agrees(-INFINITY, INFINITY, 1e9));
    assert_false(agrees(1 + 1e-9, 1, 1e-12));
}

static int make_scratch(void **state) {
    (void)state;
    return mkdtemp(scratch) ? 0 : -1;
}

static int remove_scratch(void **state) {
    (void)state;
    char path[512];
    const char *suites[] = {"hand", "torch"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", scratch, suites[i]);
        rmdir(path);
    }
    return rmdir(scratch);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_comparison),
                                       cmocka_unit_test(test_hand), cmocka_unit_test(test_torch)};
    if (argc > 1) data_folder = argv[1];
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
