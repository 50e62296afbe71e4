/* test_kernelbench.c: small versions of KernelBench's problems, as `make import` makes them,
 * against what PyTorch's own modules compute in float64 (tests/data/kernelbench_values.jsonl,
 * written by make_kernelbench_values.py).  Both sides draw the contents by the rule of drawn(). Run
 * it from the root of the tree. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <cjson/cJSON.h>

#include "define/define.h"
#include "gpu/values.h"

static const char *const values_file = "tests/data/kernelbench_values.jsonl";
static const double tolerance = 1e-9; /* of an element and of the root mean square */

/* Element i, before wraps, of a tensor whose number is `index`: u is even in [0,1). */
static double plain(const struct kp_tensor *x, int index, int64_t i) {
    const struct kp_fill *f = &x->fill;
    double u = (double)(kp_mix(kp_mix(0, (uint64_t)index), (uint64_t)i) >> 40) * 0x1p-24;
    switch (f->kind) {
    case KP_FILL_UNIFORM: return f->a + (f->b - f->a) * u;
    case KP_FILL_NORMAL: return f->a + f->b * (2 * u - 1);
    case KP_FILL_CONSTANT: return f->a + (x->domain == KP_DOMAIN_DECLARED ? 0 : 0.25) * (2 * u - 1);
    case KP_FILL_INTEGERS: return f->a + floor(u * (f->b - f->a));
    case KP_FILL_FAN_IN: return (2 * u - 1) / sqrt(f->a);
    case KP_FILL_BERNOULLI: return u < f->a;
    case KP_FILL_SIGNS: return u < 0.5 ? -1 : 1;
    case KP_FILL_VALUES: return x->dtype == KP_F32 ? (float)f->values[i] : f->values[i];
    case KP_FILL_TRANSPOSED: break;
    }
    fail_msg("%s has a fill that has no rule here", x->name);
    return 0;
}

/* The contents of a tensor: as contents() of make_kernelbench_values.py. */
static double *drawn(const struct kp_task *t, int index) {
    const struct kp_tensor *x = &t->tensors[index];
    int64_t count = kp_shape_count(&x->shape), n = x->shape.n;
    int64_t cols = n >= 1 ? x->shape.dim[n - 1] : 1, rows = n >= 2 ? x->shape.dim[n - 2] : 1;
    double *v = calloc((size_t)count, sizeof *v);
    assert_non_null(v);
    for (int64_t i = 0; i < count; i++) {
        int64_t c = i % cols, r = i / cols % rows, mirror = i - r * cols - c + c * cols + r;
        v[i] = plain(x, index, i);
        if (x->fill.wrap & KP_WRAP_SOFTMAX) v[i] = (v[i] + 0.125) / (double)cols;
        if (x->fill.wrap & KP_WRAP_SYMMETRIC) v[i] = 0.5 * (v[i] + plain(x, index, mirror));
        if (x->fill.wrap & KP_WRAP_UPPER && c < r) v[i] = 0;
        if (x->fill.wrap & KP_WRAP_LOWER && c > r) v[i] = 0;
    }
    return v;
}

/* Compare one output with what PyTorch found. */
static void compare(const struct kp_task *t, int output, const double *got, const cJSON *want) {
    const struct kp_value *v = &t->values[t->outputs[output]];
    int64_t count = kp_shape_count(&v->shape);
    const cJSON *at = cJSON_GetObjectItem(want, "at"), *is = cJSON_GetObjectItem(want, "is");
    double rms = cJSON_GetObjectItem(want, "rms")->valuedouble, sum = 0;
    for (int64_t i = 0; i < count; i++) sum += got[i] * got[i];
    double found = sqrt(sum / (double)count);
    if (!(fabs(found - rms) <= tolerance * rms))
        fail_msg("%s: output %d has the root mean square %.17g; expected %.17g", t->name, output,
                 found, rms);
    for (int k = 0; k < cJSON_GetArraySize(at); k++) {
        int64_t i = (int64_t)cJSON_GetArrayItem(at, k)->valuedouble;
        double value = cJSON_GetArrayItem(is, k)->valuedouble;
        assert_true(i >= 0 && i < count);
        if (!(fabs(got[i] - value) <= tolerance * (fabs(value) + rms)))
            fail_msg("%s: output %d, element %lld of %lld: got %.17g, expected %.17g", t->name,
                     output, (long long)i, (long long)count, got[i], value);
    }
}

/* One line of the file. */
static void check_line(const char *text) {
    char message[1024];
    cJSON *line = cJSON_Parse(text);
    if (!line) fail_msg("%s: a line is no JSON", values_file);
    char *task = cJSON_Print(cJSON_GetObjectItem(line, "task"));
    struct kp_task *t = task_parse(task, values_file, message, sizeof message);
    if (!t) fail_msg("%s", message);
    const cJSON *values = cJSON_GetObjectItem(line, "values");
    double **in = calloc((size_t)t->ntensors, sizeof *in), *out[KP_MAX_OUTPUTS] = {0};
    assert_int_equal(cJSON_GetArraySize(values), t->noutputs);
    for (int i = 0; i < t->ntensors; i++) in[i] = drawn(t, i);
    for (int i = 0; i < t->noutputs; i++)
        out[i] = calloc((size_t)kp_shape_count(&t->values[t->outputs[i]].shape), sizeof **out);
    const char *wrong = define_run(t, (const double *const *)in, out);
    if (wrong) fail_msg("%s: %s", t->name, wrong);
    for (int i = 0; i < t->noutputs; i++) compare(t, i, out[i], cJSON_GetArrayItem(values, i));
    for (int i = 0; i < t->ntensors; i++) free(in[i]);
    for (int i = 0; i < t->noutputs; i++) free(out[i]);
    free(in);
    free(task);
    task_free(t);
    cJSON_Delete(line);
}

/* Tasks that no sizes of the file make small enough for make_kernelbench_values.py (MOST_FLOPS,
 * MOST_NUMBERS): `make conformance` has them at full size. */
static const char *const too_large[] = {
    "l3_005_alexnet",         "l3_010_resnet101",  "l3_011_vgg16",
    "l3_012_vgg19",           "l3_018_squeezenet", "l3_019_mobilenet_v1",
    "l3_024_efficientnet_b2", "l3_029_swin_mlp",   "l3_030_swin_transformer_v2"};
enum { TOO_LARGE = sizeof too_large / sizeof *too_large };

/* scandir filter: task files. */
static int is_json(const struct dirent *e) {
    const char *dot = strrchr(e->d_name, '.');
    return dot && !strcmp(dot, ".json");
}

/* Each task of a suite is on a line of `lines`, or too large.  Returns how many are on one. */
static int check_suite(const char *suite, const char *lines) {
    struct dirent **file = NULL;
    int n = scandir(suite, &file, is_json, alphasort), found = 0;
    if (n < 0) fail_msg("%s is missing; run this from the root of the tree", suite);
    for (int i = 0; i < n; i++) {
        char mark[300];
        bool large = false;
        *strrchr(file[i]->d_name, '.') = 0;
        for (int k = 0; k < TOO_LARGE; k++) large = large || !strcmp(too_large[k], file[i]->d_name);
        snprintf(mark, sizeof mark, "\"task\":\"%s\"", file[i]->d_name);
        if (!strstr(lines, mark) != large)
            fail_msg("%s: %s is %sthere", values_file, file[i]->d_name, large ? "" : "not ");
        found += !large;
        free(file[i]);
    }
    free(file);
    return found;
}

static void test_values(void **state) {
    (void)state;
    char *text = NULL, *all = NULL;
    size_t size = 0, all_size = 0;
    int lines = 0;
    FILE *f = fopen(values_file, "r"), *copy = open_memstream(&all, &all_size);
    if (!f) fail_msg("%s is missing; run this from the root of the tree", values_file);
    assert_non_null(copy);
    for (; getline(&text, &size, f) > 0; lines++) check_line(text), fputs(text, copy);
    fclose(f), fclose(copy);
    int found = check_suite("tasks/level1", all) + check_suite("tasks/level2", all) +
                check_suite("tasks/level3", all);
    assert_int_equal(found, 250 - TOO_LARGE);
    assert_int_equal(lines, found);
    free(text), free(all);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
