/* test_define.c: the results of ops compared with values from elsewhere: computed by hand
 * (tests/data/ops.json and hand_values.json) and by PyTorch (torch_values.json, written by
 * make_torch_values.py).  Every op must have values, a case and device code.  Run it from the root
 * of the tree; an argument names another folder of data. */
#include <glob.h>
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
#include "op_case.h"

enum { MOST_TENSORS = 32 };

static const char *data_folder = "tests/data";
static char scratch[] = "/tmp/test_define_XXXXXX";

static bool has_case[KP_OP_COUNT], has_values[KP_OP_COUNT];

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

/* Run task `t` of case `c` on the numbers `in` and compare with `out`. */
static void check_values(struct kp_task *t, const cJSON *c, const cJSON *in, const cJSON *out) {
    double *tensors[MOST_TENSORS] = {0};
    double *want[KP_MAX_OUTPUTS] = {0}, *got[KP_MAX_OUTPUTS] = {0};
    bool exact = cJSON_IsTrue(member(c, "exact"));
    const cJSON *message = member(c, "message");
    assert_true(t->ntensors <= MOST_TENSORS);
    for (int i = 0; i < t->ntensors; i++)
        tensors[i] =
            numbers(t->name, cJSON_GetArrayItem(in, i), kp_shape_count(&t->tensors[i].shape));
    for (int i = 0; i < t->noutputs; i++) {
        int64_t count = kp_shape_count(&t->values[t->outputs[i]].shape);
        want[i] = numbers(t->name, cJSON_GetArrayItem(out, i), count);
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
                exact || v->dtype >= KP_I64);
    }
    for (int i = 0; i < t->nops; i++) has_values[t->ops[i].def->id] = true;
    for (int i = 0; i < MOST_TENSORS; i++) free(tensors[i]);
    for (int i = 0; i < KP_MAX_OUTPUTS; i++) free(want[i]), free(got[i]);
}

/* Check all cases of a file of whole tasks. */
static void check_tasks(const char *name) {
    cJSON *json = read_values(name);
    const cJSON *c;
    cJSON_ArrayForEach(c, member(json, "cases")) {
        struct kp_task *t = load(member(c, "task"));
        check_values(t, c, member(c, "tensors"), member(c, "outputs"));
        task_free(t);
    }
    cJSON_Delete(json);
}

static void test_hand(void **state) {
    (void)state;
    check_tasks("hand_values.json");
}

static void test_torch(void **state) {
    (void)state;
    check_tasks("torch_values.json");
}

/* Each case of ops.json loads, and computes its values if it has any. */
static void test_ops(void **state) {
    (void)state;
    cJSON *json = read_values("ops.json");
    const cJSON *c;
    cJSON_ArrayForEach(c, member(json, "cases")) {
        char text[4096];
        op_case_task(c, "f32", text, sizeof text);
        cJSON *task = cJSON_Parse(text);
        if (!task) fail_msg("%s: not a task: %s", op_case_text(c, "name"), text);
        struct kp_task *t = load(task);
        for (int i = 0; i < t->nops; i++) has_case[t->ops[i].def->id] = true;
        if (member(c, "in")) check_values(t, c, member(c, "in"), member(c, "out"));
        task_free(t);
        cJSON_Delete(task);
    }
    cJSON_Delete(json);
}

/* Whether a source of the CUDA reference defines the implementation of an op. */
static bool has_device_code(const char *op) {
    static const char *const patterns[] = {"reference/cuda_*s/*.c*", "reference/define/*.h"};
    char row[80], element[80], line[512];
    bool found = false;
    glob_t files;
    snprintf(row, sizeof row, "KP_IMPL(%s,", op);
    snprintf(element, sizeof element, "ELEMENTWISE(%s,", op);
    for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++)
        glob(patterns[k], k ? GLOB_APPEND : 0, NULL, &files);
    assert_true(files.gl_pathc > 5);
    for (size_t k = 0; k < files.gl_pathc && !found; k++) {
        FILE *f = fopen(files.gl_pathv[k], "r");
        while (f && !found && fgets(line, sizeof line, f))
            found = !strncmp(line, row, strlen(row)) || !strncmp(line, element, strlen(element));
        if (f) fclose(f);
    }
    globfree(&files);
    return found;
}

/* Runs last.  Every op needs a case, values and device code.  (Without its row or its meaning it
 * does not link.) */
static void test_every_op(void **state) {
    (void)state;
    for (int i = 0; i < KP_OP_COUNT; i++) {
        const struct kp_op_def *op = op_get((enum kp_op_id)i);
        if (!has_case[i]) fail_msg("tests/data/ops.json has no case of %s: add one", op->name);
        if (!has_values[i])
            fail_msg("no case of %s has values: add `in` and `out` to one in tests/data/ops.json",
                     op->name);
        if (!op->view && !has_device_code(op->name))
            fail_msg("no file of reference/cuda_ops or cuda_products has KP_IMPL(%s, ...): add it",
                     op->name);
    }
}

/* The row of an elementwise op has the operands and numbers that its expression uses. */
static void test_elementwise(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int operands, numbers;
    } ops[] = {
#define ROW(name, operands, numbers, expression) {#name, operands, numbers},
#define FORM(name, operands, numbers, expression)
#define ELEMENTWISE ROW
#include "define/elementwise.h"
#define ELEMENTWISE ROW
#include "define/forms.h"
#define ELEMENTWISE ROW
#include "define/functions.h"
#define ELEMENTWISE ROW
#include "define/terms.h"
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        const struct kp_op_def *op = op_find(ops[i].name);
        int numbers = 0;
        if (!op) fail_msg("a table of expressions has %s, which is no op", ops[i].name);
        for (const struct kp_attr_def *a = op->attr; a->key; a++)
            numbers += a->kinds >> KP_ATTR_FLOAT & 1;
        if (op->max_in != ops[i].operands || numbers != ops[i].numbers ||
            op->max_in + numbers > KP_MAX_ARGUMENTS)
            fail_msg("%s takes %d operands and %d numbers; its expression, %d and %d", op->name,
                     op->max_in, numbers, ops[i].operands, ops[i].numbers);
    }
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
    const char *suites[] = {"hand", "torch", "ops"};
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
        snprintf(path, sizeof path, "%s/%s", scratch, suites[i]);
        rmdir(path);
    }
    return rmdir(scratch);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comparison),  cmocka_unit_test(test_hand),
        cmocka_unit_test(test_torch),       cmocka_unit_test(test_ops),
        cmocka_unit_test(test_elementwise), cmocka_unit_test(test_every_op)};
    if (argc > 1) data_folder = argv[1];
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
