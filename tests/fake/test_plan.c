/* test_plan.c: the real planner and executor (reference/cuda) without a GPU: every op runs by its
 * meaning (reference/define) on strided arrays in the host's memory.
 *
 * The cases of tests/data/ops.json run as the oracle (whole, in single rows, in slices) and as a
 * baseline, once with ops that take any strides and once with ops that ask for dense operands. */
#include "../gpu/numbers.h"
#include "base/error.h"
#include "host_ops.h"
#include "op_case.h"

static void run_baseline(struct fixture *f) {
    struct kp_exec *e = kp_exec_create(f->task, KP_MATH_FP32);
    void *workspace = memory((int64_t)kp_exec_workspace(e), 1), *out[KP_MAX_OUTPUTS];
    const struct kp_value *v[KP_MAX_OUTPUTS];
    for (int o = 0; o < f->task->noutputs; o++) {
        v[o] = &f->task->values[f->task->outputs[o]];
        out[o] = memory(kp_shape_count(&v[o]->shape), kp_dtype_size(v[o]->dtype));
    }
    kp_exec_run(e, (const void *const *)f->tensor, out, workspace, 0);
    for (int o = 0; o < f->task->noutputs; o++) {
        for (int64_t i = 0; i < kp_shape_count(&v[o]->shape); i++)
            f->got[o][i] = get(out[o], v[o]->dtype, i);
        free(out[o]);
    }
    compare(f, "a baseline", 1e-5);
    free(workspace);
    kp_exec_destroy(e);
}

/* The cases of ops.json; cJSON_Delete it. */
static cJSON *cases(void) {
    FILE *file = fopen("tests/data/ops.json", "rb");
    static char text[1 << 18];
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    cJSON *json = cJSON_Parse(text);
    if (!json) fail_msg("tests/data/ops.json is not valid JSON, or too large for this test");
    return json;
}

/* Every case but those that are long for the sake of device code. */
static void test_cases(void **state) {
    (void)state;
    cJSON *json = cases();
    const cJSON *c;
    cJSON_ArrayForEach(c, cJSON_GetObjectItemCaseSensitive(json, "cases")) {
        struct fixture f;
        if (strstr(op_case_text(c, "tensors"), "70001")) continue;
        for (int dense = 0; dense < 2; dense++) {
            ask_dense = dense;
            begin(&f, c, "f32");
            size_t bytes = run_oracle(&f, "whole", SIZE_MAX, true);
            size_t least = run_oracle(&f, "in single rows", 0, false);
            if (bytes) assert_true(run_oracle(&f, "in slices", bytes - 1, true) >= least);
            run_baseline(&f);
            end(&f);
        }
    }
    cJSON_Delete(json);
}

/* In 16 bits, an op that computes rounds its result, and one that moves elements does not. */
static void test_rounding(void **state) {
    (void)state;
    static const struct {
        const char *graph;
        int results;
    } graphs[] = {
        {"t[4,3] = relu(x)", 1},
        {"t[4,6] = cat(x, x; dim=1)", 0},
        {"r[4,3] = relu(x)|c[4,6] = cat(r, r; dim=1)|t[4,6] = tanh(c)", 2},
        {"r[4,3] = relu(x)|c[4,6] = cat(r, r; dim=1)|t[4,2] = slice(c; dim=1, end=2)", 1}};
    ask_dense = false;
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        struct fixture f;
        begin_graph(&f, "x 4,3", graphs[i].graph, "f16");
        rounded = 0;
        run_oracle(&f, graphs[i].graph, SIZE_MAX, true);
        assert_int_equal(rounded, graphs[i].results * KP_DRAWS);
        end(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases),
                                       cmocka_unit_test(test_rounding)};
    kp_program("test_plan");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
