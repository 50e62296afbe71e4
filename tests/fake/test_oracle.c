/* test_oracle.c: how the real oracle (reference/cuda) is cut and how many draws it computes at a
 * time, on ops of the host (host_ops.h). */
#include "base/error.h"
#include "cuda/plan.h"
#include "host_ops.h"
#include "task_text.h"

#include <stdlib.h>
#include <string.h>

/* A fixture of a graph. */
static void start(struct fixture *f, const char *tensors, const char *graph) {
    ask_dense = false;
    begin_graph(f, tensors, graph, "f32");
}

/* What the oracle of a fixture finds with noise: outputs of all worlds, one after another. */
enum { MOST_DRAWN = 2048 };
static const size_t world = KP_MAX_OUTPUTS * MOST_DRAWN * sizeof(double);

static void sink_draws(void *context, int output, int64_t offset, int64_t n,
                       const struct kp_draws *values, cudaStream_t stream) {
    double *found = context;
    (void)stream;
    assert_true(offset + n <= MOST_DRAWN);
    for (size_t w = 0; w < KP_WORLDS; w++)
        memcpy(found + (w * KP_MAX_OUTPUTS + (size_t)output) * MOST_DRAWN + offset,
               w ? values->rough[w - 1] : values->exact, (size_t)n * sizeof(double));
}

/* Free what is returned. */
static double *find_draws(const struct fixture *f, size_t limit, size_t *bytes) {
    static const struct kp_noise noise = {.seed = 7};
    struct kp_exec *e = kp_exec_create_oracle(f->task, limit);
    *bytes = kp_exec_workspace(e);
    void *workspace = memory((int64_t)*bytes, 1);
    double *found = calloc(KP_WORLDS, world);
    assert_non_null(found);
    noisy = true;
    assert_true(kp_exec_oracle(e, (const void *const *)f->tensor, workspace, &noise, 0, sink_draws,
                               found, 0));
    noisy = false;
    free(workspace);
    kp_exec_destroy(e);
    return found;
}

/* Where all draws at once take too much memory, as many as fit are computed at a time: with the
 * same noise, and in groups as few as they can be. */
static void test_groups(void **state) {
    (void)state;
    static const char *const graphs[] = {
        "d[64,8] = tanh(x)|e[64,8] = relu(d)|m[] = mean(e)",
        ("e[64,8] = exp(x)|m[] = mean(e)|r[64] = sum(x; dim=1)|s[64] = sub(r, m)|t[64] = tanh(s) "
         "-> m t"),
        "c[128,8] = cat(x, x; dim=0)|t[128,8] = tanh(c)|m[] = sum(t)"};
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        struct fixture f;
        size_t at_once, bytes;
        int seen = 0; /* bits: numbers of groups */
        start(&f, "x 64,8", graphs[i]);
        together_done = 0;
        double *want = find_draws(&f, SIZE_MAX, &at_once), *got = want;
        assert_int_equal(together_done, 1);
        for (size_t w = 1; w < KP_WORLDS; w++) /* each draw has noise of its own */
            assert_memory_not_equal((char *)want + w * world, (char *)want + (w - 1) * world,
                                    world);
        for (size_t limit = at_once;; limit -= 256, free(got)) {
            exact_runs = 0;
            got = find_draws(&f, limit, &bytes);
            assert_memory_equal(got, want, KP_WORLDS * world);
            seen |= 1 << exact_runs / f.task->nops;
            if (bytes > limit) break;
        }
        assert_int_equal(seen, 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 8);
        free(got);
        free(want);
        end(&f);
    }
}

/* More draws at a time are not worth slices that are thin. */
static void test_groups_of_slices(void **state) {
    (void)state;
    struct fixture f;
    size_t bytes;
    start(&f, "x 64,64", "e[64,64] = exp(x)|m[] = mean(e)|r[64] = sum(x; dim=1)|s[64] = sub(r, m)");
    struct kp_plan *p = kp_plan_make(f.task, KP_MATH_F64, 1);
    size_t least = p->shared_bytes + KP_WORLDS * p->world_bytes;
    assert_int_equal(p->rows, 64);
    kp_plan_free(p);
    exact_runs = 0;
    free(find_draws(&f, least - 1, &bytes));
    assert_true(bytes < least);
    assert_int_equal(exact_runs, KP_DRAWS * f.task->nops); /* one slice */
    end(&f);
}

/* A chain of elementwise ops needs no more memory than one of them, but for operands that another
 * op reads later, or that lie otherwise. */
static void test_in_place(void **state) {
    (void)state;
    static const struct {
        const char *tensors, *graph;
        int buffers; /* of a world */
    } graphs[] = {
        {"x 16,16", "d[16,16] = tanh(x)", 1},
        {"x 16,16", "d[16,16] = tanh(x)|e[16,16] = exp(d)|g[16,16] = tanh(e)", 1},
        {"x 16,16", "d[16,16] = tanh(x)|e[16,16] = add(d, d)|g[16,16] = mul(2, e)", 1},
        {"x 16,16", "d[16,16] = tanh(x)|e[16,16] = exp(d)|g[16,16] = add(e, d)", 2},
        {"x 16,16", "d[16,16] = tanh(x)|e[16,16] = transpose(d; dims=[0,1])|g[16,16] = add(d, e)",
         2},
        {"x 16,16", "d[16,16] = tanh(x)|g[16,16] = sigmoid(d)", 2}, /* does not ask for it */
        {"x 16,16", "d[16,16] = tanh(x)|e[16,16] = exp(d) -> d e", 2},
        {"x 16,16",
         "d[16,16] = tanh(x)|e[16,16] = transpose(d; dims=[0,1])|g[16,16] = add(d, e)|"
         "m[] = sum(g)",
         0},
        /* d is repeated, but its buffer is as large as the result's */
        {"x 1,8;y 4,8", "d[1,8] = tanh(x)|g[4,8] = add(d, y)|m[] = sum(g)", 0}};
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        struct fixture f;
        start(&f, graphs[i].tensors, graphs[i].graph);
        size_t bytes = run_oracle(&f, graphs[i].graph, SIZE_MAX, true), one = 16 * 16 * 8;
        run_oracle(&f, graphs[i].graph, 0, true);
        if (graphs[i].buffers) /* beside x in float64 */
            assert_int_equal(bytes, (KP_WORLDS * (size_t)graphs[i].buffers + 1) * one);
        end(&f);
    }
}

/* The axis along which the oracle of a graph is cut; -1: none. */
static int axis_of(const char *tensors, const char *graph) {
    struct fixture f;
    start(&f, tensors, graph);
    struct kp_plan *p = kp_plan_make(f.task, KP_MATH_F64, 1);
    int axis = p->rows ? p->axis : -1;
    if (p->rows) assert_int_equal(p->slice, 1);
    kp_plan_free(p);
    run_oracle(&f, graph, SIZE_MAX, true);
    run_oracle(&f, graph, 0, true);
    end(&f);
    return axis;
}

/* Slices are along the axis that leaves the least to be read whole. */
static void test_axis(void **state) {
    (void)state;
    static const struct {
        int axis;
        const char *tensors, *graph;
    } cuts[] = {
        {0, "x 3,5,8,9", "t[3,5,8,9] = tanh(x)"},
        {0, "x 3,2,9,9;w 5,2,2,2;b 5", "t[3,5,8,8] = conv2d(x, weight=w, bias=b)"},
        /* channels would need all of x for each */
        {0, "x 3,2,9,9;v 5,2,2,2", "w[5,2,2,2] = tanh(v)|t[3,5,8,8] = conv2d(x, weight=w)"},
        /* channels would spare reading all of w, which is little */
        {0, "x 3,5,8,9;w 5;b 5", "t[3,5,8,9] = instance_norm(x, weight=w, bias=b)"},
        {1, "x 3,5,8,9;w 5;b 5", "t[3,5,8,9] = batch_norm(x, weight=w, bias=b)"},
        {1, "x 3,2,9,9;w 5,2,2,2;b 5",
         "c[3,5,8,8] = conv2d(x, weight=w, bias=b)|t[3,5,8,8] = batch_norm(c)"},
        {1, "x 3,5,8,9",
         "n[3,5,8,9] = batch_norm(x)|m[3,5,1,1] = mean(n; dim=[2,3], keepdim=true)|"
         "t[3,5,8,9] = sub(n, m)"},
        {2, "x 3,5,7,8,9", "s[3,5,7,8,9] = softmax(x; dim=0)|t[3,5,7,8,9] = cumsum(s; dim=1)"},
        {1, "x 4,5,8,8", "n[4,5,8,8] = batch_norm(x)|s[2,5,8,8] = slice(n; dim=0, end=2) -> n s"},
        /* an output that has no such axis is computed whole, and what it needs */
        {-1, "x 3,5,8,9", "n[3,5,8,9] = batch_norm(x)|m[] = mean(n) -> n m"},
        {-1, "x 300,2,8,8", "t[300,2,8,8] = batch_norm(x)"}, /* too many ranges */
        {-1, "x 3,5,7,9", "t[3,5,7,9] = batch_norm(x)"},     /* too short ones */
        {-1, "x 90,80", "t[90,80] = batch_norm(x)"}};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        int axis = axis_of(cuts[i].tensors, cuts[i].graph);
        if (axis != cuts[i].axis)
            fail_msg("%s: cut along %d, not %d", cuts[i].graph, axis, cuts[i].axis);
    }
}

/* Slices that were computed: the first elements of two outputs of 8 a row and one of 1. */
static struct {
    int n, output[16];
    int64_t offset[16];
} computed;

static void sink_slices(void *context, int output, int64_t offset, int64_t n,
                        const struct kp_draws *values, cudaStream_t stream) {
    (void)context, (void)stream;
    assert_true(n > 0 && values->rough[KP_DRAWS - 1]);
    assert_true(computed.n < 16);
    computed.output[computed.n] = output;
    computed.offset[computed.n++] = offset;
}

/* Compute the slices of a graph's oracle, row by row, that hold n places. */
static void compute_at(const char *tensors, const char *graph, const struct kp_place *place,
                       int n) {
    static const struct kp_noise noise = {.seed = 7};
    struct fixture f;
    start(&f, tensors, graph);
    struct kp_exec *e = kp_exec_create_oracle(f.task, 0);
    void *workspace = memory((int64_t)kp_exec_workspace(e), 1);
    memset(&computed, 0, sizeof computed);
    kp_exec_oracle_at(e, (const void *const *)f.tensor, workspace, &noise, place, n, sink_slices,
                      NULL, 0);
    free(workspace);
    kp_exec_destroy(e);
    end(&f);
}

/* The oracle computes the slices that hold given elements, and no others. */
static void test_places(void **state) {
    (void)state;
    const struct kp_place rows[] = {{0, 17}, {1, 50}, {0, 23}}; /* rows 2 and 50 */
    compute_at("x 64,8", "t[64,8] = tanh(x)|s[64] = sum(t; dim=1) -> t s", rows, 3);
    assert_int_equal(computed.n, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(computed.offset[i], (i < 2 ? 2 : 50) * (computed.output[i] ? 1 : 8));

    const struct kp_place channels[] = {{0, 2 * 320 + 3 * 64 + 5}, {0, 64}}; /* channels 3 and 1 */
    compute_at("x 4,5,8,8", "t[4,5,8,8] = batch_norm(x)", channels, 2);
    assert_int_equal(computed.n, 8); /* a range for each sample */
    for (int i = 0; i < 8; i++)
        assert_int_equal(computed.offset[i], i % 4 * 320 + (i < 4 ? 1 : 3) * 64);

    const struct kp_place whole[] = {{1, 0}}; /* in no slice */
    compute_at("x 64,8", "t[64,8] = tanh(x)|m[] = mean(x) -> t m", whole, 1);
    assert_int_equal(computed.n, 1);
    assert_int_equal(computed.output[0], 1);
}

static void sink_exact(void *context, int output, int64_t offset, int64_t n,
                       const struct kp_draws *values, cudaStream_t stream) {
    (void)output, (void)stream;
    memcpy((double *)context + offset, values->exact, (size_t)n * sizeof(double));
}

/* Without noise the oracle writes no memory beyond what is told, and computes the same. */
static void test_exact(void **state) {
    (void)state;
    struct fixture f;
    size_t bytes;
    double got[64 * 8];
    start(&f, "x 64,8", "d[64,8] = tanh(x)|m[] = mean(d)|t[64,8] = sub(d, m)");
    double *want = find_draws(&f, SIZE_MAX, &bytes);
    struct kp_exec *e = kp_exec_create_oracle(f.task, SIZE_MAX);
    size_t exact = kp_exec_workspace_exact(e);
    assert_true(exact < bytes);
    unsigned char *workspace = memory((int64_t)bytes, 1);
    memset(workspace, 0x5a, bytes);
    kp_exec_oracle(e, (const void *const *)f.tensor, workspace, NULL, 0, sink_exact, got, 0);
    for (size_t i = exact; i < bytes; i++) assert_int_equal(workspace[i], 0x5a);
    assert_memory_equal(got, want, sizeof got);
    free(workspace);
    free(want);
    kp_exec_destroy(e);
    end(&f);
}

/* How many rows of 64 the oracle computes where `most` elements are wanted. */
static int rows_of(const char *tensors, const char *graph, int64_t most) {
    static const struct kp_noise noise = {.seed = 7};
    struct fixture f;
    start(&f, tensors, graph);
    struct kp_exec *e = kp_exec_create_oracle(f.task, 0); /* row by row */
    void *workspace = memory((int64_t)kp_exec_workspace(e), 1);
    memset(&computed, 0, sizeof computed);
    assert_false(kp_exec_oracle(e, (const void *const *)f.tensor, workspace, &noise, most,
                                sink_slices, NULL, 0));
    free(workspace);
    kp_exec_destroy(e);
    end(&f);
    return computed.n;
}

/* Of large outputs, and of those that much must be computed for, the oracle computes a part. */
static void test_some(void **state) {
    (void)state;
    assert_int_equal(rows_of("x 64,16", "t[64,16] = tanh(x)", 128), 8);
    /* a row has 17 results: 8 rows have 8 times 17 */
    assert_int_equal(rows_of("x 64,16", "t[64,16] = tanh(x)|s[64] = sum(t; dim=1)", 17), 8);
    assert_int_equal(rows_of("x 64,16", "t[64,16] = tanh(x)|s[64] = sum(t; dim=1)", 1), 1);
    /* views may have a row elsewhere, and as more rows than one */
    assert_int_equal(rows_of("x 64,16",
                             "u[1,64,16] = unsqueeze(x; dim=0)|r[1,64,16] = tanh(u)|"
                             "t[64,16] = squeeze(r; dim=0)",
                             128),
                     8);
    assert_int_equal(rows_of("x 64,2,8",
                             "v[128,8] = view(x; shape=[128,8])|r[128,8] = tanh(v)|"
                             "t[64,16] = view(r; shape=[64,16])",
                             128),
                     8);
}

/* Whether the oracle of four rows of so many elements computes more than one at a time. */
static bool is_thick(int elements) {
    char x[64], graph[64], message[1024];
    snprintf(x, sizeof x, "x f32 [4,%d]", elements);
    snprintf(graph, sizeof graph, "t[4,%d] = relu(x)", elements);
    struct kp_task *t = load_graph(x, graph, message);
    if (!t) fail_msg("%s", message);
    struct kp_exec *e = kp_exec_create_oracle(t, SIZE_MAX), *row = kp_exec_create_oracle(t, 0);
    bool thick = kp_exec_workspace(e) > kp_exec_workspace(row);
    kp_exec_destroy(e), kp_exec_destroy(row), task_free(t);
    return thick;
}

/* A slice has no more elements of outputs than a sample is judged by. */
static void test_thin(void **state) {
    (void)state;
    assert_true(is_thick(1 << 23));
    assert_false(is_thick((1 << 23) + 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axis),   cmocka_unit_test(test_places),
        cmocka_unit_test(test_exact),  cmocka_unit_test(test_some),
        cmocka_unit_test(test_groups), cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_thin),   cmocka_unit_test(test_groups_of_slices)};
    kp_program("test_oracle");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
