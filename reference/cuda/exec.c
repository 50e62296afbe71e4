/* exec.c: runs a plan: see exec.h. */
#include "cuda/exec.h"
#include "cuda/plan.h"
#include "cuda_base/check.h"
#include "cuda_base/copy.h"
#include "cuda_ops/index.h"
#include "base/error.h"
#include <stdlib.h>
#include <string.h>

/* The oracle's memory: the plan's, once or for each world, then slices of outputs.  A world is a
 * run of the oracle: world 0 has no noise. */
enum { WORLDS = 1 + KP_DRAWS };

struct kp_exec {
    struct kp_plan *plan;
    size_t world_bytes;                 /* from one world's memory to the next; 0: they share it */
    size_t at_slice[KP_MAX_OUTPUTS];    /* world 0's slice of an output, in the workspace */
    size_t slice_bytes[KP_MAX_OUTPUTS]; /* from one world's to the next */
    size_t bytes;                       /* of workspace */
};

/* What one run is given. */
struct run {
    const struct kp_exec *exec;
    const void *const *tensors;
    void *const *outputs;
    char *workspace; /* of this world */
    char *slices;    /* the whole workspace, if slices of outputs are kept until all worlds ran */
    int world;
    const struct kp_noise *noise; /* NULL in world 0, and in baselines */
    kp_sink *sink;
    void *context;
    cudaStream_t stream;
};

/* The 16-bit type that a task's tensors have, or KP_F32 if none has one. */
static enum kp_dtype half_type(const struct kp_task *t) {
    for (int i = 0; i < t->ntensors; i++)
        if (t->tensors[i].dtype == KP_F16 || t->tensors[i].dtype == KP_BF16)
            return t->tensors[i].dtype;
    return KP_F32;
}

/* See exec.h. */
const char *kp_math_name(const struct kp_task *t, enum kp_math m) {
    switch (m) {
    case KP_MATH_FP32: return "fp32";
    case KP_MATH_TF32: return "tf32";
    case KP_MATH_HALF: return half_type(t) == KP_BF16 ? "bf16" : "f16";
    case KP_MATH_F64: return "f64";
    }
    die(KP_BUG, "arithmetic %d has no name", (int)m);
}

/* See exec.h. */
int kp_baselines(const struct kp_task *t, enum kp_math out[2]) {
    if (half_type(t) != KP_F32) {
        out[0] = KP_MATH_HALF;
        return 1;
    }
    int n = 0;
    out[n++] = KP_MATH_FP32;
    bool cores = false;
    for (int i = 0; i < t->nops; i++) cores |= t->ops[i].def->tensor_cores;
    if (cores) out[n++] = KP_MATH_TF32;
    return n;
}

/* See exec.h. */
bool kp_exec_weak(const struct kp_task *t) {
#ifdef KP_NO_CUDNN
    for (int i = 0; i < t->nops; i++) {
        const struct kp_impl *impl = kp_impl_of(t->ops[i].def->id);
        if (impl && impl->asks & KP_BY_CUDNN) return true;
    }
#else
    (void)t;
#endif
    return false;
}

/* An executor around a plan. */
static struct kp_exec *wrap(struct kp_plan *p) {
    struct kp_exec *e = calloc(1, sizeof *e);
    if (!e) die(KP_MACHINE, "out of memory; free some and try again");
    e->plan = p;
    e->bytes = p->bytes;
    return e;
}

/* See exec.h. */
struct kp_exec *kp_exec_create(const struct kp_task *t, enum kp_math m) {
    if (m == KP_MATH_F64) die(KP_BUG, "float64 is for kp_exec_create_oracle");
    return wrap(kp_plan_make(t, m, 0));
}

/* Whether a phase has steps of a kind. */
static bool has(const struct kp_plan *p, enum kp_phase phase, int kind) {
    for (int i = p->begin[phase]; i < p->begin[phase + 1]; i++)
        if ((int)p->steps[i].kind == kind) return true;
    return false;
}

/* An oracle with slices of so many rows.  Worlds need memory of their own only for what they
 * compute once for all slices. */
static struct kp_exec *wrap_oracle(const struct kp_task *t, int64_t slice) {
    struct kp_exec *e = wrap(kp_plan_make(t, KP_MATH_F64, slice));
    const struct kp_plan *p = e->plan;
    if (p->rows && has(p, KP_PHASE_WHOLE, KP_STEP_OP)) {
        e->world_bytes = kp_align(p->bytes);
        e->bytes = WORLDS * e->world_bytes;
    }
    for (int i = 0; i < p->nsteps; i++) {
        const struct kp_step *s = &p->steps[i];
        size_t bytes = kp_align(kp_array_bytes(&s->in[0].array));
        if (s->kind == KP_STEP_SINK && bytes > e->slice_bytes[s->output])
            e->slice_bytes[s->output] = bytes;
    }
    for (int o = 0; o < t->noutputs; o++) {
        e->at_slice[o] = kp_align(e->bytes);
        e->bytes = e->at_slice[o] + WORLDS * e->slice_bytes[o];
    }
    return e;
}

/* Halves the slices until the workspace fits; a single row is the least. */
struct kp_exec *kp_exec_create_oracle(const struct kp_task *t, size_t workspace_limit) {
    struct kp_exec *e = wrap_oracle(t, 0);
    while (e->bytes > workspace_limit && e->plan->slice > 1) {
        int64_t slice = (e->plan->slice + 1) / 2;
        kp_exec_destroy(e);
        e = wrap_oracle(t, slice);
    }
    return e;
}

/* See exec.h; NULL is allowed. */
void kp_exec_destroy(struct kp_exec *e) {
    if (e) kp_plan_free(e->plan);
    free(e);
}

/* See exec.h. */
size_t kp_exec_workspace(const struct kp_exec *e) {
    return e->bytes;
}

/* Where a reference is in this run, in the slice that begins at `row`. */
static void *locate(const struct kp_plan *p, const struct run *r, const struct kp_ref *ref,
                    int64_t row) {
    char *base = NULL;
    switch (ref->where) {
    case KP_NOWHERE: return NULL;
    case KP_IN_TENSOR: base = (char *)r->tensors[ref->index]; break;
    case KP_IN_OUTPUT: base = r->outputs[ref->index]; break;
    case KP_IN_BUFFER: base = r->workspace + p->buffers[ref->index].offset; break;
    }
    return base + row * ref->row_bytes;
}

/* The unit roundoff of results that are stored in this type, beside fp32's. */
static double unit_of(enum kp_dtype type) {
    return type == KP_F16 ? KP_UNIT_F16 : type == KP_BF16 ? KP_UNIT_BF16 : 0;
}

/* Enqueue an op with this world's noise: other noise in each step and slice. */
static void run_rough(const struct kp_plan *p, const struct kp_step *s, struct kp_call *call,
                      char *scratch, const struct run *r, int64_t row) {
    struct kp_noise noise = *r->noise;
    noise.seed =
        kp_noise_seed(kp_noise_seed(kp_noise_seed(noise.seed, r->world), row), s - p->steps);
    call->noise = &noise;
    (s->impl->rough ? s->impl->rough : s->impl->run)(call, s->state, scratch, r->stream);
    for (int k = 0; k < call->nout; k++) {
        double unit = unit_of(p->task->values[call->op->out[k]].dtype);
        if (unit > 0 && call->out[k].data)
            kp_noise_round(call->out[k].data, kp_array_count(&call->out[k]), unit,
                           kp_noise_seed(noise.seed, -1 - k), r->stream);
    }
}

/* Enqueue an op. */
static void run_op(const struct kp_plan *p, const struct kp_step *s, const struct run *r,
                   int64_t row) {
    struct kp_call call = s->call;
    for (int k = 0; k < KP_MAX_OPERANDS; k++)
        if (call.present[k]) call.in[k].data = locate(p, r, &s->in[k], row);
    for (int k = 0; k < call.nout; k++) call.out[k].data = locate(p, r, &s->out[k], row);
    char *scratch = s->scratch >= 0 ? r->workspace + p->buffers[s->scratch].offset : NULL;
    if (r->noise)
        run_rough(p, s, &call, scratch, r, row);
    else
        s->impl->run(&call, s->state, scratch, r->stream);
}

/* World w's slice of an output. */
static double *slice_of(const struct run *r, int output, int w) {
    const struct kp_exec *e = r->exec;
    return (double *)(r->slices + e->at_slice[output] + (size_t)w * e->slice_bytes[output]);
}

/* Hand a slice of an output to the sink; with draws keep it, and let the last world hand over all
 * of them. */
static void run_sink(const struct kp_plan *p, const struct kp_step *s, const struct run *r,
                     int64_t row) {
    int64_t total = kp_shape_count(&p->task->values[p->task->outputs[s->output]].shape);
    int64_t offset = row ? row * (total / p->rows) : 0, count = kp_array_count(&s->in[0].array);
    const double *values = locate(p, r, &s->in[0], row);
    struct kp_draws all = {.exact = values};
    if (!r->slices) {
        r->sink(r->context, s->output, offset, count, &all, r->stream);
        return;
    }
    KP_CUDA(cudaMemcpyAsync(slice_of(r, s->output, r->world), values,
                            (size_t)count * sizeof *values, cudaMemcpyDeviceToDevice, r->stream));
    if (r->world < KP_DRAWS) return;
    all.exact = slice_of(r, s->output, 0);
    for (int d = 0; d < KP_DRAWS; d++) all.rough[d] = slice_of(r, s->output, 1 + d);
    r->sink(r->context, s->output, offset, count, &all, r->stream);
}

/* Enqueue one phase. */
static void run_phase(const struct kp_plan *p, enum kp_phase phase, const struct run *r,
                      int64_t row) {
    for (int i = p->begin[phase]; i < p->begin[phase + 1]; i++) {
        const struct kp_step *s = &p->steps[i];
        if (s->kind == KP_STEP_OP) {
            run_op(p, s, r, row);
        } else if (s->kind == KP_STEP_SINK) {
            run_sink(p, s, r, row);
        } else {
            struct kp_array from = s->in[0].array, to = s->out[0].array;
            from.data = locate(p, r, &s->in[0], row);
            to.data = locate(p, r, &s->out[0], row);
            kp_copy(&from, &to, r->stream);
        }
    }
}

/* See exec.h. */
void kp_exec_run(struct kp_exec *e, const void *const tensors[], void *const outputs[],
                 void *workspace, cudaStream_t stream) {
    if (e->plan->math == KP_MATH_F64) die(KP_BUG, "an oracle is run by kp_exec_oracle");
    struct run r = {.tensors = tensors, .outputs = outputs, .workspace = workspace};
    r.stream = stream;
    run_phase(e->plan, KP_PHASE_WHOLE, &r, 0);
}

/* Enqueue one phase in every world. */
static void run_worlds(const struct kp_exec *e, enum kp_phase phase, struct run *r,
                       const struct kp_noise *noise, int64_t row) {
    char *workspace = r->workspace;
    bool again = phase != KP_PHASE_WHOLE || e->world_bytes || has(e->plan, phase, KP_STEP_SINK);
    for (int w = 0; w < (noise && again ? WORLDS : 1); w++) {
        r->world = w;
        r->noise = w ? noise : NULL;
        r->workspace = workspace + (size_t)w * e->world_bytes;
        run_phase(e->plan, phase, r, row);
    }
    r->workspace = workspace;
}

/* See exec.h. */
void kp_exec_oracle(struct kp_exec *e, const void *const tensors[], void *workspace,
                    const struct kp_noise *noise, kp_sink *sink, void *context,
                    cudaStream_t stream) {
    const struct kp_plan *p = e->plan;
    if (p->math != KP_MATH_F64) die(KP_BUG, "a baseline is run by kp_exec_run");
    struct run r = {.exec = e, .tensors = tensors, .workspace = workspace, .sink = sink};
    r.slices = noise ? workspace : NULL;
    r.context = context;
    r.stream = stream;
    run_worlds(e, KP_PHASE_WHOLE, &r, noise, 0);
    if (!p->rows) return;
    int64_t row = 0;
    for (; row + p->slice <= p->rows; row += p->slice)
        run_worlds(e, KP_PHASE_SLICE, &r, noise, row);
    if (row < p->rows) run_worlds(e, KP_PHASE_REST, &r, noise, row);
}
