/* host_ops.c: see host_ops.h. */
#include "host_ops.h"
#include "../gpu/numbers.h"
#include "cuda_base/copy.h"
#include "cuda_base/impl.h"
#include "cuda/index.h"
#include "define/define.h"
#include "op_case.h"

enum { ALIGNMENT = 256 };

/* ---- what stands for device code ---- */

bool ask_dense, noisy;
int rounded, together_done, exact_runs;
static int unsuited; /* operands that were not as the op asks for them */

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

void *memory(int64_t count, size_t size) {
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

/* What ops ask for: add wants one type, mul leaves masks as they are in a baseline, and some may
 * write over an operand. */
static unsigned asks_of(const struct kp_op_def *def) {
    unsigned asks = ask_dense ? KP_DENSE : KP_STRIDED;
    if (is_one_of(def, " tanh relu exp add sub mul ")) asks |= KP_IN_PLACE;
    if (is_one_of(def, " add mul ")) asks |= KP_ONE_TYPE;
    return is_one_of(def, " mul ") ? asks | KP_MASKS : asks;
}

/* Whether operand k is clear of the result, or lies as it does and may be written over. */
static bool is_clear(const struct kp_call *c, int k) {
    const struct kp_array *x = &c->in[k], *y = &c->out[0];
    const char *from = x->data, *to = y->data;
    int64_t size = (int64_t)kp_dtype_size(x->dtype), last = at(x, kp_array_count(x) - 1);
    if (!to || from + (last + 1) * size <= to || to + kp_array_bytes(y) <= from) return true;
    bool same = from == to && kp_array_bytes(x) == kp_array_bytes(y) && kp_array_is_dense(x);
    return same && asks_of(c->op->def) & KP_IN_PLACE && c->math == KP_MATH_F64;
}

/* Whether operand k is as its op asks for it. */
static bool suits(const struct kp_call *c, int k) {
    const struct kp_array *a = &c->in[k];
    const struct kp_op_def *def = c->op->def;
    unsigned asks = asks_of(def);
    bool was_mask = c->task->values[c->op->in[k].value].dtype == KP_BOOL;
    bool mask = was_mask && k == 1 && asks & KP_MASKS && c->math != KP_MATH_F64;
    bool aligned = c->math == KP_MATH_F64 || (uintptr_t)a->data % ALIGNMENT == 0;
    if (!is_clear(c, k)) return false;
    if (asks & KP_ONE_TYPE && a->dtype != (mask ? KP_BOOL : c->out[0].dtype)) return false;
    if (asks & KP_DENSE && !kp_array_is_dense(a)) return false;
    return aligned || !(asks & KP_DENSE || def->tensor_cores);
}

/* An op by its meaning. */
static void run(const struct kp_call *c, void *state, void *scratch, cudaStream_t stream) {
    (void)state, (void)scratch, (void)stream;
    exact_runs += !c->noise;
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

int64_t count_of(const struct kp_task *t, int v) {
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

void begin(struct fixture *f, const cJSON *c, const char *dtype) {
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
        f->seen[o] = memory(count_of(f->task, f->task->outputs[o]), 1);
    }
    assert_null(define_run(f->task, (const double *const *)f->in, f->want));
}

void begin_graph(struct fixture *f, const char *tensors, const char *graph, const char *dtype) {
    cJSON *c = cJSON_CreateObject();
    cJSON_AddStringToObject(c, "name", "graph");
    cJSON_AddStringToObject(c, "tensors", tensors);
    cJSON_AddStringToObject(c, "graph", graph);
    begin(f, c, dtype);
    f->name = graph;
    cJSON_Delete(c);
}

void end(struct fixture *f) {
    for (int t = 0; t < f->task->ntensors; t++) free(f->in[t]), free(f->tensor[t]);
    for (int o = 0; o < f->task->noutputs; o++) free(f->want[o]), free(f->got[o]), free(f->seen[o]);
    task_free(f->task);
}

void compare(const struct fixture *f, const char *what, double bound) {
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

/* No element may come twice, and draws without noise must be what has none. */
static void sink(void *context, int output, int64_t offset, int64_t n,
                 const struct kp_draws *values, cudaStream_t stream) {
    struct fixture *f = context;
    (void)stream;
    for (int64_t i = offset; i < offset + n; i++) assert_int_equal(f->seen[output][i]++, 0);
    f->taken[output] += n;
    memcpy(f->got[output] + offset, values->exact, (size_t)n * sizeof(double));
    for (int d = 0; d < KP_DRAWS && values->rough[d]; d++)
        assert_memory_equal(values->rough[d], values->exact, (size_t)n * sizeof(double));
}

size_t run_oracle(struct fixture *f, const char *what, size_t limit, bool noise) {
    static const struct kp_noise none = {.seed = 7};
    struct kp_exec *e = kp_exec_create_oracle(f->task, limit);
    size_t bytes = kp_exec_workspace(e);
    void *workspace = memory((int64_t)bytes, 1);
    memset(f->taken, 0, sizeof f->taken);
    for (int o = 0; o < f->task->noutputs; o++)
        memset(f->seen[o], 0, (size_t)count_of(f->task, f->task->outputs[o]));
    assert_true(kp_exec_oracle(e, (const void *const *)f->tensor, workspace, noise ? &none : NULL,
                               0, sink, f, 0));
    for (int o = 0; o < f->task->noutputs; o++)
        assert_int_equal(f->taken[o], count_of(f->task, f->task->outputs[o]));
    compare(f, what, 1e-12);
    free(workspace);
    kp_exec_destroy(e);
    return bytes;
}
