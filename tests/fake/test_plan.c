/* test_plan.c: the real planner and executor (reference/cuda) without a GPU: every op runs by its
 * meaning (reference/define) on strided arrays in the host's memory.
 *
 * The cases of tests/data/ops.json run as the oracle (whole, in single rows, in slices) and as a
 * baseline, once with ops that take any strides and once with ops that ask for dense operands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../gpu/numbers.h"
#include "base/error.h"
#include "cuda/exec.h"
#include "cuda_base/copy.h"
#include "cuda_base/impl.h"
#include "cuda_ops/index.h"
#include "define/define.h"
#include "op_case.h"

enum { ALIGNMENT = 256, MOST_TENSORS = 64 };

/* ---- what stands for device code ---- */

static bool ask_dense; /* every op asks for dense operands */
static int rounded;    /* results that were rounded to 16 bits */
static int unsuited;   /* operands that were not as the op asks for them */
static bool noisy;     /* results with noise are off by what the noise's seed says */

/* Where element i of an array lies. */
static int64_t at(const struct kp_array *a, int64_t i) {
    int64_t place = 0;
    for (int d = a->n - 1; d >= 0; d--) {
        place += i % a->dim[d] * a->stride[d];
        i /= a->dim[d];
    }
    return place;
}

void kp_copy(const struct kp_array *from, const struct kp_array *to, cudaStream_t stream) {
    (void)stream;
    for (int64_t i = 0; i < kp_array_count(from); i++)
        put(to->data, to->dtype, i, get(from->data, from->dtype, at(from, i)));
}

uint64_t kp_noise_seed(uint64_t seed, int64_t use) {
    return seed * 31 + (uint64_t)use;
}

void kp_noise_round(double *y, int64_t count, double unit, uint64_t seed, cudaStream_t stream) {
    (void)y, (void)count, (void)unit, (void)seed, (void)stream;
    rounded++;
}

static void *memory(int64_t count, size_t size) {
    size_t bytes = kp_align((size_t)count * size + 1);
    void *p = aligned_alloc(ALIGNMENT, bytes);
    assert_non_null(p);
    memset(p, 0xff, bytes);
    return p;
}

/* A task whose values have the shapes of a call's arrays, which may be rows. */
static struct kp_task shaped(const struct kp_call *c) {
    struct kp_task t = *c->task;
    t.values = memory(t.nvalues, sizeof *t.values);
    memcpy(t.values, c->task->values, (size_t)t.nvalues * sizeof *t.values);
    for (int k = 0; k < c->nin + c->nout; k++) {
        const struct kp_array *a = k < c->nin ? &c->in[k] : &c->out[k - c->nin];
        if (k < c->nin && !c->present[k]) continue;
        struct kp_value *v = &t.values[k < c->nin ? c->op->in[k].value : c->op->out[k - c->nin]];
        v->shape.n = a->n;
        memcpy(v->shape.dim, a->dim, sizeof a->dim);
    }
    return t;
}

/* Whether an op's name is one of the space-separated `names`. */
static bool is_one_of(const struct kp_op_def *def, const char *names) {
    char word[80];
    snprintf(word, sizeof word, " %s ", def->name);
    return strstr(names, word);
}

/* What ops ask for: add wants one type, and mul leaves masks as they are in a baseline. */
static unsigned asks_of(const struct kp_op_def *def) {
    unsigned asks = ask_dense ? KP_DENSE : KP_STRIDED;
    if (is_one_of(def, " add mul ")) asks |= KP_ONE_TYPE;
    return is_one_of(def, " mul ") ? asks | KP_MASKS : asks;
}

/* Whether operand k is as its op asks for it. */
static bool suits(const struct kp_call *c, int k) {
    const struct kp_array *a = &c->in[k];
    const struct kp_op_def *def = c->op->def;
    unsigned asks = asks_of(def);
    bool was_mask = c->task->values[c->op->in[k].value].dtype == KP_BOOL;
    bool mask = was_mask && k == 1 && asks & KP_MASKS && c->math != KP_MATH_F64;
    bool aligned = c->math == KP_MATH_F64 || (uintptr_t)a->data % ALIGNMENT == 0;
    if (asks & KP_ONE_TYPE && a->dtype != (mask ? KP_BOOL : c->out[0].dtype)) return false;
    if (asks & KP_DENSE && !kp_array_is_dense(a)) return false;
    return aligned || !(asks & KP_DENSE || def->tensor_cores);
}

/* An op by its meaning. */
static void run(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    (void)state, (void)scratch, (void)stream;
    struct kp_task t = shaped(c);
    const double **in = calloc((size_t)c->nin + KP_SLOTS, sizeof *in);
    double *out[KP_MAX_RESULTS] = {0};
    assert_non_null(in);
    for (int k = 0; k < c->nin; k++) {
        if (!c->present[k]) continue;
        const struct kp_array *a = &c->in[k];
        unsuited += !suits(c, k);
        double *x = memory(kp_array_count(a), sizeof *x);
        for (int64_t i = 0; i < kp_array_count(a); i++) x[i] = get(a->data, a->dtype, at(a, i));
        in[k] = x;
    }
    for (int k = 0; k < c->nout; k++) out[k] = memory(kp_array_count(&c->out[k]), sizeof *out[k]);
    assert_null(define_op(&t, c->op, in, out));
    double off = noisy && c->noise ? (double)(c->noise->seed * c->noise->seed % 1009) : 0;
    for (int k = 0; k < c->nout; k++) {
        const struct kp_array *a = &c->out[k];
        for (int64_t i = 0; a->data && i < kp_array_count(a); i++)
            put(a->data, a->dtype, i, out[k][i] + off);
        free(out[k]);
    }
    for (int k = 0; k < c->nin; k++) free((void *)in[k]);
    free(in);
    free(t.values);
}

/* All worlds at once; but a sum cannot. */
static int together_done;
static bool together(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    if (is_one_of(c->op->def, " sum ")) return false;
    for (int w = KP_DRAWS; w >= 0; w--) run(&c[w], state, scratch, stream);
    together_done++;
    return true;
}

const struct kp_impl *kp_impl_of(int id) {
    static struct kp_impl impl[KP_OP_COUNT];
    static const char exact[] = " cat pad tril triu masked_fill eq index_select full max ";
    const struct kp_op_def *def = op_get((enum kp_op_id)id);
    impl[id] = (struct kp_impl){.run = run, .rough = is_one_of(def, exact) ? NULL : run};
    impl[id].together = is_one_of(def, " tanh sum ") ? together : NULL;
    impl[id].asks = asks_of(def);
    return &impl[id];
}

/* ---- cases ---- */

struct fixture {
    struct kp_task *task;
    const char *name;
    double *in[MOST_TENSORS], *want[KP_MAX_OUTPUTS], *got[KP_MAX_OUTPUTS];
    void *tensor[MOST_TENSORS];
    int64_t taken[KP_MAX_OUTPUTS];
};

static int64_t count_of(const struct kp_task *t, int v) {
    return kp_shape_count(&t->values[v].shape);
}

/* A value for element i of tensor t. */
static double draw(const struct fixture *f, int t, int64_t i) {
    const struct kp_tensor *x = &f->task->tensors[t];
    const struct kp_fill *fill = &x->fill;
    switch (fill->kind) {
    case KP_FILL_UNIFORM: return fill->a + (fill->b - fill->a) * uniform();
    case KP_FILL_INTEGERS: return floor(fill->a + (fill->b - fill->a) * uniform());
    case KP_FILL_BERNOULLI: return uniform() < fill->a;
    case KP_FILL_TRANSPOSED:
        return f->in[fill->source][i % x->shape.dim[1] * x->shape.dim[0] + i / x->shape.dim[1]];
    default: return 4 * uniform() - 2;
    }
}

/* Load a case with tensors of a type, draw them, and compute what is wanted. */
static void begin(struct fixture *f, const cJSON *c, const char *dtype) {
    char text[4096], message[1024];
    *f = (struct fixture){.name = op_case_text(c, "name")};
    op_case_task(c, dtype, text, sizeof text);
    f->task = task_parse(text, "ops.json", message, sizeof message);
    if (!f->task) fail_msg("%s: %s", f->name, message);
    assert_true(f->task->ntensors <= MOST_TENSORS);
    for (int t = 0; t < f->task->ntensors; t++) {
        enum kp_dtype type = f->task->tensors[t].dtype;
        int64_t n = count_of(f->task, t);
        f->in[t] = memory(n, sizeof(double));
        f->tensor[t] = memory(n, kp_dtype_size(type));
        for (int64_t i = 0; i < n; i++) {
            put(f->tensor[t], type, i, draw(f, t, i));
            f->in[t][i] = get(f->tensor[t], type, i);
        }
    }
    for (int o = 0; o < f->task->noutputs; o++) {
        f->want[o] = memory(count_of(f->task, f->task->outputs[o]), sizeof(double));
        f->got[o] = memory(count_of(f->task, f->task->outputs[o]), sizeof(double));
    }
    assert_null(define_run(f->task, (const double *const *)f->in, f->want));
}

static void end(struct fixture *f) {
    for (int t = 0; t < f->task->ntensors; t++) free(f->in[t]), free(f->tensor[t]);
    for (int o = 0; o < f->task->noutputs; o++) free(f->want[o]), free(f->got[o]);
    task_free(f->task);
}

/* Fails where an output is off by more than `bound` of 1 and its size. */
static void compare(const struct fixture *f, const char *what, double bound) {
    for (int o = 0; o < f->task->noutputs; o++)
        for (int64_t i = 0; i < count_of(f->task, f->task->outputs[o]); i++) {
            double want = f->want[o][i], got = f->got[o][i];
            if (got == want || (isnan(want) && isnan(got))) continue;
            if (!(fabs(got - want) <= bound * (1 + fabs(want))))
                fail_msg("%s, %s, output %d, element %lld: got %.17g, expected %.17g", f->name,
                         what, o, (long long)i, got, want);
        }
    if (unsuited) fail_msg("%s, %s: an operand is not as its op asks for it", f->name, what);
}

/* Slices must come in order, and draws without noise be what has none. */
static void sink(void *context, int output, int64_t offset, int64_t n,
                 const struct kp_draws *values, cudaStream_t stream) {
    struct fixture *f = context;
    (void)stream;
    assert_int_equal(offset, f->taken[output]);
    f->taken[output] += n;
    memcpy(f->got[output] + offset, values->exact, (size_t)n * sizeof(double));
    for (int d = 0; d < KP_DRAWS && values->rough[d]; d++)
        assert_memory_equal(values->rough[d], values->exact, (size_t)n * sizeof(double));
}

/* One run of the oracle.  Returns the bytes of workspace that it took. */
static size_t run_oracle(struct fixture *f, const char *what, size_t limit, bool noise) {
    static const struct kp_noise none = {.seed = 7};
    struct kp_exec *e = kp_exec_create_oracle(f->task, limit);
    size_t bytes = kp_exec_workspace(e);
    void *workspace = memory((int64_t)bytes, 1);
    memset(f->taken, 0, sizeof f->taken);
    assert_true(kp_exec_oracle(e, (const void *const *)f->tensor, workspace, noise ? &none : NULL,
                               0, sink, f, 0));
    for (int o = 0; o < f->task->noutputs; o++)
        assert_int_equal(f->taken[o], count_of(f->task, f->task->outputs[o]));
    compare(f, what, 1e-12);
    free(workspace);
    kp_exec_destroy(e);
    return bytes;
}

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
        cJSON *c = cJSON_CreateObject();
        cJSON_AddStringToObject(c, "name", "rounding");
        cJSON_AddStringToObject(c, "tensors", "x 4,3");
        cJSON_AddStringToObject(c, "graph", graphs[i].graph);
        begin(&f, c, "f16");
        rounded = 0;
        run_oracle(&f, graphs[i].graph, SIZE_MAX, true);
        assert_int_equal(rounded, graphs[i].results * KP_DRAWS);
        end(&f);
        cJSON_Delete(c);
    }
}

/* What the oracle of a fixture finds with noise: outputs of all worlds, one after another. */
enum { MOST_DRAWN = 128 };
struct draws {
    size_t worlds;
    double *found;
};

static void sink_draws(void *context, int output, int64_t offset, int64_t n,
                       const struct kp_draws *values, cudaStream_t stream) {
    struct draws *d = context;
    (void)stream;
    for (size_t w = 0; w < d->worlds; w++)
        memcpy(d->found + (w * KP_MAX_OUTPUTS + (size_t)output) * MOST_DRAWN + offset,
               w ? values->rough[w - 1] : values->exact, (size_t)n * sizeof(double));
}

static struct draws find_draws(const struct fixture *f, size_t limit, size_t *bytes) {
    static const struct kp_noise noise = {.seed = 7};
    struct kp_exec *e = kp_exec_create_oracle(f->task, limit);
    *bytes = kp_exec_workspace(e);
    void *workspace = memory((int64_t)*bytes, 1);
    struct draws d = {1 + KP_DRAWS, NULL};
    d.found = calloc(d.worlds * KP_MAX_OUTPUTS * MOST_DRAWN, sizeof *d.found);
    assert_non_null(d.found);
    assert_true(
        kp_exec_oracle(e, (const void *const *)f->tensor, workspace, &noise, 0, sink_draws, &d, 0));
    free(workspace);
    kp_exec_destroy(e);
    return d;
}

/* Where all draws at once take too much memory, they are computed one by one: with the same noise,
 * in less. */
static void test_one_by_one(void **state) {
    (void)state;
    static const char *const graphs[] = {
        "d[64,8] = tanh(x)|e[64,8] = relu(d)|m[] = mean(e)",
        ("e[64,8] = exp(x)|m[] = mean(e)|r[64] = sum(x; dim=1)|s[64] = sub(r, m)|t[64] = tanh(s) "
         "-> m t"),
        "c[128,8] = cat(x, x; dim=0)|t[128,8] = tanh(c)|m[] = sum(t)"};
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        struct fixture f;
        size_t at_once, less, least, world = KP_MAX_OUTPUTS * MOST_DRAWN * sizeof(double);
        cJSON *c = cJSON_CreateObject();
        cJSON_AddStringToObject(c, "name", "one_by_one");
        cJSON_AddStringToObject(c, "tensors", "x 64,8");
        cJSON_AddStringToObject(c, "graph", graphs[i]);
        begin(&f, c, "f32");
        noisy = true;
        together_done = 0;
        struct draws want = find_draws(&f, SIZE_MAX, &at_once);
        assert_int_equal(together_done, 1);
        struct draws got = find_draws(&f, at_once / 2, &less);
        struct draws rows = find_draws(&f, 0, &least);
        noisy = false;
        if (least > less) fail_msg("%s: %zu bytes in rows, %zu whole", graphs[i], least, less);
        assert_memory_equal(rows.found, want.found, world);
        for (size_t d = 1; d < want.worlds; d++)
            assert_memory_not_equal((char *)rows.found + d * world, rows.found, world);
        if (less > at_once / 2) fail_msg("%s: %zu bytes, %zu at once", graphs[i], less, at_once);
        assert_memory_equal(got.found, want.found, want.worlds * world);
        for (size_t d = 1; d < want.worlds; d++) /* each draw has noise of its own */
            assert_memory_not_equal((char *)want.found + d * world,
                                    (char *)want.found + (d - 1) * world, world);
        free(rows.found);
        free(want.found);
        free(got.found);
        end(&f);
        cJSON_Delete(c);
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

/* The oracle computes the slices that hold given elements, and no others. */
static void test_places(void **state) {
    (void)state;
    static const struct kp_noise noise = {.seed = 7};
    const struct kp_place two[] = {{0, 17}, {1, 50}, {0, 23}}; /* rows 2 and 50 */
    struct fixture f;
    cJSON *c = cJSON_CreateObject();
    cJSON_AddStringToObject(c, "name", "places");
    cJSON_AddStringToObject(c, "tensors", "x 64,8");
    cJSON_AddStringToObject(c, "graph", "t[64,8] = tanh(x)|s[64] = sum(t; dim=1) -> t s");
    begin(&f, c, "f32");
    noisy = true;
    struct kp_exec *e = kp_exec_create_oracle(f.task, 0); /* row by row */
    void *workspace = memory((int64_t)kp_exec_workspace(e), 1);
    memset(&computed, 0, sizeof computed);
    kp_exec_oracle_at(e, (const void *const *)f.tensor, workspace, &noise, two, 3, sink_slices,
                      NULL, 0);
    noisy = false;
    assert_int_equal(computed.n, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(computed.offset[i], (i < 2 ? 2 : 50) * (computed.output[i] ? 1 : 8));
    free(workspace);
    kp_exec_destroy(e);
    end(&f);
    cJSON_Delete(c);
}

/* How many rows of 64 the oracle computes where `most` elements are wanted. */
static int rows_of(const char *tensors, const char *graph, int64_t most) {
    static const struct kp_noise noise = {.seed = 7};
    struct fixture f;
    cJSON *c = cJSON_CreateObject();
    cJSON_AddStringToObject(c, "name", "some");
    cJSON_AddStringToObject(c, "tensors", tensors);
    cJSON_AddStringToObject(c, "graph", graph);
    begin(&f, c, "f32");
    struct kp_exec *e = kp_exec_create_oracle(f.task, 0); /* row by row */
    void *workspace = memory((int64_t)kp_exec_workspace(e), 1);
    memset(&computed, 0, sizeof computed);
    assert_false(kp_exec_oracle(e, (const void *const *)f.tensor, workspace, &noise, most,
                                sink_slices, NULL, 0));
    free(workspace);
    kp_exec_destroy(e);
    end(&f);
    cJSON_Delete(c);
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_places),
                                       cmocka_unit_test(test_some), cmocka_unit_test(test_rounding),
                                       cmocka_unit_test(test_one_by_one)};
    kp_program("test_plan");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
